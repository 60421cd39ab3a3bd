// The figures of this process: counters, gauges and histograms with labels, shown as JSON or in the
// text format of Prometheus. Labels must come from closed sets (route templates, not ids): the number
// of series is bounded, and what comes beyond the bound is counted in one series of its own.

import {
  METRICS,
  type MetricDescription,
  type MetricName,
  type NameOf,
} from './metric-descriptions.ts';

export type Labels = Readonly<Record<string, string>>;

export interface Counter {
  add(amount?: number): void;
}

export interface Gauge {
  /** NaN: there is nothing to show. */
  set(value: number): void;
}

export interface Histogram {
  observe(value: number): void;
}

const SERIES_MAX = 5_000;
/** Upper bounds in the unit of the histogram; chosen for milliseconds. */
const BUCKETS = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];

interface Series {
  readonly type: MetricDescription['kind'];
  readonly name: MetricName;
  readonly labels: Labels;
  /** Of a histogram the sum of what was observed. */
  value: number;
  count: number;
  /** Only a histogram has some: how many values were at or below each bound. */
  readonly buckets: number[];
}

export class MetricsRegistry {
  readonly #series = new Map<string, Series>();
  readonly #collectors: (() => void)[] = [];

  /** A counter. The same name and labels give the same series. */
  counter(name: NameOf<'counter'>, labels: Labels = {}): Counter {
    const series = this.#seriesOf('counter', name, labels);
    return {
      add: (amount = 1) => {
        series.value += amount;
        series.count += 1;
      },
    };
  }

  gauge(name: NameOf<'gauge'>, labels: Labels = {}): Gauge {
    const series = this.#seriesOf('gauge', name, labels);
    return {
      set: (value) => {
        series.value = value;
      },
    };
  }

  histogram(name: NameOf<'histogram'>, labels: Labels = {}): Histogram {
    const series = this.#seriesOf('histogram', name, labels);
    return { observe: (value) => observe(series, value) };
  }

  /** Runs `action` before the figures are shown: for gauges that are cheaper to ask than to keep. */
  onCollect(action: () => void): void {
    this.#collectors.push(action);
  }

  /** The text format of Prometheus. Dots in names become underscores. */
  prometheus(): string {
    const byName = new Map<string, string[]>();
    for (const series of this.#collected()) {
      const name = series.name.replace(/[^a-zA-Z0-9_]/g, '_');
      const lines = byName.get(name) ?? [
        `# HELP ${name} ${METRICS[series.name].says}`,
        `# TYPE ${name} ${series.type}`,
      ];
      lines.push(...linesOf(series, name));
      byName.set(name, lines);
    }
    return [...byName.values()].map((lines) => `${lines.join('\n')}\n`).join('');
  }

  /** The shape that deployed clients read from agent/metrics. */
  toJson(wallMs: number): object {
    const all = this.#collected();
    const ofType = (type: Series['type']) => all.filter((series) => series.type === type);
    return {
      Timestamp: new Date(wallMs).toISOString(),
      Gauges: ofType('gauge').map(({ name, value, labels }) => ({
        Name: name,
        Value: value,
        Labels: labels,
      })),
      Points: [],
      Counters: ofType('counter').map(sampleOf),
      Samples: ofType('histogram').map(sampleOf),
    };
  }

  #collected(): readonly Series[] {
    for (const action of this.#collectors) action();
    return [...this.#series.values()].filter(({ value }) => !Number.isNaN(value));
  }

  #seriesOf(type: Series['type'], name: MetricName, labels: Labels): Series {
    const isFull = this.#series.size >= SERIES_MAX;
    const key = `${name}${labelText(labels)}`;
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    if (isFull && Object.keys(labels).length > 0) {
      return this.#seriesOf(type, name, {});
    }
    const buckets = type === 'histogram' ? BUCKETS.map(() => 0) : [];
    const series: Series = { type, name, labels, value: 0, count: 0, buckets };
    this.#series.set(key, series);
    return series;
  }
}

function observe(series: Series, value: number): void {
  series.value += value;
  series.count += 1;
  for (let place = BUCKETS.length - 1; place >= 0; place -= 1) {
    if (value > (BUCKETS[place] as number)) return;
    series.buckets[place] = (series.buckets[place] ?? 0) + 1;
  }
}

function sampleOf(series: Series): object {
  return {
    Name: series.name,
    Count: series.count,
    Sum: series.value,
    Mean: series.count === 0 ? 0 : series.value / series.count,
    Labels: series.labels,
  };
}

function linesOf(series: Series, name: string): string[] {
  const labels = labelText(series.labels);
  if (series.type !== 'histogram') return [`${name}${labels} ${series.value}`];
  const others = labels === '' ? '' : `${labels.slice(1, -1)},`;
  const bucket = (bound: string, count: number) =>
    `${name}_bucket{${others}le="${bound}"} ${count}`;
  return [
    ...BUCKETS.map((bound, place) => bucket(String(bound), series.buckets[place] ?? 0)),
    bucket('+Inf', series.count),
    `${name}_sum${labels} ${series.value}`,
    `${name}_count${labels} ${series.count}`,
  ];
}

/** `{route="…",status="200"}`, or nothing. */
function labelText(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return parts.length === 0 ? '' : `{${parts.join()}}`;
}
