// Days on which much goes wrong between datacenters, each with a plan of its own: what chance draws seldom
// in that order. All else follows from the seed, and every checker looks at it.

import { FIRST_LEVEL } from '../../src/state/commands/feature-levels.ts';
import { at, type BadDay } from './bad-day.ts';
import { OPERATORS_DAYS } from './operators-days.ts';
import type { RunOptions } from './run/run-options.ts';

const SMALL = [1, 1, 1];
const LARGE = [3, 3, 1];
const FIVE = [1, 1, 1, 1, 1];
const HOUR_MS = 3_600_000;

export const BAD_DAYS: readonly BadDay[] = [
  {
    name: 'the primary is away for long, with load elsewhere',
    marks: [],
    siteSizes: SMALL,
    safetyMs: 70_000,
    faults: [at(5000, 62_000, { kind: 'away', site: 1, direction: 'both' })],
  },
  {
    name: 'the primary is away for an hour, with load elsewhere',
    marks: ['a token of a login had expired'],
    least: { localMade: 20, localPresented: 60, logins: 20, nothing: 100, reads: 200 },
    siteSizes: SMALL,
    keyCount: 3,
    // So few questions and heartbeats that an hour of them can be paid for.
    thinkMs: 8000,
    tickMs: 1000,
    federation: { logMaxAgeMs: 2 * HOUR_MS, loginTtlMs: 60_000 },
    safetyMs: HOUR_MS + 70_000,
    faults: [at(60_000, HOUR_MS, { kind: 'away', site: 1, direction: 'both' })],
  },
  {
    name: 'lines between datacenters are cut one way',
    marks: [],
    siteSizes: SMALL,
    safetyMs: 32_000,
    faults: [
      at(4000, 5000, { kind: 'cut-wan', from: 1, to: 2 }),
      at(9000, 5000, { kind: 'cut-wan', from: 2, to: 1 }),
      at(15_000, 10_000, { kind: 'away', site: 1, direction: 'in' }),
      at(17_000, 100, { kind: 'elect', sites: [2] }),
      at(26_000, 5000, { kind: 'away', site: 2, direction: 'out' }),
    ],
  },
  {
    name: 'leaders on both sides are killed in the middle of a batch',
    marks: ['killed while it takes in: entries'],
    siteSizes: LARGE,
    safetyMs: 15_000,
    faults: [3000, 8000].flatMap((atMs) => [
      at(atMs, 4000, { kind: 'ambush', site: 1, moment: 'entries', ending: 'power' }),
      at(atMs + 2000, 4000, { kind: 'ambush', site: 2, moment: 'entries', ending: 'process' }),
    ]),
  },
  {
    name: 'a server is killed while it takes a snapshot in',
    marks: ['killed while it takes in: snapshot', 'a snapshot of the primary became the state'],
    siteSizes: SMALL,
    federation: { logMaxAgeMs: 1000 },
    safetyMs: 30_000,
    faults: [
      at(4200, 9800, { kind: 'away', site: 2, direction: 'both' }),
      at(13_000, 16_000, { kind: 'ambush', site: 2, moment: 'snapshot', ending: 'power' }),
      at(13_500, 16_000, { kind: 'ambush', site: 2, moment: 'snapshot', ending: 'process' }),
    ],
  },
  {
    name: 'two datacenters are promoted at once',
    marks: ['a primary was elected'],
    siteSizes: SMALL,
    safetyMs: 25_000,
    faults: [
      at(5000, 100, { kind: 'elect', sites: [2, 3] }),
      at(9000, 8000, { kind: 'away', site: 1, direction: 'both' }),
      at(11_000, 100, { kind: 'elect', sites: [3, 2] }),
      at(14_000, 100, { kind: 'elect', sites: [2, 3] }),
      at(20_000, 100, { kind: 'elect', sites: [1, 3] }),
    ],
  },
  {
    name: 'one that lacks what others have is to be promoted, and is given it',
    marks: ['says: took what a datacenter had more', 'a primary was elected'],
    siteSizes: SMALL,
    federation: { defaultAck: 'majority' },
    safetyMs: 28_000,
    faults: [
      at(4000, 18_000, { kind: 'cut-wan', from: 1, to: 3 }),
      at(12_000, 10_000, { kind: 'away', site: 1, direction: 'both' }),
      at(12_500, 100, { kind: 'elect', sites: [3] }),
    ],
  },
  {
    name: 'a witness votes for the one that is left, and cannot be promoted itself',
    marks: ['a primary was elected', 'a primary was not elected'],
    siteSizes: SMALL,
    federation: { defaultAck: 'majority', witnessSite: 3, hasLogouts: true },
    safetyMs: 26_000,
    faults: [
      at(5000, 8000, { kind: 'away', site: 1, direction: 'both' }),
      at(6000, 100, { kind: 'elect', sites: [3] }),
      at(8000, 100, { kind: 'elect', sites: [2] }),
      at(16_000, 6000, { kind: 'away', site: 2, direction: 'both' }),
      at(18_000, 100, { kind: 'elect', sites: [1] }),
    ],
  },
  {
    name: 'the first primary is outrun beside a witness, and its successor is lost for good',
    marks: [
      'says: went back to where a later reign left the own log',
      'says: took what a datacenter had more',
    ],
    siteSizes: SMALL,
    federation: { defaultAck: 'majority', witnessSite: 3, hasLogouts: true, awaySites: [2] },
    safetyMs: 22_000,
    faults: [
      at(8000, 60_000, { kind: 'away', site: 1, direction: 'both' }),
      at(12_000, 100, { kind: 'elect', sites: [2] }),
    ],
  },
  {
    name: 'a server is killed while the first primary goes back, beside a witness',
    marks: [
      'killed while it takes in: snapshot',
      'says: went back to where a later reign left the own log',
      'a primary was elected',
    ],
    siteSizes: [3, 1, 1],
    federation: { defaultAck: 'majority', witnessSite: 3 },
    safetyMs: 56_000,
    faults: [
      at(8000, 20_000, { kind: 'away', site: 1, direction: 'both' }),
      at(9000, 100, { kind: 'elect', sites: [2] }),
      at(27_000, 28_000, { kind: 'away', site: 2, direction: 'both' }),
      at(28_500, 26_000, { kind: 'ambush', site: 1, moment: 'snapshot', ending: 'power' }),
      ...[31_000, 39_000, 47_000].map((atMs) => at(atMs, 100, { kind: 'elect', sites: [1] })),
    ],
  },
  {
    name: 'a datacenter is promoted by force, and the old primary returns',
    marks: ['a primary was forced'],
    siteSizes: SMALL,
    federation: { defaultAck: 'primary' },
    safetyMs: 30_000,
    faults: [
      at(6000, 16_000, { kind: 'away', site: 1, direction: 'both' }),
      at(9000, 10_000, { kind: 'away', site: 3, direction: 'both' }),
      at(14_000, 100, { kind: 'force', site: 2 }),
    ],
  },
  {
    name: 'the log of a lonely primary is trimmed, and another one is forced',
    marks: ['a primary was forced', 'entries that nobody else has had been trimmed'],
    siteSizes: SMALL,
    federation: { defaultAck: 'primary', logMaxAgeMs: 1000 },
    safetyMs: 30_000,
    faults: [
      at(6000, 14_000, { kind: 'away', site: 1, direction: 'both' }),
      at(9000, 9000, { kind: 'away', site: 3, direction: 'both' }),
      at(14_000, 100, { kind: 'force', site: 2 }),
    ],
  },
  {
    name: 'the log is not kept for a datacenter that is away for too long',
    marks: ['a snapshot of the primary became the state'],
    siteSizes: SMALL,
    federation: { logMaxAgeMs: 1000, wanLeastMs: 150, wanMeanMs: 20 },
    safetyMs: 32_000,
    faults: [4000, 18_000].map((atMs) =>
      at(atMs, 9000, { kind: 'away', site: 3, direction: 'both' }),
    ),
  },
  {
    name: 'auth methods are deleted while datacenters are away',
    marks: ['a login made a token', 'a token of a login had ended'],
    siteSizes: SMALL,
    keyCount: 1,
    federation: { wanLeastMs: 60, wanMeanMs: 20 },
    safetyMs: 40_000,
    faults: [
      at(6000, 6000, { kind: 'away', site: 2, direction: 'both' }),
      at(10_000, 5000, { kind: 'away', site: 3, direction: 'in' }),
      at(18_000, 6000, { kind: 'away', site: 1, direction: 'both' }),
      at(26_000, 5000, { kind: 'away', site: 2, direction: 'out' }),
      at(28_000, 6000, { kind: 'away', site: 3, direction: 'both' }),
    ],
  },
  {
    name: 'tokens of logins expire, or are given back, while datacenters are away',
    marks: ['a token of a login had expired', 'a token of a login was given back'],
    siteSizes: SMALL,
    keyCount: 1,
    federation: { loginTtlMs: 3000, hasLogouts: true },
    safetyMs: 26_000,
    faults: [
      at(5000, 8000, { kind: 'away', site: 1, direction: 'both' }),
      at(12_000, 6000, { kind: 'away', site: 2, direction: 'in' }),
      at(16_000, 500, { kind: 'crash', target: 1, ending: 'power' }),
      at(18_000, 6000, { kind: 'away', site: 3, direction: 'both' }),
    ],
  },
  {
    name: 'disks of servers of a secondary are replaced',
    marks: [],
    siteSizes: [1, 3, 1],
    safetyMs: 18_000,
    faults: [
      at(4000, 2000, { kind: 'replace', target: 3 }),
      at(11_000, 2000, { kind: 'replace', target: 4 }),
    ],
  },
  {
    name: 'whoever elected another primary loses all its disks, and meets the old one',
    marks: [
      'a primary was elected',
      'all disks of a datacenter were lost',
      'a datacenter was removed',
      'a datacenter that had lost all its disks took part again',
    ],
    siteSizes: SMALL,
    federation: { defaultAck: 'majority' },
    safetyMs: 22_000,
    faults: [
      at(4000, 12_000, { kind: 'away', site: 1, direction: 'both' }),
      at(6000, 100, { kind: 'elect', sites: [2] }),
      at(11_000, 500, { kind: 'empty-site', site: 3 }),
      at(11_000, 11_000, { kind: 'away', site: 2, direction: 'both' }),
      // From now on the old one knows of the lost one what its log says, and no more.
      at(13_000, 500, { kind: 'site-down', site: 1, ending: 'process' }),
    ],
  },
  {
    name: 'a datacenter is removed and goes on, and is allowed again',
    marks: ['a datacenter was removed', 'a datacenter that was removed was allowed'],
    siteSizes: [1, 3, 1],
    safetyMs: 20_000,
    faults: [
      at(5000, 0, { kind: 'remove-site', site: 2 }),
      at(12_000, 0, { kind: 'allow-site', site: 2 }),
    ],
  },
  {
    name: 'the first primary loses all its disks, and comes back under another one',
    marks: [
      'all disks of the first primary were lost',
      'a primary was elected',
      'a datacenter that had lost all its disks took part again',
    ],
    siteSizes: [3, 1, 1],
    safetyMs: 20_000,
    faults: [
      at(6000, 1000, { kind: 'empty-site', site: 1 }),
      at(8000, 100, { kind: 'elect', sites: [2] }),
    ],
  },
  {
    name: 'a server of an older release is gone for good, and keeps its datacenter behind',
    marks: ['a server was removed that kept its datacenter behind'],
    siteSizes: [3, 1, 1],
    federation: { olderHosts: [1, 2, 3] },
    safetyMs: 8000,
    faults: [],
  },
  {
    name: 'a server of an older release is gone for good before its datacenter has the global log',
    marks: ['a server was replaced that kept its datacenter from the global log'],
    siteSizes: [1, 3, 1],
    federation: { olderHosts: [2, 3, 4], olderLevel: 4 },
    safetyMs: 8000,
    faults: [],
  },
  {
    name: 'a server of a release without a global log is gone for good before its datacenter has one',
    marks: ['a server was replaced that kept its datacenter from the global log'],
    siteSizes: [1, 3, 1],
    federation: { olderHosts: [2, 3, 4], olderLevel: FIRST_LEVEL },
    safetyMs: 8000,
    faults: [],
  },
  {
    name: 'archives are restored at the primary, and refused elsewhere',
    marks: [
      'an archive was restored',
      'an archive became the state of the primary',
      'a secondary was not restored',
    ],
    siteSizes: [3, 1, 1],
    federation: { hasLogouts: true, hasTenants: true },
    safetyMs: 24_000,
    faults: [
      at(4000, 0, { kind: 'save-archive', site: 2 }),
      at(5000, 0, { kind: 'save-archive', site: 1 }),
      at(8000, 3000, { kind: 'away', site: 3, direction: 'both' }),
      at(9000, 0, { kind: 'restore-archive', site: 1 }),
      at(13_000, 0, { kind: 'restore-archive', site: 2 }),
      at(16_000, 0, { kind: 'restore-archive', site: 1 }),
    ],
  },
  {
    name: 'two forks in a row are settled entry by entry',
    marks: [
      'a primary was forced',
      'a divergent entry was made again',
      'a divergent entry was put over what was there',
      'a divergent entry was discarded',
    ],
    siteSizes: SMALL,
    keyCount: 5,
    federation: { defaultAck: 'primary', settlesForks: true },
    safetyMs: 44_000,
    faults: [
      at(5000, 14_500, { kind: 'away', site: 1, direction: 'both' }),
      at(9000, 0, { kind: 'elect', sites: [2] }),
      // The first one is back, and has not what the second one wrote.
      at(18_000, 12_000, { kind: 'away', site: 2, direction: 'both' }),
      at(18_100, 0, { kind: 'force', site: 3 }),
      ...[33_000, 35_000, 37_000, 39_000].flatMap((atMs) =>
        [1, 2].map((site) => at(atMs + 100 * site, 0, { kind: 'settle-fork', site })),
      ),
    ],
  },
  {
    name: 'datacenters are removed and let back by force, and others elect',
    marks: ['a datacenter was removed by force', 'a datacenter was allowed by force'],
    siteSizes: [1, 3, 1],
    federation: { settlesForks: true },
    safetyMs: 34_000,
    faults: [
      at(5000, 6000, { kind: 'site-down', site: 3, ending: 'process' }),
      at(5000, 5000, { kind: 'away', site: 2, direction: 'both' }),
      at(7000, 0, { kind: 'remove-site', site: 3, isForced: true }),
      at(12_000, 0, { kind: 'allow-site', site: 3, isForced: true }),
      at(18_000, 7000, { kind: 'site-down', site: 3, ending: 'process' }),
      at(19_000, 0, { kind: 'remove-site', site: 3, isForced: true }),
      at(20_500, 7000, { kind: 'away', site: 1, direction: 'both' }),
      at(26_000, 0, { kind: 'elect', sites: [2] }),
      at(30_000, 0, { kind: 'allow-site', site: 3, isForced: true }),
    ],
  },
  {
    name: 'a datacenter that has lost its disks becomes a witness while elections run',
    marks: [
      'a datacenter that lost all its disks was started as a witness',
      'a datacenter that had lost all its disks took part again',
      'a primary was elected',
    ],
    siteSizes: SMALL,
    safetyMs: 26_000,
    faults: [
      at(5000, 800, { kind: 'empty-site', site: 3, isWitness: true }),
      at(5500, 0, { kind: 'remove-site', site: 3 }),
      at(8000, 0, { kind: 'allow-site', site: 3 }),
      ...[7800, 8400, 9000, 9800, 11_000].map((atMs, place) =>
        at(atMs, 0, { kind: 'elect', sites: [1 + (place % 2)] }),
      ),
    ],
  },
  {
    name: 'the disks of the primary are put back, and it goes on as it says',
    marks: [
      'the disks of the primary were put back to a copy',
      'a primary said that others have more of its reign than it has',
      'the datacenter was elected that a primary had named',
      'a datacenter whose disks were put back has again what others had',
    ],
    siteSizes: [3, 1, 1],
    federation: { hasLogouts: true, hasTenants: true, hasGrants: true },
    safetyMs: 30_000,
    faults: [
      at(5000, 500, { kind: 'copy-site', site: 1 }),
      at(12_000, 500, { kind: 'put-back-site', site: 1 }),
      at(22_000, 500, { kind: 'put-back-site', site: 2 }),
    ],
  },
  {
    name: 'the disks of the primary are put back to before its reign',
    marks: [
      'the disks of the primary were put back to a copy',
      'nobody was primary, because the last one had lost its reign',
      'the datacenter was elected that a primary had named',
      'a datacenter whose disks were put back has again what others had',
    ],
    siteSizes: [1, 3, 1],
    federation: { hasLogouts: true, hasTenants: true, hasGrants: true },
    safetyMs: 30_000,
    faults: [
      at(5000, 500, { kind: 'copy-site', site: 2 }),
      at(8000, 500, { kind: 'elect', sites: [2] }),
      at(15_000, 500, { kind: 'put-back-site', site: 2 }),
    ],
  },
  {
    name: 'the disks of the primary are put back, and whom it names lacks what others keep no more',
    marks: [
      'the disks of the primary were put back to a copy',
      'the datacenter was elected that a refused election had named',
    ],
    siteSizes: SMALL,
    thinkMs: 30,
    federation: { logMaxAgeMs: 1000, hasLogouts: true },
    safetyMs: 50_000,
    faults: [
      at(5000, 500, { kind: 'copy-site', site: 3 }),
      at(8000, 500, { kind: 'elect', sites: [3] }),
      at(11_000, 22_000, { kind: 'site-down', site: 1, ending: 'process' }),
      at(31_000, 500, { kind: 'put-back-site', site: 3, mayBeAlone: true }),
    ],
  },
  {
    name: 'the disks of the primary are put back, and a witness alone has what it lost',
    marks: [
      'the disks of the primary were put back to a copy',
      'a datacenter whose disks were put back has again what others had',
    ],
    siteSizes: SMALL,
    federation: { defaultAck: 'majority', witnessSite: 3 },
    safetyMs: 30_000,
    faults: [
      at(5000, 500, { kind: 'copy-site', site: 1 }),
      at(7000, 5900, { kind: 'cut-wan', from: 1, to: 2 }),
      at(13_000, 300, { kind: 'put-back-site', site: 1 }),
    ],
  },
  {
    name: 'the disks of the primary are put back while what it lost stands before a frozen disk',
    marks: [
      'the disks of the primary were put back to a copy',
      'says: tells of what has come and is not applied yet',
      'a datacenter whose disks were put back has again what others had',
    ],
    siteSizes: SMALL,
    federation: { defaultAck: 'primary' },
    safetyMs: 34_000,
    faults: [
      at(9000, 100, { kind: 'copy-site', site: 1 }),
      ...[2, 3].map((target) => at(9000, 9000, { kind: 'freeze-disk', target })),
      at(11_500, 300, { kind: 'put-back-site', site: 1 }),
    ],
  },
  {
    name: 'the disks of the primary are put back, and a witness alone has heard of its restore',
    marks: [
      'the disks of the primary were put back to a copy',
      'a restore that a witness alone had heard of was given up, as a refusal said',
    ],
    siteSizes: SMALL,
    federation: { defaultAck: 'primary', witnessSite: 3 },
    safetyMs: 30_000,
    faults: [
      at(5000, 500, { kind: 'copy-site', site: 1 }),
      at(6000, 4100, { kind: 'away', site: 2, direction: 'both' }),
      at(9000, 0, { kind: 'save-archive', site: 1 }),
      at(10_000, 0, { kind: 'restore-archive', site: 1 }),
      at(10_400, 300, { kind: 'put-back-site', site: 1 }),
    ],
  },
  {
    name: 'entries are damaged on the disk of the primary, and nobody has them yet',
    marks: [
      'says: an entry of the global log is damaged on this disk: who needs it gets a snapshot',
      'a snapshot of the primary became the state',
    ],
    siteSizes: SMALL,
    federation: { defaultAck: 'primary' },
    safetyMs: 26_000,
    faults: [
      at(4000, 7000, { kind: 'away', site: 2, direction: 'both' }),
      at(10_500, 100, { kind: 'misread-entry', site: 1, back: 1 }),
      // What it had in memory it need not read.
      at(10_600, 300, { kind: 'crash', target: 1, ending: 'process' }),
      at(14_000, 6000, { kind: 'away', site: 3, direction: 'both' }),
      at(19_900, 100, { kind: 'misread-entry', site: 1, back: 0 }),
      at(20_000, 300, { kind: 'crash', target: 1, ending: 'process' }),
    ],
  },
  {
    name: 'entries, and a piece of a snapshot, are changed on their way',
    marks: [
      ...['row', 'request', 'piece'].map((what) => `changed on its way: ${what}`),
      'a snapshot of the primary became the state',
    ],
    siteSizes: [1, 3, 1],
    federation: { logMaxAgeMs: 1000 },
    safetyMs: 28_000,
    faults: [
      ...[4000, 6000, 8000].flatMap((atMs) => [
        at(atMs, 2000, { kind: 'spoil', site: 2, what: 'row' }),
        at(atMs + 500, 2000, { kind: 'spoil', site: 3, what: 'request' }),
      ]),
      at(10_000, 8000, { kind: 'away', site: 3, direction: 'both' }),
      at(17_000, 10_000, { kind: 'spoil', site: 3, what: 'piece' }),
      at(19_000, 8000, { kind: 'spoil', site: 3, what: 'row' }),
    ],
  },
  {
    name: 'a candidate dies in the moment in which it begins its epoch',
    marks: ['killed while it takes in: entries', 'a primary was not elected'],
    siteSizes: SMALL,
    federation: { defaultAck: 'primary', awaySites: [2] },
    safetyMs: 24_000,
    faults: [
      at(6000, 7000, { kind: 'away', site: 1, direction: 'both' }),
      at(7900, 40_000, { kind: 'ambush', site: 2, moment: 'entries', ending: 'process' }),
      at(8000, 100, { kind: 'elect', sites: [2] }),
    ],
  },
  {
    name: 'two releases run side by side, and servers are upgraded one by one',
    marks: ['says: the datacenter uses a higher feature level'],
    siteSizes: [3, 1, 1],
    federation: { olderHosts: [2, 4] },
    safetyMs: 30_000,
    faults: [
      at(6000, 500, { kind: 'stop', target: 2 }),
      at(11_000, 3000, { kind: 'crash', target: 'leader of 1', ending: 'power' }),
      at(15_000, 500, { kind: 'stop', target: 4 }),
      at(20_000, 4000, { kind: 'away', site: 2, direction: 'both' }),
    ],
  },
  {
    name: 'one of five is gone, and both halves of the others elect right after a start',
    marks: ['at an address of a datacenter another one was found', 'a primary was not elected'],
    siteSizes: FIVE,
    federation: { wanLeastMs: 5, wanMeanMs: 5 },
    safetyMs: 40_000,
    faults: [
      at(6000, 28_000, { kind: 'away', site: 1, direction: 'both' }),
      ...[2, 3].flatMap((from) =>
        [4, 5].flatMap((to) => [
          at(6000, 28_000, { kind: 'cut-wan', from, to }),
          at(6000, 28_000, { kind: 'cut-wan', from: to, to: from }),
        ]),
      ),
      // From now on none of them knows more of the first one than its settings say.
      ...[2, 3, 4, 5].map((site) => at(6100, 300, { kind: 'site-down', site, ending: 'process' })),
      ...[13_000, 22_000].map((atMs) => at(atMs, 0, { kind: 'elect', sites: [2, 4] })),
    ],
  },
  {
    name: 'an old leader comes back with what it was about to propose',
    marks: ['says: the process stood still'],
    siteSizes: [1, 3, 1],
    safetyMs: 20_000,
    faults: [4000, 12_000].flatMap((atMs) => [
      at(atMs, 4000, { kind: 'freeze', target: 'leader of 2' }),
      at(atMs + 5000, 1500, { kind: 'freeze', target: 'leader of 1' }),
    ]),
  },
  ...OPERATORS_DAYS,
];

export function badDayNamed(name: string): BadDay {
  const day = BAD_DAYS.find((each) => each.name === name);
  if (day === undefined) {
    throw new Error(
      `there is no bad day ${name}; there are ${BAD_DAYS.map((each) => each.name).join('; ')}`,
    );
  }
  return day;
}

/** What the seed drew, but for what the day says. */
export function onBadDay(drawn: RunOptions, day: BadDay): RunOptions {
  const hostCount = day.siteSizes.reduce((sum, size) => sum + size, 0);
  const hosts = Array.from({ length: hostCount });
  const { federation } = drawn;
  return {
    ...drawn,
    hostCount,
    clientCount: 4,
    thinkMs: day.thinkMs ?? 200,
    timing: { ...drawn.timing, tickMs: day.tickMs ?? drawn.timing.tickMs },
    keyCount: day.keyCount ?? drawn.keyCount,
    clocks: hosts.map((_, place) => drawn.clocks[place] ?? { rate: 1, wallDrift: 1 }),
    outside: hosts.map((_, place) => drawn.outside[place] ?? 'both'),
    safetyMs: day.safetyMs,
    limits: {},
    plan: day.faults,
    ...(federation !== undefined && {
      federation: {
        ...{ ...federation, logMaxAgeMs: 3_600_000, awaySites: [] },
        ...{ loginTtlMs: undefined, hasLogouts: false, hasTenants: false },
        ...{ hasGrants: false, hasLocalRights: false, settlesForks: false },
        ...{ witnessSite: undefined, olderHosts: [], olderLevel: FIRST_LEVEL },
        ...{ siteSizes: day.siteSizes, ...day.federation },
      },
    }),
  };
}
