// The figures of one route: how many requests ended in which status, and how long they took. Labels
// are the route's template, never what a caller put in its place.

import type { Counter, Histogram, MetricsRegistry } from './metrics.ts';

export class RouteStats {
  readonly method: string;
  readonly template: string;
  readonly #metrics: MetricsRegistry;
  readonly #duration: Histogram;
  readonly #requestsByStatus = new Map<number, Counter>();

  constructor(
    metrics: MetricsRegistry,
    route: { readonly method: string; readonly template: string },
  ) {
    this.method = route.method;
    this.template = route.template;
    this.#metrics = metrics;
    this.#duration = metrics.histogram('conclave.http.request_ms', this.#labels());
  }

  record(status: number, durationMs: number): void {
    let counter = this.#requestsByStatus.get(status);
    if (counter === undefined) {
      const labels = { ...this.#labels(), status: String(status) };
      counter = this.#metrics.counter('conclave.http.requests', labels);
      this.#requestsByStatus.set(status, counter);
    }
    counter.add();
    this.#duration.observe(durationMs);
  }

  #labels(): { readonly method: string; readonly route: string } {
    return { method: this.method, route: this.template };
  }
}
