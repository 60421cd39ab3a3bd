// The checks of a server's tables that were begun before its databases are opened: reading them takes as long
// as loading the program does, and need not wait for it.

import { existsSync, statSync } from 'node:fs';
import { must } from '../../../cluster/base/assert.ts';
import { databaseFolder, databaseGenerations, levelFolder } from './files.ts';
import { startTableChecks, type TableCheck } from './table-check.ts';

export class TableChecks {
  /** By the folder of the tables. */
  readonly #begun = new Map<string, TableCheck>();

  /** Begins to read the tables of these databases, of all their generations that are there. */
  begin(dataFolder: string, names: readonly string[]): void {
    if (statSync(dataFolder, { throwIfNoEntry: false })?.isDirectory() !== true) return;
    const locations = names.flatMap((name) =>
      databaseGenerations(dataFolder, name).map((generation) =>
        levelFolder(databaseFolder(dataFolder, name, generation)),
      ),
    );
    const checks = startTableChecks(locations.filter((location) => existsSync(location)));
    for (const check of checks) this.#begun.set(check.location, check);
  }

  /**
   * The check of a database that is about to be opened; begun now where it was not. Each is given once: what
   * the tables are at a second opening nobody has looked at.
   */
  take(location: string): TableCheck {
    const begun = this.#begun.get(location);
    this.#begun.delete(location);
    return begun ?? must(startTableChecks([location])[0], 'the check of this database');
  }
}
