// The state of all lines between nodes, each direction for itself: whole, slow or cut. Pure: the proxies
// ask it about every piece that they carry.

export interface Line {
  readonly isCut: boolean;
  /** From the moment in which a piece is sent to the one in which it arrives. */
  readonly delayMs: number;
}

/** A direction that is not as it was in the beginning, for people to see. */
export interface LineFault extends Line {
  readonly from: string;
  readonly to: string;
}

const WHOLE: Line = { isCut: false, delayMs: 0 };

export class Lines {
  readonly #byPair = new Map<string, LineFault>();

  between(from: string, to: string): Line {
    return this.#byPair.get(pairOf(from, to)) ?? WHOLE;
  }

  /** Every direction from one of `from` to one of `to`; a node stays joined to itself. */
  change(from: readonly string[], to: readonly string[], changed: Partial<Line>): void {
    for (const one of from) {
      for (const other of to) {
        if (one === other) continue;
        const line = { ...this.between(one, other), ...changed };
        if (line.isCut || line.delayMs > 0)
          this.#byPair.set(pairOf(one, other), { from: one, to: other, ...line });
        else this.#byPair.delete(pairOf(one, other));
      }
    }
  }

  /** Mends every cut; delays stay. */
  healAll(): void {
    for (const { from, to } of this.faults()) this.change([from], [to], { isCut: false });
  }

  faults(): readonly LineFault[] {
    return [...this.#byPair.values()];
  }

  /** Forgets a node that is gone. */
  forget(node: string): void {
    for (const [pair, { from, to }] of this.#byPair)
      if (from === node || to === node) this.#byPair.delete(pair);
  }
}

/** No name holds a blank. */
function pairOf(from: string, to: string): string {
  return `${from} ${to}`;
}
