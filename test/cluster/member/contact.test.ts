// When a node last had all that was committed: what a leader says counts, as far as this node has it.

import t from 'tap';
import type { Message } from '../../../cluster/raft/message.ts';
import { Contact } from '../../../cluster/replica/leading/contact.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const SELF = 1;
const LEADER = 2;
const OTHER = 3;
const TERM = 7;
const GROUP = { voters: [SELF, LEADER, OTHER], votersOutgoing: [] };

class World {
  readonly clock = new FakeClock(5_000);
  readonly contact = new Contact({
    clock: this.clock,
    ...{ stillMs: 300, freshMs: 300, proofMs: 1000 },
  });
  appliedIndex = 10;

  constructor() {
    this.contact.follow(GROUP.voters);
    this.contact.onLeader(LEADER, TERM);
  }

  heartbeat(commitIndex = this.appliedIndex): void {
    this.#hear({ ...this.#envelope(), type: 'heartbeat', commitIndex, readCount: 0 });
  }

  append(commitIndex: number): void {
    const place = { prevIndex: 9, prevTerm: TERM, entries: [] };
    this.#hear({ ...this.#envelope(), type: 'append', ...place, commitIndex });
  }

  apply(index: number): void {
    this.appliedIndex = index;
    this.contact.onApplied(index);
  }

  /** Time goes on, and raft's with it. */
  pass(forMs: number): void {
    for (let leftMs = forMs; leftMs > 0; leftMs -= 100) {
      this.clock.advance(Math.min(100, leftMs));
      this.contact.onTick();
    }
  }

  /** A read barrier goes through in no time. */
  prove(): void {
    this.contact.prove(this.contact.doubt ?? Number.NaN, this.clock.monotonicMs());
  }

  #envelope() {
    return { from: LEADER, to: SELF, term: TERM };
  }

  #hear(message: Message): void {
    this.contact.onMessage(message, this.appliedIndex);
  }
}

t.test(
  'contact: that a new leader talks says nothing before a read barrier has come through',
  async (test) => {
    const world = new World();
    const { contact } = world;
    world.heartbeat();
    test.equal(contact.sinceLeaderMs, undefined);
    const doubt = contact.doubt ?? Number.NaN;
    const beganAtMs = world.clock.monotonicMs();
    world.pass(50);
    contact.prove(doubt, beganAtMs);
    test.equal(contact.sinceLeaderMs, 50, 'from when it was asked');
    test.equal(contact.doubt, undefined);
    world.heartbeat();
    test.equal(contact.sinceLeaderMs, 0);
    world.pass(70);
    test.equal(contact.sinceLeaderMs, 70);
    contact.onLeader(0, TERM);
    test.equal(contact.sinceLeaderMs, undefined);
    test.equal(contact.doubt, undefined, 'there is nobody to ask');
    contact.onLeader(LEADER, TERM);
    world.heartbeat();
    test.equal(contact.sinceLeaderMs, 70, 'what was there is there');
  },
);

t.test('contact: behind a closed link it has to be proved anew', async (test) => {
  const world = new World();
  const { contact } = world;
  const first = contact.doubt ?? Number.NaN;
  const beganAtMs = world.clock.monotonicMs();
  world.pass(100);
  contact.onLinkClosed(OTHER);
  test.equal(contact.doubt, first, 'it was not the one to the leader');
  contact.onLinkClosed(LEADER);
  contact.prove(first, beganAtMs);
  world.heartbeat();
  test.equal(contact.sinceLeaderMs, 100, 'what was proved before says nothing of what came after');
  world.prove();
  world.pass(30);
  world.heartbeat();
  test.equal(contact.sinceLeaderMs, 0);
});

t.test('contact: what was proved is proved again, and else holds no more', async (test) => {
  const world = new World();
  const { contact } = world;
  world.prove();
  world.pass(900);
  test.equal(contact.doubt, undefined);
  world.pass(100);
  const { doubt } = contact;
  test.not(doubt, undefined, 'it is to be asked again');
  world.pass(1_000);
  world.heartbeat();
  test.equal(contact.sinceLeaderMs, 0);
  world.pass(100);
  world.heartbeat();
  test.equal(contact.sinceLeaderMs, 100, 'nothing came of that for too long');
  contact.prove(doubt!, world.clock.monotonicMs() - 50);
  test.equal(contact.sinceLeaderMs, 50);
  world.heartbeat();
  test.equal(contact.sinceLeaderMs, 0);
  test.equal(contact.doubt, undefined);
});

t.test('contact: what is committed and not applied is waited for', async (test) => {
  const world = new World();
  const { contact } = world;
  world.prove();
  world.append(12);
  world.pass(40);
  world.heartbeat(11);
  test.equal(contact.sinceLeaderMs, 40);
  world.apply(11);
  test.equal(contact.sinceLeaderMs, 40);
  world.pass(10);
  world.append(13);
  world.apply(12);
  test.equal(contact.sinceLeaderMs, 50, 'as old as the word that it has come to');
  world.append(13);
  world.apply(13);
  test.equal(contact.sinceLeaderMs, 0);
});

t.test('contact: of a quorum, whoever answers counts as heard now', async (test) => {
  const world = new World();
  const { contact, clock } = world;
  const since = () => contact.sinceQuorumMs(SELF, GROUP);
  world.pass(1_000);
  test.equal(since(), clock.monotonicMs(), 'nobody was heard');
  world.heartbeat();
  test.equal(since(), 0);
  world.pass(300);
  test.equal(since(), 0);
  contact.onLinkClosed(LEADER);
  test.equal(since(), 300);
  test.equal(contact.sinceQuorumMs(SELF, { voters: [SELF], votersOutgoing: [] }), 0, 'alone');
  test.equal(contact.sinceQuorumMs(SELF, { ...GROUP, votersOutgoing: [SELF] }), 300);
});
