// The local cluster at one glance: a row for each server, then what is wrong with the lines.

import picocolors from 'picocolors';
import { type Column, tableLines } from '../../src/cli/show/table.ts';
import type { NodeDescription } from './cluster-files.ts';
import { behindOf, type Figures, figuresOfAll, seqOf } from './figures.ts';
import { lineFaultTexts } from './line-faults-text.ts';
import type { ProcessState } from './server-process.ts';
import type { ClusterState } from './supervisor/orders.ts';

interface Row {
  readonly node: NodeDescription;
  readonly isPrimary: boolean;
  readonly process: ProcessState;
  readonly figures: Figures;
  /** Entries of the log that the furthest of its datacenter has and this one has not applied. */
  readonly lag: number | undefined;
  /** Entries of the global log that the furthest of all has and this one has not. */
  readonly behind: number | undefined;
}

const COLUMNS: readonly Column<Row>[] = [
  { heading: 'Node', cell: ({ node }) => node.name },
  {
    heading: 'Datacenter',
    cell: ({ node, isPrimary }) => node.datacenter + (isPrimary ? ' (primary)' : ''),
  },
  { heading: 'HTTP', cell: ({ node }) => node.http },
  { heading: 'Process', cell: ({ process }) => processText(process) },
  { heading: 'Role', cell: ({ figures }) => figures.role ?? '' },
  { heading: 'Term', cell: ({ figures }) => String(figures.term ?? '') },
  { heading: 'Applied', cell: ({ figures }) => String(figures.appliedIndex ?? '') },
  { heading: 'Lag', cell: ({ lag }) => String(lag ?? '') },
  { heading: 'Index', cell: ({ figures }) => String(figures.index ?? '') },
  { heading: 'Position', cell: ({ figures }) => figures.position ?? '' },
  { heading: 'Behind', cell: ({ behind }) => String(behind ?? '') },
  { heading: 'Health', cell: ({ figures }) => figures.health },
];

/** Asks all servers. */
export async function statusText(state: ClusterState, hasColors: boolean): Promise<string> {
  const figures = await figuresOfAll(unpaused(state));
  const rows = rowsOf(state, figures);
  const parts: string[] = [];
  const colors = picocolors.createColors(hasColors);
  async function* pages(): AsyncGenerator<readonly Row[]> {
    yield rows;
  }
  for await (const text of tableLines(COLUMNS, pages(), colors)) parts.push(text);
  const faults = lineFaultTexts(state.cluster.nodes, state.faults);
  if (faults.length > 0) parts.push('\nLines:\n', ...faults.map((fault) => `  ${fault}\n`));
  return parts.join('');
}

/** One that stands still would only keep everybody waiting. */
function unpaused({ cluster, states }: ClusterState): ClusterState['cluster'] {
  const nodes = cluster.nodes.map((node) =>
    states[node.name]?.kind === 'paused' ? { ...node, pid: null } : node,
  );
  return { ...cluster, nodes };
}

function rowsOf(
  { cluster, states }: ClusterState,
  figures: ReadonlyMap<string, Figures>,
): readonly Row[] {
  const headSeq = Math.max(0, ...[...figures.values()].map((each) => seqOf(each) ?? 0));
  return cluster.nodes.map((node) => {
    const own = figures.get(node.name)!;
    const process = states[node.name]!;
    const commits = cluster.nodes
      .filter(({ datacenter }) => datacenter === node.datacenter)
      .map(({ name }) => figures.get(name)?.commitIndex ?? 0);
    const isPaused = process.kind === 'paused';
    return {
      node,
      isPrimary: node.datacenter === cluster.primary_datacenter,
      process,
      figures: isPaused ? { ...own, health: 'stands still' } : own,
      lag: own.appliedIndex === undefined ? undefined : Math.max(...commits) - own.appliedIndex,
      behind: behindOf(headSeq, own),
    };
  });
}

function processText(process: ProcessState): string {
  if (process.kind === 'ended') return process.says;
  return process.kind === 'paused' ? `${process.pid} paused` : String(process.pid);
}
