// Links and calls through drawn breaks, cuts, delays and deaths.
// Another draw: CONCLAVE_SEED=<seed>; more of them: CONCLAVE_RUNS=<count>.

import t from 'tap';
import { streamOf } from '../../support/simulated/simulated-world.ts';
import { SEED } from './impostor.ts';
import { aCall, aHeartbeat, introduce, Rig, type RigNode } from './rig.ts';

const RUNS = Number(process.env.CONCLAVE_RUNS ?? 5);

t.test(
  'link: after any trouble there is one connection a lane, and every call came to something',
  async (test) => {
    test.comment(`seed ${SEED}; again: CONCLAVE_SEED=${SEED} node ${process.argv[1]}`);
    for (let seed = SEED; seed < SEED + RUNS; seed += 1) {
      const rig = new Rig({ seed });
      const nodes: RigNode[] = [];
      for (const [place, name] of ['one', 'two', 'three'].entries()) {
        nodes.push(await rig.open(name, { node: place + 1 }));
      }
      introduce(...nodes);
      const { asked, answered } = await trouble(rig, nodes, streamOf(seed));
      rig.net.heal();
      await rig.run(8_000);
      test.equal(answered(), asked(), `seed ${seed}`);
      for (const [left, right] of pairsOf(nodes)) {
        const says = `seed ${seed}, ${left.name} and ${right.name}`;
        test.ok(left.isLinkedWith(right) && right.isLinkedWith(left), says);
        test.equal(rig.net.countBetween(left.name, right.name), 2, says);
        right.messages.length = 0;
        left.transport.send(aHeartbeat(left, right));
        test.equal(await rig.outcome(right.transport.call(left.node, aCall())), 'answer hello');
        test.equal(right.messages.length, 1, says);
      }
    }
  },
);

function pairsOf(nodes: readonly RigNode[]): readonly (readonly [RigNode, RigNode])[] {
  const [one, two, three] = nodes as [RigNode, RigNode, RigNode];
  return [
    [one, two],
    [one, three],
    [two, three],
  ];
}

/** Breaks, cuts, delays and sudden deaths, while everybody says and asks something. */
async function trouble(
  rig: Rig,
  nodes: RigNode[],
  draw: () => number,
): Promise<{ readonly asked: () => number; readonly answered: () => number }> {
  let askedCount = 0;
  let answeredCount = 0;
  const below = (count: number): number => Math.floor(draw() * count);
  rig.net.drawExtraMs = () => below(6);
  for (let round = 0; round < 30; round += 1) {
    const [from, to] = [nodes[below(3)]!, nodes[below(3)]!];
    rig.net.delayMs = below(8);
    if (draw() < 0.4) rig.net.breakAll(from.name, to.name);
    if (draw() < 0.3) rig.net.cut(from.name, to.name);
    if (draw() < 0.3) rig.net.heal();
    if (draw() < 0.1) await dieAndComeBack(rig, nodes, below(3), `life-${round}`);
    for (const each of nodes) {
      if (each === from) continue;
      from.transport.send(aHeartbeat(from, each, round));
      askedCount += 1;
      const call = from.transport.call(
        each.node,
        aCall({ payload: new Uint8Array(below(100_000)) }),
      );
      void call.then(String, String).then(() => {
        answeredCount += 1;
      });
    }
    await rig.run(below(300));
  }
  return { asked: () => askedCount, answered: () => answeredCount };
}

/** Nobody is told: its connections stay half open, and it comes back somewhere else. */
async function dieAndComeBack(
  rig: Rig,
  nodes: RigNode[],
  place: number,
  name: string,
): Promise<void> {
  const dead = nodes[place]!;
  rig.net.kill(dead.name);
  nodes[place] = await rig.open(name, { node: dead.node });
  introduce(...nodes);
}
