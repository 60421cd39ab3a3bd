// Draws one of several kinds, each as often as its weight says.

import type { Stream } from '../world/stream.ts';

export function drawWeighted<Kind extends string>(
  stream: Stream,
  weights: Readonly<Record<Kind, number>>,
): Kind {
  const kinds = Object.keys(weights) as Kind[];
  const total = kinds.reduce((sum, kind) => sum + weights[kind], 0);
  let left = stream.fraction() * total;
  for (const kind of kinds) {
    left -= weights[kind];
    if (left < 0) return kind;
  }
  return kinds.at(-1)!;
}
