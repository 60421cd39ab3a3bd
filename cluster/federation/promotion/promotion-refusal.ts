// Why a datacenter does not become primary, for the operator who asked for it.

export type PromotionCode =
  /** Nothing has changed. */
  | 'refused'
  /** Some may have promised: they take nothing of a lower epoch. Trying again is the way on. */
  | 'undecided';

export class PromotionRefusal extends Error {
  override readonly name = 'PromotionRefusal';
  readonly code: PromotionCode;

  constructor(code: PromotionCode, says: string) {
    super(says);
    this.code = code;
  }
}

/** Nothing has changed. */
export function refused(says: string): PromotionRefusal {
  return new PromotionRefusal('refused', says);
}

/** Some may have promised. */
export function undecided(says: string): PromotionRefusal {
  return new PromotionRefusal('undecided', says);
}

/** What to do where that one alone has what `datacenter` has lost of its own reigns, and cannot be asked for it. */
export function wayOnWithout(
  that: string,
  datacenter: string,
  { isPrimary }: { readonly isPrimary: boolean },
): string {
  const wayOn = isPrimary
    ? `\`conclave operator datacenter remove ${that} --force\``
    : `\`conclave operator promote ${datacenter} --force …\``;
  return `start ${that}, or, if it is gone for good, ${wayOn}`;
}
