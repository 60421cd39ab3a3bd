// The whole state of a datacenter as an archive: taken from a server chunk by chunk, and given to one.
// What the bytes mean, and whether they are whole, is looked at elsewhere.

import type { Static } from 'typebox';
import { ARCHIVE_TYPE } from '../api/bodies/schema.ts';
import {
  SNAPSHOT_ENDPOINTS,
  type SnapshotEndpointName,
} from '../api/endpoints/endpoints-operator.ts';
import { unreadable, valueIn } from './answer-shape.ts';
import { textOfChunks } from './answer-text.ts';
import type { Answer } from './call-types.ts';
import { ClientError } from './client-error.ts';
import type { StreamRequest, StreamResponse } from './transport.ts';
import { type ClientOptions, metaOf, requestOf } from './wire.ts';

type Chunks = AsyncIterable<Uint8Array>;
type Restored = Static<(typeof SNAPSHOT_ENDPOINTS)['snapshot.restore']['answer']>;

export interface SnapshotCalls {
  /** An archive as it comes; what follows may still break off. */
  save(): Promise<Answer<Chunks>>;
  /** Replaces the state of the whole datacenter. It is sent once, whatever happens. */
  restore(archive: Chunks): Promise<Answer<Restored>>;
}

/** Both reject as the calls of the client do. */
export function snapshotCalls(options: ClientOptions): SnapshotCalls {
  async function exchanged(
    name: SnapshotEndpointName,
    body: Chunks | undefined,
  ): Promise<StreamResponse> {
    const plain = requestOf(SNAPSHOT_ENDPOINTS[name], {}, options);
    const request: StreamRequest = { ...plain, body };
    const response = await options.transport.stream(request);
    if (response.status >= 200 && response.status <= 299) return response;
    const asked = { method: request.method, path: new URL(request.url).pathname };
    throw new ClientError(asked, { ...response, text: await textOfChunks(response.body) });
  }

  return {
    save: async () => {
      const response = await exchanged('snapshot.save', undefined);
      if (response.headers['content-type'] === ARCHIVE_TYPE) {
        return { value: response.body, meta: metaOf(response) };
      }
      // Nobody wants more of it.
      for await (const _ of response.body) break;
      throw unreadable(response.status);
    },
    restore: async (archive) => {
      const { status, headers, body } = await exchanged('snapshot.restore', archive);
      const { answer } = SNAPSHOT_ENDPOINTS['snapshot.restore'];
      const value = valueIn(answer, { status, text: await textOfChunks(body) });
      return { value: value as Restored, meta: metaOf({ headers }) };
    },
  };
}
