// The whole state on its way out and in. Out: chunk by chunk, never faster than the client reads, and
// broken off where it fails, so that an archive that ends is whole. In: rights first, then every byte
// is checked before anything changes. Never rejects: what goes wrong becomes the answer.

import { ARCHIVE_TYPE } from '../../api/bodies/schema.ts';
import {
  SNAPSHOT_ENDPOINTS,
  type SnapshotEndpointName,
} from '../../api/endpoints/endpoints-operator.ts';
import { renderRestored } from '../../api/render/render-operator.ts';
import type { SavedArchive } from '../../service/operators/operator-operations.ts';
import type { RestoreIntake } from '../../service/operators/operator-port.ts';
import { requireLength, slowBody } from '../limits/slow-body.ts';
import { LIMITS } from '../settings.ts';
import { drained, endsInTime } from '../wire/drained.ts';
import { causeOf, type Exchange, indexHeaders } from '../wire/exchange.ts';
import { askedOf } from './call-of.ts';
import type { Shared } from './serve-operation.ts';

type Serve = (exchange: Exchange) => Promise<void>;

/** Answers one request of a snapshot endpoint. Its body must not have been read. */
export async function serveSnapshot(
  name: SnapshotEndpointName,
  exchange: Exchange,
  shared: Shared,
): Promise<void> {
  try {
    shared.tokenInUrl.maybeWarn(exchange);
    await SERVE_BY_NAME[name](exchange);
  } catch (error) {
    exchange.fail(error);
  }
}

const SERVE_BY_NAME: Readonly<Record<SnapshotEndpointName, Serve>> = {
  'snapshot.save': save,
  'snapshot.restore': restore,
};

async function save(exchange: Exchange): Promise<void> {
  const { call } = askedOf(exchange, SNAPSHOT_ENDPOINTS['snapshot.save']);
  const saved = await exchange.parts.operator.save(call);
  try {
    await sendArchive(exchange, saved);
  } finally {
    await saved.close();
  }
}

/** Rejects only before the head is out: what fails at once is a refusal like any other. */
async function sendArchive(exchange: Exchange, saved: SavedArchive): Promise<void> {
  const { response, parts } = exchange;
  const chunks = saved.chunks()[Symbol.asyncIterator]();
  try {
    let next = await chunks.next();
    if (exchange.isOver) return;
    const head = exchange.head(ARCHIVE_TYPE, saved.meta.position);
    response.writeHead(200, [...head, ...indexHeaders(saved.meta)]);
    for (; next.done !== true; next = await chunks.next()) {
      if (!response.write(next.value)) await drained(exchange);
      if (response.destroyed) return;
    }
    response.end();
    endsInTime(exchange);
    exchange.finished(200);
  } catch (error) {
    if (!response.headersSent) throw error;
    parts.logger.error({ cause: causeOf(error) }, 'snapshot broken off');
    response.destroy();
    exchange.finished(500);
  } finally {
    await chunks.return?.();
  }
}

async function restore(exchange: Exchange): Promise<void> {
  const { parts, request } = exchange;
  const { call } = askedOf(exchange, SNAPSHOT_ENDPOINTS['snapshot.restore']);
  const limits = { bytesMax: parts.settings.snapshotMaxBytes, stallMs: LIMITS.stallMs };
  requireLength(request, limits);
  const intake = await parts.operator.beginRestore(call);
  const restored = await takenIn(intake, slowBody(request, parts.clock, limits));
  exchange.sendJson(renderRestored(restored), [], undefined);
}

/** Whoever hears of the end can begin another one. */
async function takenIn(
  intake: RestoreIntake,
  body: AsyncIterable<Uint8Array>,
): Promise<{ readonly index: number }> {
  try {
    for await (const chunk of body) await intake.add(chunk);
    return await intake.finish();
  } finally {
    await intake.abandon();
  }
}
