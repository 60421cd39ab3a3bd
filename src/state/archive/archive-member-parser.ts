// Archives of format 2 on their way in, member by member; archive-format.ts says what is in them. Whatever
// the members say, no more is kept of them than the largest one.

import { ArchiveDamage } from './archive-damage.ts';
import { ENTRY, infoIn } from './archive-format.ts';
import type { ArchiveInfo } from './archive-info.ts';
import type { ArchiveInput, ArchiveParser } from './archive-input.ts';
import { contentOf, GZIP_MAGIC, memberKind, memberLength } from './archive-members.ts';
import { ArchiveTally } from './archive-tally.ts';
import { blocksOf, contentIn } from './archive-tar.ts';

interface Begun {
  readonly info: ArchiveInfo;
  readonly tally: ArchiveTally;
}

export class ArchiveMemberParser implements ArchiveParser {
  readonly #input: ArchiveInput;
  #begun: Begun | undefined;
  /** Set when it begins: the tally can be asked once. */
  #last: Uint8Array | undefined;
  #isWhole = false;

  constructor(input: ArchiveInput) {
    this.#input = input;
  }

  get info(): ArchiveInfo | undefined {
    return this.#begun?.info;
  }

  get isWhole(): boolean {
    return this.#isWhole;
  }

  *chunks(): Generator<Uint8Array> {
    while (!this.#isWhole) {
      const kind = memberKind(this.#input.rest);
      if (kind === 'foreign') throw this.#foreign();
      const isTaken = kind === 'member' ? yield* this.#takeMember() : this.#takeLast(kind);
      if (!isTaken) return;
    }
  }

  #foreign(): ArchiveDamage {
    const { isAtStart, rest } = this.#input;
    if (!isAtStart) return this.#input.damage('no member of it begins here');
    if (!rest.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC)) {
      return new ArchiveDamage('this is no archive of a state');
    }
    const says = 'this is a gzip file, but no archive as Conclave writes it';
    return new ArchiveDamage(`${says}: another program wrote it, or packed it again`);
  }

  /** Gives the chunk in it. False when it is not all there yet. */
  *#takeMember(): Generator<Uint8Array, boolean> {
    const { rest } = this.#input;
    const length = this.#orDamage(() => memberLength(rest));
    if (rest.length < length) return false;
    const member = rest.subarray(0, length);
    const blocks = this.#orDamage(() => contentOf(member));
    const content = contentIn(blocks);
    if (this.#begun === undefined) this.#begun = this.#beginning(content, blocks, member);
    else {
      const { info, tally } = this.#begun;
      this.#requireEntry(ENTRY.state, { content, blocks, modifiedMs: info.createdMs });
      tally.add(content, member);
      yield content;
    }
    this.#input.use(length);
    return true;
  }

  #beginning(content: Uint8Array, blocks: Uint8Array, member: Uint8Array): Begun {
    const info = this.#orDamage(() => infoIn(content));
    this.#requireEntry(ENTRY.meta, { content, blocks, modifiedMs: info.createdMs });
    return { info, tally: new ArchiveTally(info.createdMs, content, member) };
  }

  /** The member must hold this entry and nothing else. */
  #requireEntry(
    name: string,
    found: {
      readonly content: Uint8Array;
      readonly blocks: Uint8Array;
      readonly modifiedMs: number;
    },
  ): void {
    if (Buffer.compare(blocksOf({ name, ...found }), found.blocks) === 0) return;
    throw this.#input.damage(`there is something else in place of ${name}`);
  }

  #takeLast(kind: 'last' | undefined): boolean {
    if (kind === undefined) return false;
    if (this.#begun === undefined) throw this.#input.damage('it ends before it begins');
    this.#last ??= this.#begun.tally.lastMember();
    const { rest } = this.#input;
    if (rest.length < this.#last.length) return false;
    if (Buffer.compare(rest.subarray(0, this.#last.length), this.#last) !== 0) {
      throw this.#input.damage('what stands before is not what was written');
    }
    this.#input.use(this.#last.length);
    this.#isWhole = true;
    return true;
  }

  #orDamage<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (error instanceof ArchiveDamage) throw error;
      const isOwnWord = error instanceof RangeError && !('code' in error);
      throw this.#input.damage(isOwnWord ? error.message : 'a member cannot be read', error);
    }
  }
}
