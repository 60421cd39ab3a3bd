// The checks of a server's tables that were begun before its databases are opened: reading them takes as long
// as loading the program does, and need not wait for it.

import { existsSync, statSync } from 'node:fs';
import { databaseFolder, databaseGenerations, levelFolder } from './files.ts';
import { startTableCheck, type TableCheck } from './table-check.ts';

export class TableChecks {
  /** By the folder of the tables. */
  readonly #begun = new Map<string, TableCheck>();

  /** Begins to read the tables of these databases, of all their generations that are there. */
  begin(dataFolder: string, names: readonly string[]): void {
    if (statSync(dataFolder, { throwIfNoEntry: false })?.isDirectory() !== true) return;
    for (const name of names) {
      for (const generation of databaseGenerations(dataFolder, name)) {
        const location = levelFolder(databaseFolder(dataFolder, name, generation));
        if (existsSync(location)) this.#begun.set(location, startTableCheck(location));
      }
    }
  }

  /**
   * The check of a database that is about to be opened; begun now where it was not. Each is given once: what
   * the tables are at a second opening nobody has looked at.
   */
  take(location: string): TableCheck {
    const begun = this.#begun.get(location) ?? startTableCheck(location);
    this.#begun.delete(location);
    return begun;
  }
}
