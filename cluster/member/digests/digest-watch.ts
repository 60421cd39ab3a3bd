// Digests compared between members: the leader asks everybody for the digest of one index, and tells
// those whose state is wrong to stop. Each looks at its own digest again before it does.

import { messageOf } from '../../base/message-of.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { NodeId } from '../../raft/node-id.ts';
import { packed, unpacked } from '../../wire/call-payload.ts';
import { countOf, textOf } from '../../wire/shape.ts';
import type { Checkpoint, DigestedMachine } from '../group-member.ts';
import type { MemberTiming } from '../member-timing.ts';
import { type DigestSaid, digestVerdict } from './digest-verdict.ts';

const DIGEST_MAX = 256;
/** Between looks at whether the machine has come to an index. */
const LOOK_MS = 50;

export interface DigestWatchOptions {
  readonly self: NodeId;
  readonly machine: Pick<DigestedMachine<unknown>, 'lastCheckpoint' | 'digestAt'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly timing: MemberTiming;
  readonly members: () => readonly {
    readonly node: NodeId;
    readonly name: string;
    readonly isVoter: boolean;
  }[];
  /** Rejects with RpcError. */
  readonly call: (to: NodeId, method: string, payload: Uint8Array) => Promise<Uint8Array>;
  /** As leader: takes their votes away. Rejects when that does not come about. */
  readonly unseat: (voters: readonly NodeId[]) => Promise<void>;
  /** This node's state is not that of the others. */
  readonly onWrong: (says: string) => void;
}

export class DigestWatch {
  readonly #options: DigestWatchOptions;
  #comparedIndex = 0;

  constructor(options: DigestWatchOptions) {
    this.#options = options;
  }

  /** As leader: compares the newest digest, unless that was done. */
  async compare(): Promise<void> {
    const { machine, members, self } = this.#options;
    const checkpoint = machine.lastCheckpoint;
    if (checkpoint === undefined || checkpoint.index === this.#comparedIndex) return;
    const asked = members();
    const said = await Promise.all(
      asked.map(async ({ node, isVoter }): Promise<DigestSaid> => {
        const own = node === self;
        return {
          node,
          isVoter,
          digest: own ? checkpoint.digest : await this.#ask(node, checkpoint),
        };
      }),
    );
    await this.#judge(said, checkpoint.index);
  }

  /** Another node asks for the digest of an index; waits a little for the machine to come to it. */
  async onAsked(payload: Uint8Array): Promise<Uint8Array> {
    const { clock, machine, timing } = this.#options;
    const { index } = checkpointOf(payload);
    const untilMs = clock.monotonicMs() + timing.digestWaitMs;
    for (;;) {
      const digest = machine.digestAt?.(index);
      const isPast = (machine.lastCheckpoint?.index ?? 0) >= index;
      if (digest !== undefined || isPast || clock.monotonicMs() >= untilMs) {
        return packed(index, digest ?? '');
      }
      await new Promise<void>((resolve) => {
        clock.after(LOOK_MS, resolve);
      });
    }
  }

  /** The leader says that this node's state is wrong. */
  onTold(payload: Uint8Array): Uint8Array {
    const { index, digest } = checkpointOf(payload);
    this.#accept(index, digest);
    return packed(index, '');
  }

  async #ask(node: NodeId, { index, digest }: Checkpoint): Promise<string | undefined> {
    try {
      const answer = await this.#options.call(node, 'member.digest', packed(index, digest));
      const said = checkpointOf(answer);
      return said.index === index && said.digest !== '' ? said.digest : undefined;
    } catch {
      // Who cannot be asked is compared another time.
      return undefined;
    }
  }

  async #judge(said: readonly DigestSaid[], index: number): Promise<void> {
    const { logger, self, call, unseat } = this.#options;
    const verdict = digestVerdict(said, self);
    if (verdict.kind !== 'equal') {
      logger.error({ index, digests: this.#named(said) }, 'the states of servers differ');
    }
    // While they vote, they do: stopped first, they would take the quorum with them, and nobody could let them in
    // again.
    if (verdict.kind === 'wrong' && verdict.voters.length > 0) await unseat(verdict.voters);
    if (said.every(({ digest }) => digest !== undefined)) this.#comparedIndex = index;
    if (verdict.kind !== 'wrong') return;
    for (const node of verdict.nodes.filter((each) => each !== self)) {
      try {
        await call(node, 'member.diverged', packed(index, verdict.right));
      } catch (error) {
        logger.error({ node, why: messageOf(error) }, 'a server with a wrong state was not told');
      }
    }
    if (verdict.nodes.includes(self)) this.#accept(index, verdict.right);
  }

  #named(said: readonly DigestSaid[]): Readonly<Record<string, string>> {
    const nameByNode = new Map(this.#options.members().map(({ node, name }) => [node, name]));
    const named = said.map(({ node, digest }) => [
      nameByNode.get(node) ?? String(node),
      digest ?? 'not known',
    ]);
    return Object.fromEntries(named) as Readonly<Record<string, string>>;
  }

  #accept(index: number, right: string): void {
    const own = this.#options.machine.digestAt?.(index);
    if (own === undefined || own === right) return;
    this.#options.onWrong(
      `the state of this server is not that of the others: at log index ${index} its digest is ${own}, ` +
        `theirs is ${right}. It serves nobody and has no vote any more. Keep a copy of its data folder for ` +
        'those who look into it, empty the folder, and start the server again: it takes the state of the others',
    );
  }
}

function checkpointOf(bytes: Uint8Array): Checkpoint {
  const [index, digest] = unpacked(bytes, 'a digest', 2);
  return { index: countOf(index, 'index'), digest: textOf(digest, 'digest', DIGEST_MAX) };
}
