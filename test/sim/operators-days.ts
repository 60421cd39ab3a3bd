// Bad days on which operators do several things at once, or what nobody advises: a datacenter is removed by force while
// the primary is moved, disks are put back while others are away or of two datacenters, archives are of elsewhere.

import { at, type BadDay } from './bad-day.ts';

const SMALL = [1, 1, 1];

export const OPERATORS_DAYS: readonly BadDay[] = [
  {
    name: 'a datacenter is removed by force while the primary is moved, and let back',
    marks: [
      'a datacenter was removed by force while the primary was moved',
      'a datacenter that was removed was allowed',
    ],
    siteSizes: SMALL,
    federation: { defaultAck: 'majority' },
    safetyMs: 36_000,
    faults: [
      at(5000, 5000, { kind: 'slow-wan', site: 2, meanMs: 500 }),
      at(6000, 0, { kind: 'hand-over', site: 2 }),
      at(6100, 0, { kind: 'remove-site', site: 3, isForced: true, isRushed: true }),
      at(13_000, 0, { kind: 'allow-site', site: 3, isForced: true, isRushed: true }),
      at(17_000, 6000, { kind: 'slow-wan', site: 3, meanMs: 500 }),
      at(18_000, 0, { kind: 'elect', sites: [3] }),
      at(18_200, 0, { kind: 'remove-site', site: 3, isForced: true, isRushed: true }),
      at(27_000, 0, { kind: 'allow-site', site: 3, isRushed: true }),
    ],
  },
  {
    name: 'the disks of two datacenters are put back at once',
    marks: [
      'the disks of two datacenters were put back at once',
      'a datacenter whose disks were put back has again what others had',
    ],
    siteSizes: [1, 3, 1],
    federation: { defaultAck: 'majority' },
    safetyMs: 30_000,
    faults: [
      at(5000, 300, { kind: 'copy-site', site: 1 }),
      at(7000, 300, { kind: 'copy-site', site: 2 }),
      ...[13_000, 14_000, 15_000].map((atMs) => {
        return at(atMs, 500, { kind: 'put-back-site', site: 1, beside: 2 });
      }),
    ],
  },
  {
    name: 'the disks of the primary are put back while another datacenter is away',
    marks: [
      'disks were put back while another datacenter was away',
      'the disks of the primary were put back to a copy',
      'a datacenter whose disks were put back has again what others had',
    ],
    siteSizes: SMALL,
    safetyMs: 34_000,
    faults: [
      at(5000, 300, { kind: 'copy-site', site: 1 }),
      at(9000, 9000, { kind: 'away', site: 3, direction: 'both' }),
      ...[12_000, 13_000].map((atMs) => {
        return at(atMs, 300, { kind: 'put-back-site', site: 1, mayBeAlone: true });
      }),
      at(24_000, 9000, { kind: 'site-down', site: 3, ending: 'power' }),
      ...[25_000, 26_000].map((atMs) => {
        return at(atMs, 300, { kind: 'put-back-site', site: 2, mayBeAlone: true });
      }),
    ],
  },
  {
    name: 'archives are restored that are none of this federation',
    marks: [
      'an archive of another federation was restored',
      'an archive from before the log began was restored',
      'an archive of another datacenter was refused',
    ],
    siteSizes: SMALL,
    federation: { hasGrants: true, hasLocalRights: true },
    safetyMs: 30_000,
    faults: [
      at(5000, 0, { kind: 'save-archive', site: 1 }),
      at(7000, 0, { kind: 'restore-archive', site: 1, madeOf: 'federation' }),
      at(11_000, 0, { kind: 'save-archive', site: 2 }),
      at(12_000, 0, { kind: 'restore-archive', site: 1, savedAt: 2 }),
      at(16_000, 0, { kind: 'restore-archive', site: 1, madeOf: 'before-the-log' }),
    ],
  },
  {
    name: 'local tokens link to what is changed and deleted elsewhere',
    marks: [
      'a linked token of one datacenter was allowed',
      'a linked token of one datacenter was denied',
    ],
    least: { linkedLocals: 5, linkedLogins: 2 },
    siteSizes: SMALL,
    federation: { hasLocalRights: true, defaultAck: 'majority' },
    safetyMs: 32_000,
    faults: [
      at(8000, 5000, { kind: 'away', site: 2, direction: 'both' }),
      at(17_000, 6000, { kind: 'away', site: 1, direction: 'both' }),
      at(19_000, 0, { kind: 'elect', sites: [3] }),
    ],
  },
  {
    name: 'local tokens are changed while namespaces, reigns, archives and disks come and go',
    marks: [
      'a local token that was changed had ended with its namespace',
      'a local token that was changed had expired',
      'an archive was restored',
      'the disks of a datacenter were put back to a copy',
    ],
    least: { changedMade: 20, changedUpdates: 20, changedDeleted: 5 },
    siteSizes: [1, 3, 1],
    federation: { hasChangedTokens: true, defaultAck: 'majority' },
    safetyMs: 36_000,
    faults: [
      at(5000, 0, { kind: 'save-archive', site: 1 }),
      at(7000, 3000, { kind: 'away', site: 2, direction: 'both' }),
      at(9000, 400, { kind: 'copy-site', site: 3 }),
      at(12_000, 0, { kind: 'restore-archive', site: 1 }),
      at(16_000, 3000, { kind: 'away', site: 1, direction: 'both' }),
      at(17_000, 0, { kind: 'elect', sites: [2] }),
      ...[25_000, 26_000].map((atMs) => at(atMs, 400, { kind: 'put-back-site', site: 3 })),
      at(33_000, 300, { kind: 'site-down', site: 2, ending: 'power' }),
    ],
  },
  {
    name: 'two datacenters are removed by force before others have heard of the first, and let back',
    marks: [
      'two datacenters were removed by force before others had heard of the first',
      'two datacenters that were removed by force take part again',
      'a primary was handed over',
    ],
    siteSizes: [1, 1, 1, 1, 1],
    federation: { defaultAck: 'majority' },
    safetyMs: 44_000,
    faults: [
      ...[4, 5].map((site) => at(5500, 4000, { kind: 'slow-wan', site, meanMs: 400 })),
      at(6000, 0, {
        ...{ kind: 'remove-two', sites: [2, 3], betweenMs: 150, goneMs: 3000, backFirst: 3 },
      }),
      at(7500, 0, { kind: 'elect', sites: [1] }),
      at(18_000, 0, { kind: 'hand-over', site: 4 }),
      ...[1, 2].map((site) => at(29_500, 3000, { kind: 'slow-wan', site, meanMs: 400 })),
      at(30_000, 0, {
        ...{ kind: 'remove-two', sites: [3, 5], betweenMs: 150, goneMs: 2000, backFirst: 3 },
      }),
      at(31_000, 0, { kind: 'hand-over', site: 1 }),
    ],
  },
];
