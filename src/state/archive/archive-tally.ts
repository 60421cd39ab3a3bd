// What goes along with an archive from its first member on, where it is written and where it is read, and
// knows in the end what its last member must be. So the two agree to the last byte.
//
// The check begins as 32 zero bytes; each member makes it SHA-256 over the check so far and the member.

import { beginSha256 } from '../../../cluster/platform/running-sha256.ts';
import { sha256 } from '../../../cluster/platform/sha256.ts';
import { CHAIN_ORIGIN, chained } from '../snapshot/snapshot-format.ts';
import { ENTRY } from './archive-format.ts';
import { lastMemberOf } from './archive-members.ts';
import { blocksOf, TAR_END } from './archive-tar.ts';

export class ArchiveTally {
  readonly #createdMs: number;
  readonly #metaSum: Uint8Array;
  readonly #stateSum = beginSha256();
  #check: Uint8Array;

  /** `meta` is the content of meta.json, `member` the one that it came in. */
  constructor(createdMs: number, meta: Uint8Array, member: Uint8Array) {
    this.#createdMs = createdMs;
    this.#metaSum = sha256(meta);
    this.#check = chained(CHAIN_ORIGIN, member);
  }

  /** One more chunk of the state, and the member that it came in. */
  add(chunk: Uint8Array, member: Uint8Array): void {
    this.#stateSum.update(chunk);
    this.#check = chained(this.#check, member);
  }

  /** The last member. Nothing may follow. */
  lastMember(): Uint8Array {
    const sums = [
      [this.#metaSum, ENTRY.meta],
      [this.#stateSum.digest(), ENTRY.state],
    ] as const;
    const lines = sums.map(([sum, name]) => `${Buffer.from(sum).toString('hex')}  ${name}\n`);
    const content = Buffer.from(lines.join(''));
    const entry = blocksOf({ name: ENTRY.sums, content, modifiedMs: this.#createdMs });
    return lastMemberOf(Buffer.concat([entry, TAR_END]), this.#check);
  }
}
