// Holds every answer of a run against the log that was committed. The log says in which order the
// writes happened and what each came to; so each read has its places in the log at which it would have
// been right, and some choice of places must agree with the order in which clients asked and heard.

import { createHash } from 'node:crypto';
import type { Applied, Replay } from '../checks/shadow.ts';
import type { Violations } from '../checks/violations.ts';
import { checkOperations } from '../linearizability/checker.ts';
import type { Operation } from '../linearizability/model.ts';
import { mayWrite, type Target } from './acl-requests.ts';
import { type ObjectInput, type ObjectOutput, objectModel, type Version } from './object-model.ts';

export interface WriteRecord {
  readonly requestId: string;
  readonly client: number;
  readonly target: Target;
  /** By which id the object was meant; undefined where it was to be made. */
  readonly targetId: string | undefined;
  readonly input: ObjectInput;
  readonly callMs: number;
  returnMs: number;
  /** nothing: it was said that nothing was done. */
  output: ObjectOutput | 'unknown' | 'nothing';
  /**
   * A repeat was refused, while nobody knew what became of an earlier try: then a term that had a leader
   * before the repeat was asked for. Later leaders know nothing of a refusal.
   */
  refusedSinceTerm?: number;
}

export interface ReadRecord {
  readonly kind: 'object' | 'presented' | 'authorized';
  readonly target: Target;
  readonly isStale: boolean;
  readonly client: number;
  readonly host: string;
  readonly callMs: number;
  readonly returnMs: number;
  readonly output: ObjectOutput | 'allowed' | 'denied';
}

/** What an object was from one place of the log on, until the next. */
interface Phase {
  readonly from: number;
  readonly id: string;
  readonly version: Version;
  /** Of a token: the ids of its policies, which may be gone. */
  readonly policies: readonly string[];
}

export interface AclJudgeOptions {
  readonly violations: Violations;
  readonly replay: Replay;
  readonly writes: readonly WriteRecord[];
  readonly reads: readonly ReadRecord[];
}

const NEVER: Phase = { from: 0, id: '', version: null, policies: [] };

export class AclJudge {
  readonly #options: AclJudgeOptions;
  /** By request key: the commands that carried it. */
  readonly #commandsByKey = new Map<string, Applied[]>();
  readonly #phasesByKey = new Map<string, Phase[]>();
  readonly #managementId: string;

  constructor(options: AclJudgeOptions) {
    this.#options = options;
    this.#managementId = managementIdIn(options.replay);
    for (const applied of options.replay.commands) this.#take(applied);
  }

  all(): void {
    const { writes } = this.#options;
    for (const write of writes) this.#judgeWrite(write);
    this.#judgeOrder();
    this.#judgeHistory();
  }

  #take(applied: Applied): void {
    const { command, outcome, index } = applied;
    if (command.request !== undefined) {
      const key = hex(command.request.key);
      this.#commandsByKey.set(key, [...(this.#commandsByKey.get(key) ?? []), applied]);
    }
    if (outcome.kind !== 'applied' || outcome.replayed) return;
    const { change } = command;
    const { answer } = outcome;
    if (answer.type === 'policy') {
      const { id, name, description: value, modifyIndex } = answer.policy;
      const version = { value, index: modifyIndex };
      this.#phase(`policy ${name}`, { from: index, id, version, policies: [] });
    } else if (answer.type === 'token') {
      const { accessorId, description: value, modifyIndex, policies } = answer.token;
      const version = { value, index: modifyIndex };
      this.#phase(tokenKey(accessorId), { from: index, id: accessorId, version, policies });
    } else if (change.type === 'policy.delete') {
      this.#gone(String(change.id), index);
    } else if (change.type === 'token.delete') {
      this.#gone(String(change.accessorId), index);
    }
  }

  #phase(key: string, phase: Phase): void {
    const phases = this.#phasesByKey.get(key);
    if (phases === undefined) this.#phasesByKey.set(key, [NEVER, phase]);
    else phases.push(phase);
  }

  #gone(id: string, from: number): void {
    for (const phases of this.#phasesByKey.values()) {
      if (phases.at(-1)?.id === id && phases.at(-1)?.version !== null) {
        phases.push({ from, id, version: null, policies: [] });
      }
    }
  }

  /** The command of a write that took effect, if one did. */
  #effectOf({ requestId }: WriteRecord): Applied | undefined {
    return this.#commandsOf(requestId).find(({ outcome }) => {
      return outcome.kind === 'applied' && !outcome.replayed;
    });
  }

  #commandsOf(requestId: string): readonly Applied[] {
    const text = JSON.stringify([`token ${this.#managementId}`, requestId]);
    return this.#commandsByKey.get(createHash('sha256').update(text).digest('hex')) ?? [];
  }

  #judgeWrite(write: WriteRecord): void {
    const { violations } = this.#options;
    const { requestId, output } = write;
    const effects = this.#commandsOf(requestId).filter(({ outcome }) => {
      return outcome.kind === 'applied' && !outcome.replayed;
    });
    violations.require(effects.length <= 1, 'answers', () => {
      return `${requestId} took effect ${effects.length} times`;
    });
    const late = effects.find(({ term }) => term <= (write.refusedSinceTerm ?? 0));
    violations.require(late === undefined || !changedSomething(late), 'answers', () => {
      return `${requestId} ${JSON.stringify(write.input)} was refused in term ${write.refusedSinceTerm} or later, and took effect in term ${late?.term}, at ${late?.index}`;
    });
    if (output === 'unknown') return;
    const isDone = output !== 'nothing' && (output.kind === 'written' || output.kind === 'deleted');
    const [effect] = effects;
    // A delete of what is not there is an outcome too, and changes nothing.
    const hasEffect = effect !== undefined && changedSomething(effect);
    violations.require(isDone === hasEffect, 'answers', () => {
      const real = hasEffect ? `took effect at ${effect.index}` : 'had no effect';
      return `${requestId} ${JSON.stringify(write.input)} was answered ${JSON.stringify(output)} and ${real}`;
    });
    if (effect === undefined || output === 'nothing' || output.kind !== 'written') return;
    violations.require(modifyIndexOf(effect) === output.index, 'answers', () => {
      return `${requestId} was answered index ${output.index}, the log says ${modifyIndexOf(effect)}`;
    });
  }

  /**
   * Goes through all answers in the order in which they were given; each must have a place in the log
   * that is not before those of answers given before it was asked.
   */
  #judgeOrder(): void {
    const settled: { readonly returnMs: number; readonly place: number }[] = [];
    const floorAt = (callMs: number): number =>
      settled.reduce((floor, { returnMs, place }) => {
        return returnMs < callMs ? Math.max(floor, place) : floor;
      }, 0);
    const writes = this.#options.writes
      .filter(({ returnMs }) => Number.isFinite(returnMs))
      .map((write) => ({ write, returnMs: write.returnMs }));
    const reads = this.#options.reads.map((read) => ({ read, returnMs: read.returnMs }));
    const all = [...writes, ...reads].sort((left, right) => left.returnMs - right.returnMs);
    for (const each of all) {
      const place =
        'write' in each
          ? this.#placeOfWrite(each.write, floorAt(each.write.callMs))
          : this.#placeOfRead(each.read, floorAt(each.read.callMs));
      if (place !== undefined) settled.push({ returnMs: each.returnMs, place });
    }
  }

  #placeOfWrite(write: WriteRecord, floor: number): number | undefined {
    const effect = this.#effectOf(write);
    if (effect === undefined) return undefined;
    this.#options.violations.require(effect.index > floor, 'linearizability', () => {
      return `${write.requestId} took effect at ${effect.index}, ${floor} was seen before it was asked`;
    });
    return effect.index;
  }

  #placeOfRead(read: ReadRecord, floor: number): number | undefined {
    const phases = this.#phasesOfRead(read);
    const least = read.isStale ? 0 : floor;
    const fit = phases.find(({ from, until, fits }) => fits && until > Math.max(from, least));
    if (fit === undefined) {
      const isRevoked = read.target.kind === 'token' && read.kind !== 'object' && !isMissing(read);
      const checker = read.isStale
        ? 'stale reads'
        : isRevoked && phases.at(-1)?.isGone === true
          ? 'revocations'
          : 'linearizability';
      this.#options.violations.add(
        checker,
        `client ${read.client} saw ${JSON.stringify(read.output)} of ${read.target.key} (${read.kind}) at ` +
          `${read.host} between ${read.callMs} and ${read.returnMs} ms, though place ${least} of the log was ` +
          `seen before; its phases are ${JSON.stringify(phases)}`,
      );
      return undefined;
    }
    return read.isStale ? undefined : Math.max(fit.from, least);
  }

  /** The stretches of the log, and whether the read would have been right there. */
  #phasesOfRead(read: ReadRecord): readonly {
    readonly from: number;
    readonly until: number;
    readonly fits: boolean;
    readonly isGone: boolean;
  }[] {
    const { target, output } = read;
    const own = this.#phasesByKey.get(keyOf(target)) ?? [NEVER];
    const policy =
      target.kind === 'token' ? (this.#phasesByKey.get(`policy ${target.policy}`) ?? [NEVER]) : [];
    const edges = [...new Set([...own, ...policy].map(({ from }) => from))].sort((a, b) => a - b);
    return edges.map((from, place) => {
      const { version, policies } = at(own, from);
      const linked = at(policy, from);
      const isLinked = policies.includes(linked.id);
      const until = edges[place + 1] ?? Number.POSITIVE_INFINITY;
      return {
        from,
        until,
        fits: fits(version, isLinked ? linked.version : null, output),
        isGone: version === null,
      };
    });
  }

  /** The same once more, by the checker of histories: one object at a time, and without the log's order. */
  #judgeHistory(): void {
    const operations: Operation<ObjectInput, ObjectOutput>[] = [];
    for (const write of this.#options.writes) {
      const effect = this.#effectOf(write);
      const { client, callMs: callTime, returnMs: returnTime, input } = write;
      const output = knownOutput(write, effect);
      if (output === undefined || !isByName(write, effect)) continue;
      operations.push({ client, callTime, returnTime, input, output });
    }
    for (const read of this.#options.reads) {
      if (read.isStale || read.kind !== 'object' || typeof read.output === 'string') continue;
      const { client, callMs: callTime, returnMs: returnTime, output } = read;
      const input = { kind: 'read' as const, key: read.target.key };
      operations.push({ client, callTime, returnTime, input, output });
    }
    const verdict = checkOperations(objectModel, operations);
    if (verdict.kind === 'illegal') this.#options.violations.add('linearizability', verdict.text);
  }
}

/** What became of a write, also where nobody heard it; undefined where it changed nothing unheard. */
function knownOutput(write: WriteRecord, effect: Applied | undefined): ObjectOutput | undefined {
  const { output } = write;
  if (output !== 'unknown' && output !== 'nothing') return output;
  if (effect === undefined || !changedSomething(effect)) return undefined;
  return write.input.kind === 'delete'
    ? { kind: 'deleted' }
    : { kind: 'written', index: modifyIndexOf(effect) };
}

/**
 * Policies are named by an id that the service drew: what was asked of an id that is gone says nothing
 * about the name.
 */
function isByName({ target, input, output }: WriteRecord, effect: Applied | undefined): boolean {
  if (target.kind === 'token' || input.kind === 'create' || effect !== undefined) return true;
  return output === 'unknown';
}

function changedSomething({ outcome }: Applied): boolean {
  return (
    outcome.kind === 'applied' && !(outcome.answer.type === 'deleted' && !outcome.answer.existed)
  );
}

function modifyIndexOf({ outcome }: Applied): number {
  if (outcome.kind !== 'applied') return 0;
  const { answer } = outcome;
  if (answer.type === 'policy') return answer.policy.modifyIndex;
  return answer.type === 'token' ? answer.token.modifyIndex : 0;
}

/** A token may write if its policy is there and says so: a link to what is gone grants nothing. */
function fits(version: Version, policy: Version, output: ReadRecord['output']): boolean {
  const isAllowed = policy !== null && mayWrite(policy.value);
  if (output === 'allowed') return version !== null && isAllowed;
  if (output === 'denied') return version !== null && !isAllowed;
  if (output.kind === 'missing') return version === null;
  if (output.kind !== 'found') return false;
  return version !== null && version.value === output.value && version.index === output.index;
}

function isMissing({ output }: ReadRecord): boolean {
  return typeof output !== 'string' && output.kind === 'missing';
}

function at(phases: readonly Phase[], place: number): Phase {
  return phases.findLast(({ from }) => from <= place) ?? NEVER;
}

function keyOf(target: Target): string {
  return target.kind === 'token' ? tokenKey(target.accessorId) : `${target.kind} ${target.name}`;
}

function tokenKey(accessorId: string): string {
  return `token ${accessorId}`;
}

/** Of the token that the clients present. */
function managementIdIn({ commands }: Replay): string {
  for (const { command } of commands) {
    if (command.change.type !== 'ensure-builtins') continue;
    const { tokens } = command.change;
    const management = tokens.find((token) => token.policies.length > 0);
    if (management !== undefined) return String(management.accessorId);
  }
  return '';
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
