// Sets of model states under small numbers, so that a nondeterministic model is searched like a
// plain one (power-set construction). Promises that two sets get one number exactly when they hold
// the same states by the model's own `equal`. Leaves the order of operations to search.ts.
import type { Model, Operation } from './model.ts';

export const noStates = -1;
const stateSizeBytes = 128;

export class StateSets<State, Input, Output> {
  readonly #model: Model<State, Input, Output>;
  readonly #states: State[] = [];
  readonly #stateIdsByHash = new Map<number, number[]>();
  readonly #sets: (readonly number[])[] = [];
  readonly #setIdByKey = new Map<string, number>();

  constructor(model: Model<State, Input, Output>) {
    this.#model = model;
  }

  /** An estimate in bytes: each state and each set counts the same. */
  get sizeBytes(): number {
    return (this.#states.length + this.#sets.length) * stateSizeBytes;
  }

  initial(): number {
    return this.#intern([this.#model.init()]);
  }

  /** The set after `operation`, or `noStates` when no state of the set allows its output. */
  after(setId: number, operation: Operation<Input, Output>): number {
    const next: State[] = [];
    for (const id of this.#sets[setId]!) {
      next.push(...this.#model.step(this.#states[id]!, operation.input, operation.output));
    }
    return next.length === 0 ? noStates : this.#intern(next);
  }

  describe(setId: number): string {
    const texts = this.#sets[setId]!.map((id) => this.#model.describeState(this.#states[id]!));
    return texts.join(' or ');
  }

  #intern(states: readonly State[]): number {
    const ids = [...new Set(states.map((state) => this.#stateId(state)))].sort((a, b) => a - b);
    const key = ids.join(',');
    const known = this.#setIdByKey.get(key);
    if (known !== undefined) return known;
    this.#sets.push(ids);
    this.#setIdByKey.set(key, this.#sets.length - 1);
    return this.#sets.length - 1;
  }

  #stateId(state: State): number {
    const hash = this.#model.hash(state);
    const candidates = this.#stateIdsByHash.get(hash) ?? [];
    const known = candidates.find((id) => this.#model.equal(this.#states[id]!, state));
    if (known !== undefined) return known;
    this.#states.push(state);
    this.#stateIdsByHash.set(hash, [...candidates, this.#states.length - 1]);
    return this.#states.length - 1;
  }
}
