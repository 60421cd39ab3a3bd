// Datacenters that elect their primary, without disks and lines.

import { PromotionRefusal } from '../../../../cluster/federation/promotion/promotion-refusal.ts';
import { type Datacenter, PromotionWorld } from '../promotion-model.ts';

export const SEED = Number(process.env.CONCLAVE_SEED ?? 31_000);

export interface Three {
  readonly world: PromotionWorld;
  readonly one: Datacenter;
  readonly two: Datacenter;
  readonly three: Datacenter;
}

/** dc1 is primary with ten entries; dc2 has eight of them, dc3 six. */
export function threeDatacenters(): Three {
  const world = new PromotionWorld(1);
  const [one, two, three] = ['dc1', 'dc2', 'dc3'].map((name) => world.named(name)) as [
    Datacenter,
    Datacenter,
    Datacenter,
  ];
  for (let number = 1; number <= 10; number += 1) one.write(`${number}`);
  two.follow(one, 8);
  three.follow(one, 6);
  return { world, one, two, three };
}

export async function refusalOf(world: PromotionWorld, work: Promise<unknown>): Promise<string> {
  const caught = work.then(
    () => 'none',
    (error: unknown) =>
      error instanceof PromotionRefusal ? `${error.code}: ${error.message}` : `${String(error)}`,
  );
  return world.time.result(caught);
}

/** The primary writes every millisecond, and the others have it some milliseconds later. */
export function underLoad(world: PromotionWorld): () => number {
  let written = 0;
  const next = (): void => {
    const { latest, time } = world;
    if (latest.write(`under load ${written}`) !== undefined) written += 1;
    if (written % 5 === 0) for (const each of world.all) each.follow(latest, 1000);
    time.clock.after(1, next);
  };
  next();
  return () => written;
}

/**
 * dc2 is primary of epoch 2, and has what nobody else has; dc1 has promised epoch 3 to dc3, and dc3 is gone.
 */
export async function outrun({ hasBegun }: { readonly hasBegun: boolean }): Promise<Three> {
  const all = threeDatacenters();
  const { world, one, two, three } = all;
  two.follow(one, 10);
  three.follow(one, 10);
  await world.time.result(two.promotion.elect());
  two.write('of epoch 2');
  world.cuts.add('dc3 dc2').add('dc2 dc3');
  three.startFirst = () => hasBegun;
  await refusalOf(world, three.promotion.elect());
  three.isUp = false;
  return all;
}

/** An older release forced dc2 with epoch 2; nobody else has promised it, and it is gone. dc1 is primary of epoch 1. */
export async function forcedAndLost(): Promise<Three> {
  const all = threeDatacenters();
  const { world, two } = all;
  world.cuts.add('dc2 dc1').add('dc2 dc3');
  await world.time.result(two.forceAsBefore(2));
  two.write('of epoch 2');
  world.cuts.clear();
  two.isUp = false;
  return all;
}
