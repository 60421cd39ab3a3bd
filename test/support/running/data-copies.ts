// Copies of the data folders of whole datacenters, as snapshots of machines are: kept on one day, and put back on a
// later one.

import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatacenterUnderTest } from './running-datacenters.ts';
import { allReady, type ServerUnderTest } from './running-group.ts';

interface Owner {
  teardown(action: () => void): void;
}

export class DataCopies {
  readonly #folder = mkdtempSync(join(tmpdir(), 'data-copies-'));

  constructor(owner: Owner) {
    owner.teardown(() => rmSync(this.#folder, { recursive: true }));
  }

  /** Its servers are closed for that, and ready again then. */
  keep(datacenter: DatacenterUnderTest): Promise<void> {
    return whileClosed(datacenter, (each) => {
      cpSync(each.dataFolder, this.#copyOf(each), { recursive: true });
    });
  }

  /** The same. What they have written since is lost. */
  putBack(datacenter: DatacenterUnderTest): Promise<void> {
    return whileClosed(datacenter, (each) => {
      each.loseDisk();
      cpSync(this.#copyOf(each), each.dataFolder, { recursive: true });
    });
  }

  #copyOf({ name }: ServerUnderTest): string {
    return join(this.#folder, name);
  }
}

async function whileClosed(
  { servers }: DatacenterUnderTest,
  work: (server: ServerUnderTest) => void,
): Promise<void> {
  await Promise.all(servers.map((each) => each.close()));
  for (const each of servers) work(each);
  await Promise.all(servers.map((each) => each.open()));
  await allReady(servers);
}
