// Why a datacenter wishes to be the primary, and what follows from that.

import type { RequireStill } from '../../../base/require-still.ts';

/** How a candidate stands. */
export type Wish =
  | ({ readonly kind: 'elected' } & OfOperator)
  /** The primary itself, whom somebody outran with a promise. Of no epoch behind `after` it had heard when it began. */
  | { readonly kind: 'renewed'; readonly after: number }
  | { readonly kind: 'handed-over'; readonly by: string }
  /** `next`: that an operator names, so that nobody does it twice. */
  | ({ readonly kind: 'forced'; readonly next: number } & OfOperator);

interface OfOperator {
  /** Asked before anybody gives anything up. */
  readonly requireStill: RequireStill | undefined;
}

/** A hand-over loses nothing that anybody has, and a renewed reign must not pass over one that has begun. */
export function takesRest({ kind }: Wish): boolean {
  return kind === 'elected' || kind === 'forced';
}
