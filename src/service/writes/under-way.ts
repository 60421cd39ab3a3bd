// What a write was checked against must still be so at its place in the log. Rights are checked against the
// state as the leader has applied it, and the write enters the log behind whatever is under way there: behind
// the very change that takes the caller's rights away, or what is lent, or replaces the whole state. So a write
// waits for what is under way of what it was checked against, and is checked anew. All writes of a leader pass
// here, and the next leader checks nothing before it has applied what this one proposed: so one memory is
// enough. See docs/decisions/0008.

import type { Clock } from '../../../cluster/platform/clock.ts';
import { AclError } from '../../acl/error.ts';
import type { BindingRuleId } from '../../acl/ids.ts';
import type { Change } from '../../state/commands/commands.ts';
import { type EntryObject, objectsOf } from '../../state/global-log/entry-objects.ts';
import { decodeEntry } from '../../state/global-log/global-entry.ts';
import type { StateView } from '../../state/view.ts';
import {
  BOOTSTRAP_DEPENDENCY,
  dependencyOf,
  EVERYTHING,
  methodDependency,
} from '../dependencies.ts';

/** The write was checked against what changes in this moment: nothing was proposed. */
export class Overtaken extends AclError {
  /** Resolves when that is over; never rejects. */
  readonly ended: Promise<void>;

  constructor(ended: Promise<void>) {
    const text =
      'nothing was written: what it was checked against is changed all the time, try again';
    super('unavailable', text);
    this.ended = ended;
  }
}

/** Entries of the primary on their way into this datacenter. */
interface Batch {
  readonly ended: Promise<void>;
  /** What they change of what is here now; worked out when somebody asks. */
  readonly keys: () => ReadonlySet<string>;
}

interface Changed {
  readonly keys: Set<string>;
  /** Ids of rules that were not here when it was worked out: a batch before may bring them. */
  readonly unknownRules: readonly string[];
}

export class UnderWay {
  readonly #view: Pick<StateView, 'bindingRule'>;
  /** By `dependencyOf` what they change. */
  readonly #byKey = new Map<string, Set<Promise<void>>>();
  readonly #batches = new Set<Batch>();

  constructor(view: Pick<StateView, 'bindingRule'>) {
    this.#view = view;
  }

  /** Proposes the change; until that is over, whoever was checked against what it changes has to wait. */
  during<Output>(change: Change, propose: () => Promise<Output>): Promise<Output> {
    const keys = this.#keysOf(change);
    const proposed = propose();
    if (change.type === 'global-log.apply') this.#holdBatch(change.entries, proposed);
    else if (keys.length > 0) this.#hold(keys, proposed);
    return proposed;
  }

  /** Throws Overtaken where anything of these, or the whole state, is being changed. */
  requireQuiet(keys: () => Iterable<string>): void {
    if (this.#byKey.size === 0 && this.#batches.size === 0) return;
    const wanted = [EVERYTHING, ...keys()];
    for (const key of wanted) {
      const changes = this.#byKey.get(key);
      if (changes !== undefined) throw new Overtaken(Promise.all(changes).then(nothing));
    }
    for (const batch of this.#batches) {
      const changed = batch.keys();
      if (wanted.some((key) => changed.has(key))) throw new Overtaken(batch.ended);
    }
  }

  #holdBatch(entries: readonly Uint8Array[], proposed: Promise<unknown>): void {
    let known: Changed | undefined;
    const keys = (): ReadonlySet<string> => {
      known ??= this.#changedBy(entries);
      for (const id of known.unknownRules) {
        for (const key of this.#keysOfRule(id)) known.keys.add(key);
      }
      return known.keys;
    };
    const ended: Promise<void> = proposed.then(nothing, nothing).then(() => {
      this.#batches.delete(batch);
    });
    const batch: Batch = { ended, keys };
    this.#batches.add(batch);
  }

  /** What cannot be read is refused by the log, and until then may be anything. */
  #changedBy(entries: readonly Uint8Array[]): Changed {
    const keys = new Set<string>();
    const unknownRules: string[] = [];
    try {
      for (const { kind, id, namespace = '' } of entries.flatMap(objectsOfEntry)) {
        if (kind === 'auth-method') keys.add(methodDependency(namespace, id));
        else if (kind !== 'binding-rule') keys.add(dependencyOf(TABLE_BY_KIND[kind], id));
        else {
          const ofRule = this.#keysOfRule(id);
          if (ofRule.length === 0) unknownRules.push(id);
          for (const key of ofRule) keys.add(key);
        }
      }
    } catch {
      keys.add(EVERYTHING);
    }
    return { keys, unknownRules };
  }

  /** One that is new binds whoever logs in to more, not to less. */
  #keysOfRule(id: string): readonly string[] {
    const rule = this.#view.bindingRule(id as BindingRuleId);
    return rule === undefined ? [] : [methodDependency(rule.namespace, rule.authMethod)];
  }

  #hold(keys: readonly string[], proposed: Promise<unknown>): void {
    const ended: Promise<void> = proposed.then(nothing, nothing).then(() => {
      for (const key of keys) this.#letGo(key, ended);
    });
    for (const key of keys) {
      const others = this.#byKey.get(key);
      if (others === undefined) this.#byKey.set(key, new Set([ended]));
      else others.add(ended);
    }
  }

  #letGo(key: string, ended: Promise<void>): void {
    const changes = this.#byKey.get(key);
    changes?.delete(ended);
    if (changes?.size === 0) this.#byKey.delete(key);
  }

  /** What is new gives and takes nothing that anybody has; tokens that are reaped are void already. */
  #keysOf(change: Change): readonly string[] {
    switch (change.type) {
      case 'bootstrap':
        return [BOOTSTRAP_DEPENDENCY];
      case 'token.set':
        return change.presence === 'update'
          ? [dependencyOf('tokens', change.token.accessorId)]
          : [];
      case 'token.delete':
        return [dependencyOf('tokens', change.accessorId)];
      case 'policy.set':
        return change.presence === 'update' ? [dependencyOf('policies', change.policy.id)] : [];
      case 'policy.delete':
        return [dependencyOf('policies', change.id)];
      case 'role.set':
        return change.presence === 'update' ? [dependencyOf('roles', change.role.id)] : [];
      case 'role.delete':
        return [dependencyOf('roles', change.id)];
      case 'namespace.set':
        return [dependencyOf('namespaces', change.namespace.name)];
      case 'namespace.delete':
        return [dependencyOf('namespaces', change.name)];
      case 'auth-method.set':
        return [methodDependency(change.method.namespace, change.method.name)];
      case 'auth-method.delete':
        return [methodDependency(change.namespace, change.name)];
      case 'binding-rule.set':
        return this.#keysOfRule(change.rule.id);
      case 'binding-rule.delete':
        return this.#keysOfRule(change.id);
      case 'restore.commit':
      case 'global-snapshot.commit':
        return [EVERYTHING];
      default:
        return [];
    }
  }
}

function objectsOfEntry(bytes: Uint8Array): readonly EntryObject[] {
  return objectsOf(decodeEntry(bytes));
}

const TABLE_BY_KIND = {
  token: 'tokens',
  policy: 'policies',
  role: 'roles',
  namespace: 'namespaces',
} as const;

/**
 * Runs a write as often as it is overtaken. Rejects with Overtaken when that went on for `limitMs`, or what overtook
 * it has not ended by then.
 */
export async function untilNotOvertaken<Output>(
  {
    clock,
    limitMs,
  }: { readonly clock: Pick<Clock, 'monotonicMs' | 'after'>; readonly limitMs: number },
  run: () => Output | Promise<Output>,
): Promise<Output> {
  const untilMs = clock.monotonicMs() + limitMs;
  for (;;) {
    try {
      return await run();
    } catch (error) {
      const leftMs = untilMs - clock.monotonicMs();
      if (!(error instanceof Overtaken) || leftMs <= 0) throw error;
      await endedWithin(error, { clock, limitMs: leftMs });
    }
  }
}

/** Rejects with it when it has not ended by then: where nothing comes to a quorum of disks, it may never. */
function endedWithin(
  overtaken: Overtaken,
  { clock, limitMs }: { readonly clock: Pick<Clock, 'after'>; readonly limitMs: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(limitMs, () => reject(overtaken));
    void overtaken.ended.then(() => {
      timer.cancel();
      resolve();
    });
  });
}

function nothing(): void {
  // Whoever proposed it is told what came of it.
}
