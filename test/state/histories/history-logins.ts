// Logins and logouts of the histories, by a service on the state of a datacenter; and what a login gives, as the
// auth methods and binding rules of the history say it.

import { DEFAULT_NAMESPACE } from '../../../src/acl/ids.ts';
import { PLAIN_CALL } from '../../../src/service/call.ts';
import { createOperations, type Door } from '../../../src/service/create-operations.ts';
import { trackingWrites } from '../../../src/service/writes/tracking-writes.ts';
import type { StateMachine } from '../../../src/state/machine.ts';
import { authMethods, SETTINGS } from '../../service/harness.ts';
import { FakeRandom } from '../../support/fake-random.ts';
import { accessorNumbered, secretNumbered } from '../../support/state-and-service/fixtures.ts';
import { loneDatacenter } from '../../support/state-and-service/lone-datacenter.ts';
import type { MachineHarness } from '../../support/state-and-service/machine-harness.ts';
import {
  type Links,
  METHOD_OF_RULE,
  NODE_AT,
  nameOf,
  type Place,
  POLICIES,
  ROLES,
  SPACE_OF,
  type Space,
  TTL_MS,
} from './history-objects.ts';
import type { LoginStep } from './history-steps.ts';
import {
  including,
  numberNamed,
  type Shared,
  type SharedHistory,
  without,
} from './shared-history.ts';
import type { TokenLives } from './token-lives.ts';

/** The service of a datacenter that is led here, and writes wherever its state lets it. */
export interface LoginDesk {
  /** The description of the token that was made, or the code of the refusal. */
  login(
    step: LoginStep,
    mark: string,
  ): Promise<{ readonly made: string } | { readonly code: string }>;
  /** The code of the refusal, or undefined. */
  logout(secret: number): Promise<string | undefined>;
  /** What the token of the secret is described as, to whoever shows it; or the code of the refusal. */
  whoIs(secret: number): Promise<string>;
}

/** Where somebody logs in or out. */
export interface LoginHere {
  readonly place: Place;
  readonly machine: StateMachine;
  readonly desk: LoginDesk;
  readonly history: SharedHistory;
  readonly lives: TokenLives;
  /** Whether what all share is written there. */
  readonly doesWrite: boolean;
  readonly nowMs: number;
  readonly batch: number;
  readonly mark: string;
  readonly note: (what: string) => void;
}

/** Whoever is granted something, and nobody else, is let in; but for ids of others, and what is written elsewhere. */
export async function takeLogin(here: LoginHere, step: LoginStep): Promise<void> {
  const { place, machine, desk, history, lives, nowMs, batch } = here;
  const { number, secret } = step;
  const { seq } = machine.cursor()!;
  const shared = history.at(machine);
  const granted = grantedTo({ shared, place }, step);
  const ids = [accessorNumbered(number), secretNumbered(secret)];
  const isTaken = ids.some((id) => machine.idInUse(id));
  const isAway = granted?.isLocal === false && !here.doesWrite;
  const said = await desk.login(step, here.mark);
  here.note(`login: ${'code' in said ? said.code : 'made'}`);
  const shall = granted !== undefined && !isTaken && !isAway;
  if (shall !== 'made' in said) {
    throw new Error(`${nameOf(place)}: ${JSON.stringify(said)} for ${JSON.stringify(granted)}`);
  }
  if (granted === undefined || !('made' in said)) return;
  const { space, links, isLocal, doesExpire } = granted;
  const mark = said.made;
  lives.add({
    ...{ mark, batch, number, secret, space, isLocal, at: place, links, over: undefined },
    spaceMark: shared.spaces.get(space)!.mark,
    method: step.method,
    methodMark: shared.methods.get(step.method)!.mark,
    expiresMs: doesExpire ? nowMs + TTL_MS : undefined,
  });
  const tokens = including(shared.tokens, number, { mark, space, links });
  if (!isLocal) history.wrote(machine, seq, [{ ...shared, tokens }]);
  const who = await desk.whoIs(secret);
  if (who !== mark) throw new Error(`${nameOf(place)}: ${mark} is ${who}`);
}

/** The token of a login is given back, and no other one, whether it still stands or not. */
export async function takeLogout(here: LoginHere, number: number): Promise<void> {
  const { place, machine, desk, history, lives, batch } = here;
  const life = lives.marked(machine.token(accessorNumbered(number))?.description);
  if (life === undefined) return;
  const { seq } = machine.cursor()!;
  const shared = history.at(machine);
  const code = await desk.logout(life.secret);
  here.note(`logout: ${code ?? 'done'}`);
  const isAway = !life.isLocal && !here.doesWrite;
  const { mark } = life;
  if ((life.method !== undefined && !isAway) !== (code === undefined)) {
    throw new Error(`${nameOf(place)}: logout of ${mark}: ${code}`);
  }
  if (code !== undefined) return;
  const tokens = without(shared.tokens, number);
  if (life.isLocal) lives.end(place, number, { mark, batch });
  else history.wrote(machine, seq, [{ ...shared, tokens }]);
  const who = await desk.whoIs(life.secret);
  if (who !== 'token-unknown') throw new Error(`${nameOf(place)}: ${mark} is ${who}`);
}

/** Draws the ids that it is told to. */
class NumberedRandom extends FakeRandom {
  readonly next: string[] = [];

  override uuid(): string {
    return this.next.shift() ?? super.uuid();
  }
}

export function loginDeskOf(place: Place, harness: MachineHarness): LoginDesk {
  const { machine, clock } = harness;
  const random = new NumberedRandom();
  const silent = () => undefined;
  const deps = trackingWrites({
    view: machine,
    watch: machine.watch,
    propose: async (command) => (await harness.run(command))[0]!,
    readBarrier: () => undefined,
    leaderContact: () => ({ isLeader: true, knownLeader: true, lastContactMs: 0 }),
    reign: () => 1,
    notOpenBecause: () => undefined,
    opens: () => Promise.resolve(),
    remote: {
      runAtLeader: () => Promise.reject(new Error('nobody else leads')),
      leaderTerm: () => undefined,
      leaderChanged: () => Promise.resolve(),
    },
    federation: loneDatacenter(nameOf(place), () => machine.position()),
    takeResetIndex: () => undefined,
    authMethods,
    clock,
    agreedMs: () => Promise.resolve(clock.wallMs()),
    random,
    logger: { debug: silent, info: silent, warn: silent, error: silent },
    metrics: { count: silent },
    settings: { ...SETTINGS, datacenter: nameOf(place), leaderWaitMs: 0 },
  });
  const door = createOperations(deps);
  return {
    login: async ({ number, secret, method, who }, mark) => {
      random.next.push(accessorNumbered(number), secretNumbered(secret));
      const input = {
        authMethod: method,
        bearerToken: JSON.stringify({ name: who }),
        meta: { mark },
        namespace: SPACE_OF[method],
      };
      const made = await told(door.run('login', input, PLAIN_CALL));
      random.next.length = 0;
      return 'code' in made ? made : { made: made.value.value.token.description };
    },
    logout: async (secret) => {
      const call = { ...PLAIN_CALL, secret: secretNumbered(secret) };
      const done = await told(door.run('logout', {}, call));
      return 'code' in done ? done.code : undefined;
    },
    whoIs: async (secret) => {
      const call = { ...PLAIN_CALL, secret: secretNumbered(secret) };
      const found = await told(readSelf(door, call));
      return 'code' in found ? found.code : found.value;
    },
  };
}

async function readSelf(door: Door, call: typeof PLAIN_CALL): Promise<string> {
  const { value } = await door.run('token.read-self', {}, call);
  return value?.token.description ?? 'nobody';
}

/** The code of a refusal; what is none is no answer. */
async function told<T>(
  running: Promise<T>,
): Promise<{ readonly value: T } | { readonly code: string }> {
  try {
    return { value: await running };
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === undefined || code === 'internal') throw error;
    return { code };
  }
}

export interface Granted {
  readonly space: Space;
  readonly links: Links;
  readonly doesExpire: boolean;
  readonly isLocal: boolean;
}

/** What a login gives, if it gives something. */
export function grantedTo(
  { shared, place }: { readonly shared: Shared; readonly place: Place },
  { method: name, who }: LoginStep,
): Granted | undefined {
  const method = shared.methods.get(name);
  if (method === undefined) return undefined;
  const home = SPACE_OF[name];
  const sent = home === DEFAULT_NAMESPACE ? method.sends : [];
  const space = sent.find((each) => each.who === who)?.to ?? home;
  if (!shared.spaces.has(space)) return undefined;
  const links = {
    policies: new Set<number>(),
    roles: new Set<number>(),
    identities: new Set<number>(),
  };
  const byNumber = [...shared.rules].sort(([left], [right]) => left - right);
  for (const [number, rule] of byNumber) {
    if (METHOD_OF_RULE[number] !== name || (rule.who !== undefined && rule.who !== who)) continue;
    const named = { name: rule.binds.name ?? who, space };
    // Rules of a namespace other than `default` reach no other one.
    const isNear = ({ space: of }: { readonly space: Space }): boolean =>
      home === 'default' || of === home;
    switch (rule.binds.kind) {
      case 'policy': {
        const found = numberNamed(POLICIES, shared.policies, named);
        if (found !== undefined && isNear(POLICIES[found]!)) links.policies.add(found);
        break;
      }
      case 'role': {
        const found = numberNamed(ROLES, shared.roles, named);
        if (found !== undefined && isNear(ROLES[found]!)) links.roles.add(found);
        break;
      }
      case 'service':
        links.identities.add(1);
        break;
      case 'node':
        links.identities.add(NODE_AT[place]);
        break;
      default:
        links.identities.add(5);
    }
  }
  const { policies, roles, identities } = links;
  if (policies.size + roles.size + identities.size === 0) return undefined;
  return {
    space,
    links: { policies: [...policies], roles: [...roles], identities: [...identities] },
    doesExpire: method.doesExpire,
    isLocal: !method.isGlobal,
  };
}
