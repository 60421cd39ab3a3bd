// Curves over time as an SVG picture: panels one below the other with one axis of time, and spans that are
// marked through all of them. Pure: figures in, text out.

export interface Curve {
  readonly name: string;
  readonly color: string;
  /** Undefined interrupts the line. */
  readonly values: readonly (number | undefined)[];
}

export interface Panel {
  readonly title: string;
  readonly curves: readonly Curve[];
}

export interface Span {
  readonly says: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Plot {
  readonly title: string;
  /** Of the values of all curves; rises. */
  readonly timesMs: readonly number[];
  readonly panels: readonly Panel[];
  readonly spans: readonly Span[];
}

const WIDTH = 1_000;
const LEFT = 70;
const RIGHT = 130;
const TOP = 50;
const PANEL_HEIGHT = 150;
const PANEL_GAP = 45;
const AXIS_HEIGHT = 40;
const TICKS_OF_TIME = 8;
const LEGEND_LINE = 15;
const INK = '#222222';
const PALE = '#999999';
const MARKED = '#f3d9c9';
const ROUND = [1, 2, 2.5, 5, 10] as const;

export function svgPlot(plot: Plot): string {
  const height = TOP + plot.panels.length * (PANEL_HEIGHT + PANEL_GAP) + AXIS_HEIGHT;
  const endMs = Math.max(1, plot.timesMs.at(-1) ?? 1);
  const x = (ms: number): number => LEFT + (ms / endMs) * (WIDTH - LEFT - RIGHT);
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12" fill="${INK}">`,
    `<rect width="${WIDTH}" height="${height}" fill="white"/>`,
    `<text x="${LEFT}" y="24" font-size="16">${escaped(plot.title)}</text>`,
    ...plot.panels.flatMap((panel, place) => {
      const top = TOP + place * (PANEL_HEIGHT + PANEL_GAP) + 20;
      return panelParts(panel, plot, { top, x });
    }),
    ...timeAxis(endMs, x, height - AXIS_HEIGHT),
    '</svg>',
  ];
  return `${parts.join('\n')}\n`;
}

interface Frame {
  readonly top: number;
  readonly x: (ms: number) => number;
}

function panelParts(
  { title, curves }: Panel,
  { timesMs, spans }: Plot,
  { top, x }: Frame,
): readonly string[] {
  const most = topOfAxis(Math.max(0, ...curves.flatMap(({ values }) => values.map((v) => v ?? 0))));
  const y = (value: number): number => top + PANEL_HEIGHT - (value / most) * PANEL_HEIGHT;
  const right = WIDTH - RIGHT;
  return [
    `<text x="${LEFT}" y="${top - 6}">${escaped(title)}</text>`,
    ...spans.map(
      ({ says, fromMs, toMs }) =>
        `<rect x="${at(x(fromMs))}" y="${top}" width="${at(Math.max(1, x(toMs) - x(fromMs)))}" height="${PANEL_HEIGHT}" fill="${MARKED}"><title>${escaped(says)}</title></rect>`,
    ),
    ...[0, most / 2, most].flatMap((value) => [
      `<line x1="${LEFT}" x2="${right}" y1="${at(y(value))}" y2="${at(y(value))}" stroke="${PALE}" stroke-width="0.5"/>`,
      `<text x="${LEFT - 6}" y="${at(y(value) + 4)}" text-anchor="end">${shortNumber(value)}</text>`,
    ]),
    ...curves.map(
      ({ values, color }) =>
        `<path d="${pathOf(values, timesMs, { x, y })}" fill="none" stroke="${color}" stroke-width="1.4"/>`,
    ),
    ...curves.flatMap(({ name, color }, place) => {
      const line = top + 8 + place * LEGEND_LINE;
      return [
        `<rect x="${right + 10}" y="${line - 4}" width="14" height="4" fill="${color}"/>`,
        `<text x="${right + 30}" y="${line + 3}">${escaped(name)}</text>`,
      ];
    }),
  ];
}

function pathOf(
  values: readonly (number | undefined)[],
  timesMs: readonly number[],
  { x, y }: { readonly x: (ms: number) => number; readonly y: (value: number) => number },
): string {
  let isPenDown = false;
  const steps: string[] = [];
  values.forEach((value, place) => {
    if (value === undefined) {
      isPenDown = false;
      return;
    }
    steps.push(`${isPenDown ? 'L' : 'M'}${at(x(timesMs[place]!))} ${at(y(value))}`);
    isPenDown = true;
  });
  return steps.join('');
}

function timeAxis(endMs: number, x: (ms: number) => number, top: number): readonly string[] {
  const stepMs = 1_000 * topOfAxis(Math.max(1, endMs / 1_000 / TICKS_OF_TIME));
  const count = Math.floor(endMs / stepMs);
  return Array.from({ length: count + 1 }, (_, tick) => tick * stepMs).map(
    (ms) => `<text x="${at(x(ms))}" y="${top}" text-anchor="middle">${timeText(ms / 1_000)}</text>`,
  );
}

/** The next round number that is no smaller. */
function topOfAxis(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * (ROUND.find((round) => round * power >= value) ?? 10);
}

function shortNumber(value: number): string {
  return value >= 10_000 ? `${value / 1_000} k` : String(Number(value.toFixed(2)));
}

function timeText(seconds: number): string {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

function at(place: number): string {
  return place.toFixed(1);
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
