// Planted bugs about what a datacenter has alone, and changes.

import type { Token } from '../../../src/acl/token.ts';
import { CallerResolver } from '../../../src/service/rights/caller-resolver.ts';
import { ChangeSet } from '../../../src/state/change-set.ts';
import type { Stamped } from '../../../src/state/rows/layout/stamp.ts';
import type { ObjectTable } from '../../../src/state/rows/objects/objects.ts';
import type { Mutant } from './mutant.ts';
import { replaced, together } from './replaced.ts';

export const LOCAL_MUTANTS: readonly Mutant[] = [
  {
    name: 'endless-changes',
    breaks: 'a local token that is changed has no end any more',
    foundBy: ['local tokens'],
    subject: 'datacenters',
    seed: 31,
    install: () =>
      replaced(ChangeSet.prototype, 'put', (real) => {
        return function <T extends Stamped>(this: ChangeSet, table: ObjectTable<T>, object: T) {
          const isChanged = table.isLocal(object) && object.createIndex !== object.modifyIndex;
          real.call(this, table, isChanged ? { ...object, expirationTime: undefined } : object);
        } as ChangeSet['put'];
      }),
  },
  {
    name: 'remembered-changes',
    breaks: 'a local token is remembered though it was changed',
    foundBy: ['local tokens', 'revocations'],
    subject: 'datacenters',
    seed: 27,
    install: () => {
      const changed = new Set<string>();
      return together(
        replaced(ChangeSet.prototype, 'put', (real) => {
          return function <T extends Stamped>(this: ChangeSet, table: ObjectTable<T>, object: T) {
            const isChanged = table.isLocal(object) && object.createIndex !== object.modifyIndex;
            if (isChanged) changed.add((object as unknown as Token).accessorId);
            real.call(this, table, object);
          } as ChangeSet['put'];
        }),
        replaced(CallerResolver.prototype, 'onApplied', (real) => {
          return function (this: CallerResolver, event) {
            if (event.kind !== 'changed') return real.call(this, event);
            const changes = event.changes.filter(({ table, key }) => {
              return table !== 'tokens' || !changed.delete(key);
            });
            real.call(this, { ...event, changes });
          };
        }),
      );
    },
  },
];
