// Three real servers and clients at all of them, while servers are stopped, killed and restarted. Some
// order of everything that was asked must explain everything that was answered.

import t from 'tap';
import { ask } from '../hard/asking.ts';
import { until } from '../support/running/running-group.ts';
import { ObjectClients } from './object-clients.ts';
import { faultOf } from './object-history.ts';
import { leaderOf, type Plan, type Running, ready, start, startThree } from './three-servers.ts';

const SEED = Number(process.env.CONCLAVE_HISTORY_SEED ?? 1);
/** How often all of it happens. */
const ROUNDS = Number(process.env.CONCLAVE_HISTORY_ROUNDS ?? 1);
/** Answers that each server under test gives before the next thing happens to it. */
const ANSWERS = 10;
/** Time in which answers could come that must not. */
const ALONE_MS = 500;
const POLICY = 'history';

/** Three places, each with whatever process has its folder now. */
class Servers {
  readonly places: readonly Place[];

  constructor(running: readonly Running[]) {
    this.places = running.map((each) => new Place(each));
  }

  others(...those: readonly Place[]): readonly Place[] {
    return this.places.filter((place) => !those.includes(place));
  }

  async leaderAmong(places: readonly Place[]): Promise<Place> {
    const leader = await leaderOf(places.map(({ running }) => running));
    return places.find(({ name }) => name === leader.plan.name) as Place;
  }
}

class Place {
  readonly plan: Plan;
  running: Running;

  constructor(running: Running) {
    this.plan = running.plan;
    this.running = running;
  }

  get name(): string {
    return this.plan.name;
  }

  port(): number {
    return this.running.process.port;
  }

  kill(): Promise<unknown> {
    return this.running.process.end('SIGKILL');
  }

  freeze(): void {
    process.kill(this.running.process.pid, 'SIGSTOP');
  }

  thaw(): void {
    process.kill(this.running.process.pid, 'SIGCONT');
  }

  async restart(owner: Tap): Promise<void> {
    this.running = { plan: this.plan, process: await start(owner, this.plan) };
  }
}

type Tap = Parameters<typeof start>[0];

t.test('history: three servers that are stopped and killed answer as one', async (t) => {
  t.comment(`CONCLAVE_HISTORY_SEED=${SEED} CONCLAVE_HISTORY_ROUNDS=${ROUNDS}`);
  const servers = new Servers(await startThree(t));
  const [first] = servers.places;
  const made = await ask(first?.port() ?? 0, {
    method: 'PUT',
    path: '/v1/acl/policy',
    body: { Name: POLICY },
  });
  t.equal(made.status, 200);
  const clients = new ObjectClients({
    seed: SEED,
    servers: servers.places,
    clientsPerServer: 2,
    objectCount: 3,
    policy: POLICY,
    thinkMs: 25,
  });
  t.teardown(() => clients.halt());

  const atWork = async (places: readonly Place[], when: string): Promise<void> => {
    const before = places.map((place) => clients.answeredBy(place));
    await until(`clients are answered ${when}`, () =>
      places.every((place, at) => clients.answeredBy(place) >= (before[at] ?? 0) + ANSWERS),
    );
    const fault = faultOf(clients.events);
    if (fault !== undefined) throw new Error(`what was answered ${when}: ${fault}`);
    t.pass(`what was answered ${when} is what one server could answer`);
  };

  await atWork(servers.places, 'while all is well');
  for (let round = 1; round <= ROUNDS; round += 1) {
    const killed = await servers.leaderAmong(servers.places);
    await killed.kill();
    await atWork(servers.others(killed), 'after the leader was killed');
    await killed.restart(t);
    await ready(killed.running.process);

    const frozen = await servers.leaderAmong(servers.places);
    frozen.freeze();
    await atWork(servers.others(frozen), 'while the old leader stood still');
    // These wait at its door: what it knew when it was stopped is no answer to them.
    clients.askAtOnce(frozen, 'read');
    frozen.thaw();
    await atWork(servers.places, 'when it went on');

    // Whatever the leader answers alone dies with it: those who stand still have heard nothing.
    const alone = await servers.leaderAmong(servers.places);
    const rest = servers.others(alone);
    for (const place of rest) place.freeze();
    clients.askAtOnce(alone, 'create');
    clients.askAtOnce(alone, 'update');
    await new Promise<void>((resolve) => setTimeout(resolve, ALONE_MS));
    await Promise.all(servers.places.map((place) => place.kill()));
    await Promise.all(rest.map((place) => place.restart(t)));
    await Promise.all(rest.map(({ running }) => ready(running.process)));
    await atWork(rest, 'after all were killed, without the one that led');
    await alone.restart(t);
    await atWork(servers.places, 'when all were back');
  }
  await clients.stop();
  t.same(clients.impossible, [], 'no answer was one that no server may give');
  t.equal(faultOf(clients.events), undefined, 'some order explains every answer');
  const counts = { ok: 0, fail: 0, unknown: 0 };
  for (const event of clients.events) if (event.ev === 'ret') counts[event.status] += 1;
  t.comment(JSON.stringify(counts));
});
