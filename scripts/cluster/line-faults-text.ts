// Cuts and delays in words: those that hold between whole datacenters as one, the rest node by node. Pure.

import type { ClusterDescription } from './cluster-files.ts';
import type { LineFault } from './lines.ts';

type Nodes = ClusterDescription['nodes'];

/** One sentence for each. */
export function lineFaultTexts(nodes: Nodes, faults: readonly LineFault[]): readonly string[] {
  const whole = betweenDatacenters(nodes, faults);
  const rest = faults.filter(
    (fault) =>
      !whole.some(({ from, to }) => isOf(nodes, from, fault.from) && isOf(nodes, to, fault.to)),
  );
  return inBothDirections([...whole, ...rest]);
}

function isOf(nodes: Nodes, datacenter: string, name: string): boolean {
  return nodes.some((node) => node.name === name && node.datacenter === datacenter);
}

/** Pairs of datacenters all of whose lines are in the same state. */
function betweenDatacenters(nodes: Nodes, faults: readonly LineFault[]): readonly LineFault[] {
  const datacenters = [...new Set(nodes.map(({ datacenter }) => datacenter))];
  const sizeOf = (datacenter: string): number =>
    nodes.filter((node) => node.datacenter === datacenter).length;
  return datacenters.flatMap((from) =>
    datacenters.flatMap((to) => {
      if (from === to) return [];
      const between = faults.filter(
        (fault) => isOf(nodes, from, fault.from) && isOf(nodes, to, fault.to),
      );
      const states = new Set(between.map(stateText));
      const isWhole = between.length === sizeOf(from) * sizeOf(to) && states.size === 1;
      return isWhole ? [{ ...between[0]!, from, to }] : [];
    }),
  );
}

function inBothDirections(faults: readonly LineFault[]): readonly string[] {
  const texts: string[] = [];
  const told = new Set<LineFault>();
  for (const fault of faults) {
    if (told.has(fault)) continue;
    const back = faults.find(
      ({ from, to, ...line }) =>
        from === fault.to &&
        to === fault.from &&
        stateText({ from, to, ...line }) === stateText(fault),
    );
    if (back !== undefined) told.add(back);
    const arrow = back === undefined ? '-->' : '<->';
    texts.push(`${fault.from} ${arrow} ${fault.to}: ${stateText(fault)}`);
  }
  return texts;
}

function stateText({ isCut, delayMs }: LineFault): string {
  const delay = delayMs > 0 ? [`${delayMs} ms late`] : [];
  return [...(isCut ? ['cut'] : []), ...delay].join(', ');
}
