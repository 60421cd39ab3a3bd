// What the checkers take from where: a commit from the leader that counts it, though no disk says so
// yet; a stale read from the rows that the reader saw.

import t from 'tap';
import {
  encodeEntry,
  encodeHardState,
  entryKey,
  HARD_STATE_KEY,
  LOG_ORIGIN,
  type LogEntry,
  nextEntry,
} from '../../../cluster/log/log-entry.ts';
import type { KvWrite } from '../../../cluster/platform/kv.ts';
import { encodeMembershipChange } from '../../../cluster/raft/membership/membership-change.ts';
import { encodeGroupContext } from '../../../cluster/replica/group-record.ts';
import type { ReplicaStatus } from '../../../cluster/replica/replica.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { payloadOf, RegisterMachine } from '../subject/register-machine.ts';
import { ReplicaSubject } from '../subject/replica-subject.ts';
import { LOG_STORE } from '../subject/subject.ts';
import { SealedGlobals } from '../world/sealed-globals.ts';
import type { SimHost } from '../world/sim-host.ts';
import { World } from '../world/world.ts';
import { GroupChecks } from './group-checks.ts';
import { Violations } from './violations.ts';

const TIMING = {
  tickMs: 50,
  heartbeatTicks: 1,
  electionTicks: 10,
  campaignSpreadMs: 50,
  readTimeoutMs: 1000,
  snapshotRetryMs: 500,
};

/** Three hosts whose disks take what they are given, and the checkers that watch them. */
class Disks {
  readonly violations = new Violations({ nowMs: () => 0, ignored: [] });
  readonly checks: GroupChecks;
  readonly hosts: readonly SimHost[];
  /** What a running node says of itself, where one does. */
  status: ReplicaStatus | undefined;

  private constructor(world: World) {
    this.hosts = [1, 2, 3].map(() => world.addHost({ rate: 1, wallDrift: 1 }));
    this.checks = new GroupChecks({
      subject: new ReplicaSubject({ world, founderCount: 3, timing: TIMING, limits: {} }),
      violations: this.violations,
      hosts: () => this.hosts,
      statusOf: () => this.status,
    });
  }

  static async make(): Promise<Disks> {
    const world = new World({
      seed: 1,
      globals: new SealedGlobals(),
      keepsLines: false,
      watchers: { onLanded: () => undefined, onFrame: () => undefined },
    });
    const disks = new Disks(world);
    for (const host of disks.hosts) await host.openKv(LOG_STORE, host.boot(), () => undefined);
    return disks;
  }

  /** By number. */
  land(number: number, writes: readonly KvWrite[]): void {
    const host = this.host(number);
    const store = host.disk.store(LOG_STORE);
    if (store === undefined) throw new Error(`${host.name} has no log`);
    store.land(writes);
    this.checks.onLanded(host, store, writes);
  }

  host(number: number): SimHost {
    const host = this.hosts[number - 1];
    if (host === undefined) throw new Error(`there is no host ${number}`);
    return host;
  }
}

function founding(): readonly LogEntry[] {
  const entries: LogEntry[] = [];
  for (const node of [1, 2, 3]) {
    const change = encodeMembershipChange({
      transition: 'auto',
      changes: [{ kind: 'add-voter', node }],
      context: encodeGroupContext({}),
    });
    entries.push(nextEntry(entries.at(-1) ?? LOG_ORIGIN, 1, change, 'membership'));
  }
  return entries;
}

function rowOf(entry: LogEntry, { hash }: Pick<LogEntry, 'hash'>): KvWrite {
  return { type: 'put', key: entryKey(entry.index), value: encodeEntry(entry, hash) };
}

t.test('commits: what a leader counts is committed before any disk says so', async (t) => {
  const disks = await Disks.make();
  const { checks, violations } = disks;
  const founders = founding();
  const state = encodeHardState({ term: 1, vote: 0, commit: founders.length });
  for (const number of [1, 2, 3]) {
    const rows = founders.map((entry, at) => rowOf(entry, founders[at - 1] ?? LOG_ORIGIN));
    disks.land(number, [...rows, { type: 'put', key: HARD_STATE_KEY, value: state }]);
  }
  t.equal(checks.committed.length, 3, 'a group begins with its founders');

  const before = founders.at(-1) ?? LOG_ORIGIN;
  const fourth = nextEntry(before, 2, Buffer.from('four'));
  disks.land(1, [rowOf(fourth, before)]);
  disks.land(2, [rowOf(fourth, before)]);
  t.equal(checks.committed.length, 3, 'that two disks have it is known to nobody');
  checks.onCounted(disks.host(1), 4, 2);
  t.equal(checks.committed.length, 4);
  t.equal(violations.first, undefined);

  const fifth = nextEntry(fourth, 2, Buffer.from('five'));
  disks.land(1, [rowOf(fifth, fourth)]);
  checks.onCounted(disks.host(1), 5, 2);
  t.match(violations.first, {
    checker: 'commits',
    says: /entry 5 for committed, .* only 1 hold it/,
  });
});

t.test('commits: who was elected before an entry was committed need not have it', async (t) => {
  const disks = await Disks.make();
  const { checks, violations } = disks;
  const first = nextEntry(LOG_ORIGIN, 5, Buffer.from('of a leader that stood still'));
  const second = nextEntry(first, 7, Buffer.from('of the same one, elected anew'));
  for (const number of [1, 3]) disks.land(number, [rowOf(first, LOG_ORIGIN), rowOf(second, first)]);
  checks.onCounted(disks.host(1), 2, 7);
  t.equal(checks.committed.length, 2);
  const speaks = (term: number): void => {
    disks.status = { term, lastIndex: 0 } as ReplicaStatus;
    const message = {
      type: 'heartbeat',
      from: 2,
      to: 1,
      term,
      commitIndex: 0,
      readCount: 0,
    } as const;
    checks.onMessage(disks.host(2), message);
  };
  speaks(6);
  t.equal(
    violations.first,
    undefined,
    'it was elected between the two terms, and hears of it late',
  );
  speaks(8);
  t.match(violations.first, {
    checker: 'commits',
    says: /leads in term 8 with entries up to 0, committed are 2/,
  });
});

t.test('commits: a leader that counts what does not follow is found', async (t) => {
  const disks = await Disks.make();
  const { checks, violations } = disks;
  const first = nextEntry(LOG_ORIGIN, 2, Buffer.from('one'));
  const other = nextEntry(LOG_ORIGIN, 3, Buffer.from('another'));
  const second = nextEntry(other, 3, Buffer.from('two'));
  disks.land(1, [rowOf(first, LOG_ORIGIN)]);
  checks.onCounted(disks.host(1), 1, 2);
  disks.land(2, [rowOf(other, LOG_ORIGIN), rowOf(second, other)]);
  checks.onCounted(disks.host(2), 2, 3);
  t.match(violations.first, { checker: 'commits', says: /does not follow what is committed/ });
  t.equal(checks.committed.length, 1);
});

/** The batch is in the rows, and nobody is told. */
class DeafKv extends MemoryKv {
  override async write(writes: readonly KvWrite[]): Promise<void> {
    await super.write(writes);
    await new Promise(() => undefined);
  }
}

t.test('stale reads: a reader stands where the rows stand that it saw', async (t) => {
  const kv = new DeafKv();
  const machine = new RegisterMachine(kv, 0, {
    open: () => Promise.resolve(kv),
    discard: () => Promise.resolve(),
  });
  const command = { kind: 'write', id: 'r1', key: 'k0', value: 'v1' } as const;
  void machine.apply([nextEntry(LOG_ORIGIN, 1, payloadOf(command))]);
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(machine.appliedEntry, undefined, 'the machine has not heard of it');
  t.same(machine.read('k0'), { found: { value: 'v1', index: 1 }, appliedIndex: 1 });
});
