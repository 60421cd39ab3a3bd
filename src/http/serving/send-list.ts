// A list on its way to the client. What fits one chunk goes out in one piece; a longer list is sent
// slice by slice, never faster than the client reads, and never held as a whole. Once the head is
// out, a failure can only be shown by breaking the connection off: a list that ends looks complete.

import { constants, createGzip, type Gzip } from 'node:zlib';
import type { Clock } from '../../../cluster/platform/clock.ts';
import type { ListResult } from '../../service/views.ts';
import { LIMITS } from '../settings.ts';
import { drained, endsInTime } from '../wire/drained.ts';
import { causeOf, type Exchange, indexHeaders, JSON_TYPE, nextHeaders } from '../wire/exchange.ts';
import { PrettyPrinter } from '../wire/pretty.ts';
import type { RawResponse } from '../wire/wire-types.ts';

export interface ListAnswer<Item> {
  readonly list: ListResult<Item>;
  readonly renderItem: (item: Item) => string;
  /** A page is bounded, and its head tells where the next one begins. */
  readonly isPage: boolean;
}

/** Sends a list. Rejects only before the head is out. */
export async function sendList<Item>(exchange: Exchange, answer: ListAnswer<Item>): Promise<void> {
  const { list, isPage } = answer;
  const headers = indexHeaders(list.meta);
  const items = list.slices[Symbol.asyncIterator]();
  let text = '[';
  let sender: ChunkSender | undefined;
  const turns = new Turns(exchange.parts.clock);
  try {
    for (;;) {
      await turns.give();
      const slice = await items.next();
      if (slice.done === true) break;
      text += renderSlice(slice.value, answer.renderItem, text === '[' && sender === undefined);
      if (isPage && text.length >= LIMITS.pageChars) break;
      if (isPage || text.length < LIMITS.chunkChars) continue;
      sender ??= new ChunkSender(exchange, [
        ...exchange.head(JSON_TYPE, list.meta.position),
        ...headers,
      ]);
      const hasClient = await sender.send(text);
      text = '';
      if (!hasClient) return;
    }
    if (sender === undefined) {
      const all = isPage ? [...headers, ...nextHeaders(list.next())] : headers;
      exchange.sendJson(`${text}]`, all, list.meta.position);
    } else {
      await sender.finish(`${text}]`);
    }
  } catch (error) {
    if (sender === undefined) throw error;
    sender.breakOff(error);
  } finally {
    await items.return?.();
  }
}

/** So long a list may keep the event loop: some slices, or one of long objects. A turn costs a millisecond. */
const TURN_MS = 10;

/** What is read, and sent, without waiting for anything would keep the server from all else. */
class Turns {
  readonly #clock: Clock;
  #sinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** Sockets and timers get their turn, when they have had none for long enough. */
  async give(): Promise<void> {
    if (this.#clock.monotonicMs() - this.#sinceMs < TURN_MS) return;
    await new Promise<void>((resolve) => {
      this.#clock.after(0, resolve);
    });
    this.#sinceMs = this.#clock.monotonicMs();
  }
}

function renderSlice<Item>(
  slice: readonly Item[],
  renderItem: (item: Item) => string,
  isFirst: boolean,
): string {
  let text = '';
  let separator = isFirst ? '' : ',';
  for (const item of slice) {
    text += separator + renderItem(item);
    separator = ',';
  }
  return text;
}

/** Writes chunks as fast as the client takes them. */
class ChunkSender {
  readonly #exchange: Exchange;
  readonly #response: RawResponse;
  readonly #gzip: Gzip | undefined;
  readonly #printer: PrettyPrinter | undefined;

  constructor(exchange: Exchange, head: string[]) {
    this.#exchange = exchange;
    this.#response = exchange.response;
    this.#printer = exchange.isPretty ? new PrettyPrinter() : undefined;
    if (exchange.acceptsGzip) {
      head.push('Content-Encoding', 'gzip');
      this.#gzip = createGzip({ level: constants.Z_BEST_SPEED });
      // A failure of the compressor breaks the answer off as any other.
      this.#gzip.once('error', (error) => this.breakOff(error));
    }
    this.#response.writeHead(200, head);
    this.#gzip?.pipe(this.#response);
  }

  /** False when the client has gone. */
  async send(json: string): Promise<boolean> {
    const target = this.#gzip ?? this.#response;
    if (this.#response.destroyed) return false;
    if (!target.write(this.#printer?.push(json) ?? json)) await drained(this.#exchange, target);
    return !this.#response.destroyed;
  }

  async finish(json: string): Promise<void> {
    const hasClient = await this.send(json + (this.#printer?.end() ?? ''));
    if (!hasClient) return;
    (this.#gzip ?? this.#response).end();
    endsInTime(this.#exchange);
    this.#exchange.finished(200);
  }

  /** Ends the connection without ending the answer. */
  breakOff(error: unknown): void {
    const { logger } = this.#exchange.parts;
    const fields = { route: this.#exchange.stats.template, cause: causeOf(error) };
    logger.error(fields, 'list broken off');
    this.#gzip?.unpipe();
    this.#gzip?.destroy();
    this.#response.destroy();
    this.#exchange.finished(500);
  }
}
