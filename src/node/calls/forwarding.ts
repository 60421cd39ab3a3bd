// Carries to the leader what this server cannot decide alone, and brings back what the leader says.
// One call is one try. What became of it is told in the service's words: nothing was done, it is not
// known, or the leader's own answer. Who leads is asked of the group at every call.

import type { Clock } from '../../../cluster/platform/clock.ts';
import type { NodeId } from '../../../cluster/raft/node-id.ts';
import { RpcError, type RpcErrorCode } from '../../../cluster/transport/calls/rpc-error.ts';
import type { RpcCall } from '../../../cluster/transport/transport.ts';
import { AclError } from '../../acl/error.ts';
import type { Call } from '../../service/call.ts';
import type { OperationInput, OperationName, OperationOutput } from '../../service/operations.ts';
import { LeaderAway, type Remote } from '../../service/remote.ts';
import { decodeAnswer, encodeQuestion } from './call-frames.ts';
import { CALL_MAX_MS, callLimitMs, isReadOf, kindOfCall } from './call-limit.ts';
import { type CallKind, CallPlaces } from './call-places.ts';

/** The method of the leader by which operations run. */
export const OPERATION_METHOD = 'service.operation';

/** A leader that was replaced may still answer what it had finished. */
const OLD_LEADER_GRACE_MS = 100;

/** Who leads, and since which election. */
export interface KnownLeader {
  readonly node: NodeId;
  readonly term: number;
}

/** The group as far as forwarding needs it. */
export interface LeaderLine {
  readonly self: NodeId;
  /** Who leads, this server too; undefined when nobody is known to. */
  leader(): KnownLeader | undefined;
  /** Rejects with RpcError. */
  call(to: NodeId, request: RpcCall): Promise<Uint8Array>;
  /** Gives what takes the listener away. */
  onLeaderChanged(listener: () => void): () => void;
}

export interface ForwardingOptions {
  readonly line: LeaderLine;
  readonly clock: Clock;
  /** Calls of this server that may be under way at once. */
  readonly countMax: number;
  /** How long a write that does not say so waits for other datacenters. */
  readonly ackTimeoutMs: number;
}

interface Asking {
  readonly method: string;
  readonly limitMs: number;
  readonly kind: CallKind;
  /** It changes nothing, whatever place it takes. */
  readonly isRead: boolean;
}

interface Waiting {
  readonly to: NodeId;
  giveUp(): void;
}

export class Forwarding implements Remote {
  readonly #options: ForwardingOptions;
  readonly #calls = new Set<Waiting>();
  readonly #places: CallPlaces;
  readonly #wakes = new Set<() => void>();
  readonly #stopListening: () => void;

  constructor(options: ForwardingOptions) {
    this.#options = options;
    this.#places = new CallPlaces(options.countMax);
    this.#stopListening = options.line.onLeaderChanged(() => this.#onLeaderChanged());
  }

  /** Calls under way. */
  get count(): number {
    return this.#calls.size;
  }

  async runAtLeader<Name extends OperationName>(
    name: Name,
    input: OperationInput<Name>,
    call: Call,
  ): Promise<OperationOutput<Name>> {
    // A question that was held up on its way must not be answered in a later reign: whoever asked may have
    // been refused by another leader since, and told its client so.
    const limitMs = callLimitMs({ name, call }, this.#options.ackTimeoutMs);
    const kind = kindOfCall({ name, call });
    const asking = { method: OPERATION_METHOD, limitMs, kind, isRead: isReadOf(name) };
    const answer = await this.#ask(asking, (term) => encodeQuestion({ name, input, call, term }));
    return decodeAnswer(answer) as OperationOutput<Name>;
  }

  leaderTerm(): number | undefined {
    return this.#options.line.leader()?.term;
  }

  /** Asks the leader by one of its methods. Rejects as `Remote` says. */
  ask(
    method: string,
    payload: Uint8Array,
    limitMs = CALL_MAX_MS,
    isRead = false,
  ): Promise<Uint8Array> {
    return this.#ask({ method, limitMs, kind: 'write', isRead }, () => payload);
  }

  async #ask(
    { method, limitMs: deadlineMs, kind, isRead }: Asking,
    payloadFor: (term: number) => Uint8Array,
  ): Promise<Uint8Array> {
    const { line } = this.#options;
    const leader = line.leader();
    if (leader === undefined || leader.node === line.self) throw new LeaderAway();
    const giveBack = this.#places.take(kind);
    if (giveBack === undefined) {
      const full = this.#places.takenFrom(kind);
      throw new AclError('unavailable', `${full} wait for the leader already`);
    }
    try {
      const payload = payloadFor(leader.term);
      const answer = line.call(leader.node, { method, payload, deadlineMs, hops: 0 });
      return await this.#unlessReplaced({ to: leader.node, isRead }, answer);
    } catch (error) {
      throw refusalOf(error, isRead);
    } finally {
      giveBack();
    }
  }

  leaderChanged(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        timer.cancel();
        this.#wakes.delete(wake);
        resolve();
      };
      const timer = this.#options.clock.after(limitMs, wake);
      this.#wakes.add(wake);
    });
  }

  /** Nobody waits any longer: what became of the calls under way is not known. */
  close(): void {
    this.#stopListening();
    for (const wake of [...this.#wakes]) wake();
    for (const call of [...this.#calls]) call.giveUp();
  }

  /** The answer, unless another server leads before it is there. */
  #unlessReplaced(
    { to, isRead }: { readonly to: NodeId; readonly isRead: boolean },
    answer: Promise<Uint8Array>,
  ): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#calls.delete(waiting);
        const text = unknownText('another server leads by now', isRead);
        reject(new AclError('outcome-unknown', text));
      };
      const waiting: Waiting = { to, giveUp };
      this.#calls.add(waiting);
      const ended = (): unknown => this.#calls.delete(waiting);
      answer.finally(ended).then(resolve, reject);
    });
  }

  #onLeaderChanged(): void {
    for (const wake of [...this.#wakes]) wake();
    const { line, clock } = this.#options;
    const leader = line.leader();
    if (leader === undefined) return;
    const forsaken = [...this.#calls].filter(({ to }) => to !== leader.node);
    if (forsaken.length === 0) return;
    clock.after(OLD_LEADER_GRACE_MS, () => {
      for (const call of forsaken) if (this.#calls.has(call)) call.giveUp();
    });
  }
}

/** What a failed call means to whoever asked. Never repeats what was sent. */
function refusalOf(error: unknown, isRead: boolean): unknown {
  return error instanceof RpcError ? REFUSAL_BY_CODE[error.code](error, isRead) : error;
}

const REFUSAL_BY_CODE: Readonly<
  Record<RpcErrorCode, (cause: RpcError, isRead: boolean) => AclError>
> = {
  unreachable: (cause) => new LeaderAway({ cause }),
  'too-many-hops': (cause) => new LeaderAway({ cause }),
  lost: unknownOf,
  timeout: unknownOf,
  // It starts, or stops, or does not know this server yet.
  refused: (cause) => new LeaderAway({ cause }),
  'too-large': (cause) => new AclError('body-too-large', cause.message, { cause }),
};

function unknownOf(cause: RpcError, isRead: boolean): AclError {
  return new AclError('outcome-unknown', unknownText(cause.message, isRead), { cause });
}

function unknownText(why: string, isRead: boolean): string {
  const what = isRead ? 'nothing was read' : 'whether the write took effect is not known';
  return `${what}: ${why}`;
}
