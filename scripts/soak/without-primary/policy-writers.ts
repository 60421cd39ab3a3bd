// Clients of a secondary who write what all datacenters share. While the primary is away each write must be
// refused, or its outcome unknown; what was refused must not be there at the end, what was acknowledged must.

import type { NodeDescription } from '../../cluster/cluster-files.ts';
import type { Absence } from './absence.ts';
import type { Asker } from './asker.ts';

export class PolicyWriters {
  readonly #asker: Asker;
  readonly #absence: Absence;
  readonly #acknowledged: string[] = [];
  readonly #refused: string[] = [];
  #serial = 0;
  /** Refused while the primary was away, from asking to the answer. */
  refusedAwayCount = 0;
  unknownCount = 0;
  /** From asking to the refusal. */
  slowestRefusalMs = 0;

  constructor({ asker, absence }: { readonly asker: Asker; readonly absence: Absence }) {
    this.#asker = asker;
    this.#absence = absence;
  }

  get acknowledgedCount(): number {
    return this.#acknowledged.length;
  }

  async writeOne({ name, http }: NodeDescription): Promise<void> {
    this.#serial += 1;
    const body = { Name: `without-primary-${this.#serial}` };
    const wasAway = this.#absence.watch();
    const startedMs = performance.now();
    const path = '/v1/acl/policy';
    const answer = await this.#asker.ask({ http, path, method: 'PUT', body });
    if (answer?.status === 200) {
      this.#acknowledged.push(body.Name);
      if (wasAway())
        this.#asker.fault(`${name}: ${body.Name} was acknowledged while the primary was away`);
    } else if (answer?.status === 503) {
      this.#refused.push(body.Name);
      this.slowestRefusalMs = Math.max(this.slowestRefusalMs, performance.now() - startedMs);
      if (wasAway()) this.refusedAwayCount += 1;
    } else {
      this.unknownCount += 1;
      if (answer !== undefined && answer.status !== 504)
        this.#asker.fault(`${name}: ${body.Name}: ${answer.status} ${answer.text}`);
    }
  }

  /** What this server lists at the end against what was told. */
  async holdAgainst({ name, http }: NodeDescription): Promise<void> {
    const { text } = await this.#asker.mustDo({ http, path: '/v1/acl/policies' });
    const listed = new Set((JSON.parse(text) as { Name: string }[]).map(({ Name }) => Name));
    for (const policy of this.#acknowledged)
      if (!listed.has(policy)) this.#asker.fault(`${name}: ${policy} was acknowledged and is lost`);
    for (const policy of this.#refused)
      if (listed.has(policy)) this.#asker.fault(`${name}: ${policy} was refused and is there`);
  }
}
