// What a soak came to: figures in words, and the same as a picture. Pure: samples in, texts out.

import type { Sample } from './sampler.ts';
import type { FaultSpan } from './soak-faults.ts';
import { type Curve, type Panel, svgPlot } from './svg-plot.ts';

export interface SoakOutcome {
  readonly seed: number;
  readonly samples: readonly Sample[];
  readonly spans: readonly FaultSpan[];
  readonly tokensMade: number;
  /** What else there is to say, and how much of it. */
  readonly figures: readonly (readonly [string, string])[];
  /** Whatever must not be; empty when all is well. */
  readonly faults: readonly string[];
}

const COLORS = [
  '#1b6ca8',
  '#c0392b',
  '#1e8449',
  '#8e44ad',
  '#b9770e',
  '#117a65',
  '#5d6d7e',
] as const;

/** Of the time, at which figures are shown. */
const QUARTERS = [0, 0.25, 0.5, 0.75, 1] as const;

export function soakPicture({ seed, samples, spans }: SoakOutcome): string {
  return svgPlot({
    title: `Soak with seed ${seed}; marked: a fault is under way`,
    timesMs: samples.map(({ atMs }) => atMs),
    spans,
    panels: [...clientPanels(samples), ...nodePanels(samples)],
  });
}

function clientPanels(samples: readonly Sample[]): readonly Panel[] {
  const perSecond = (name: string, color: number, of: keyof Sample['counts']): Curve => ({
    ...{ name, color: COLORS[color]! },
    values: samples.map(({ counts, tookMs }) => (counts[of] * 1_000) / tookMs),
  });
  const slowest = samples.map(({ counts }) => counts.slowestMs);
  return [
    {
      title: 'Answers a second',
      curves: [
        perSecond('reads', 0, 'reads'),
        perSecond('writes', 2, 'writes'),
        perSecond('refused', 4, 'refused'),
        perSecond('not known', 1, 'unknown'),
      ],
    },
    {
      title: 'Slowest answer, milliseconds',
      curves: [{ name: 'slowest', color: COLORS[0], values: slowest }],
    },
  ];
}

/** Each with a curve for each server. */
function nodePanels(samples: readonly Sample[]): readonly Panel[] {
  const panel = (
    title: string,
    pick: (node: Sample['nodes'][number]) => number | undefined,
  ): Panel => ({
    title,
    curves: namesIn(samples).map((name, place) => ({
      name,
      color: COLORS[place % COLORS.length]!,
      values: samples.map(({ nodes }) => {
        const node = nodes.find((each) => each.name === name);
        return node === undefined ? undefined : pick(node);
      }),
    })),
  });
  return [
    panel('Lag, entries that its group has committed and it has not applied', ({ lag }) => lag),
    panel(
      'Behind, entries of the global log that another server has and it has not',
      ({ behind }) => behind,
    ),
    panel('Term: each step is an election', ({ term }) => term),
    panel('Memory, MiB resident', ({ residentMib }) => residentMib),
    panel('Open handles', ({ handles }) => handles),
  ];
}

/** As Markdown. */
export function soakText(outcome: SoakOutcome): string {
  const { seed, samples, spans, faults, tokensMade, figures } = outcome;
  const total = (pick: (counts: Sample['counts']) => number): number =>
    samples.reduce((sum, { counts }) => sum + pick(counts), 0);
  const minutes = (samples.at(-1)?.atMs ?? 0) / 60_000;
  const lines = [
    '# Soak',
    '',
    `${minutes.toFixed(1)} minutes, seed ${seed}: ${faults.length === 0 ? 'nothing was lost' : `${faults.length} faults were found`}.`,
    '',
    ...faults.map((fault) => `- ${fault}`),
    ...(faults.length > 0 ? [''] : []),
    '| | |',
    '|---|---|',
    `| reads answered | ${total(({ reads }) => reads)} |`,
    `| writes answered | ${total(({ writes }) => writes)} |`,
    `| refused, nothing done | ${total(({ refused }) => refused)} |`,
    `| outcome not known | ${total(({ unknown }) => unknown)} |`,
    `| tokens made and held against the end | ${tokensMade} |`,
    `| slowest answer | ${Math.round(Math.max(0, ...samples.map(({ counts }) => counts.slowestMs)))} ms |`,
    ...figures.map(([what, howMuch]) => `| ${what} | ${howMuch} |`),
    '',
    '| node | memory at first, after each quarter, most (MiB) | handles at first, after each quarter, most | elections seen |',
    '|---|---|---|---|',
    ...namesIn(samples).map((name) => nodeLine(name, samples)),
    '',
    '| from | to | fault |',
    '|---|---|---|',
    ...spans.map(({ says, fromMs, toMs }) => `| ${seconds(fromMs)} | ${seconds(toMs)} | ${says} |`),
    '',
  ];
  return lines.join('\n');
}

function nodeLine(name: string, samples: readonly Sample[]): string {
  const own = samples.flatMap(({ nodes }) => nodes.filter((node) => node.name === name));
  const range = (values: readonly (number | undefined)[]): string => {
    const known = values.filter((value) => value !== undefined);
    if (known.length === 0) return 'not known here';
    const shown = QUARTERS.map((part) => known[Math.floor(part * (known.length - 1))]!);
    return [...shown, Math.max(...known)].map(Math.round).join(', ');
  };
  const terms = own.map(({ term }) => term).filter((term) => term !== undefined);
  const elections = terms.length === 0 ? 0 : terms.at(-1)! - terms[0]!;
  const memory = range(own.map(({ residentMib }) => residentMib));
  return `| ${name} | ${memory} | ${range(own.map(({ handles }) => handles))} | ${elections} |`;
}

function namesIn(samples: readonly Sample[]): readonly string[] {
  return [...new Set(samples.flatMap(({ nodes }) => nodes.map(({ name }) => name)))];
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
