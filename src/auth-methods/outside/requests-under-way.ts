// How many requests to providers this server has under way: each has a connection, and strangers cause them.
// Whoever comes when there is no room is told so at once; nothing waits for room.

import type { AuthMethod } from '../../acl/auth-method.ts';
import { type HttpsClient, HttpsFailure } from './https-client.ts';

/** Of all logins together. */
export const LOGIN_REQUESTS_MAX = 512;
/** Of the logins of one method: one whose provider is slow leaves room to the others. */
export const METHOD_REQUESTS_MAX = 256;
/** Of what logins share, keys and discovery documents: slow logins leave room to those that need no more. */
export const LOAD_REQUESTS_MAX = 128;

interface Room {
  readonly name: string;
  readonly countMax: number;
}

const LOADS: Room = { name: 'keys and discovery documents', countMax: LOAD_REQUESTS_MAX };
const LOGINS: Room = { name: 'all logins', countMax: LOGIN_REQUESTS_MAX };

export class RequestsUnderWay {
  readonly #http: HttpsClient;
  /** By the name of the room; none is zero. */
  readonly #countByRoom = new Map<string, number>();

  constructor(http: HttpsClient) {
    this.#http = http;
  }

  /** Its requests reject with HttpsFailure 'busy' where there is no room, as those of the others do. */
  clientOfLoads(): HttpsClient {
    return this.#clientWithin([LOADS]);
  }

  clientOf({ namespace, name }: AuthMethod): HttpsClient {
    const own = { name: `auth method ${namespace}/${name}`, countMax: METHOD_REQUESTS_MAX };
    return this.#clientWithin([own, LOGINS]);
  }

  #clientWithin(rooms: readonly Room[]): HttpsClient {
    return {
      request: async (request) => {
        this.#enter(rooms);
        try {
          return await this.#http.request(request);
        } finally {
          this.#leave(rooms);
        }
      },
    };
  }

  #enter(rooms: readonly Room[]): void {
    const full = rooms.find(({ name, countMax }) => this.#countOf(name) >= countMax);
    if (full !== undefined) {
      const { name, countMax } = full;
      throw new HttpsFailure('busy', `${countMax} requests for ${name} are under way already`);
    }
    for (const { name } of rooms) this.#countByRoom.set(name, this.#countOf(name) + 1);
  }

  #leave(rooms: readonly Room[]): void {
    for (const { name } of rooms) {
      const left = this.#countOf(name) - 1;
      if (left > 0) this.#countByRoom.set(name, left);
      else this.#countByRoom.delete(name);
    }
  }

  #countOf(name: string): number {
    return this.#countByRoom.get(name) ?? 0;
  }
}
