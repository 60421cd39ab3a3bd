// What the history alone says of every token that was ever made, and whether a datacenter agrees: of which auth
// method and namespace it is, by marks that no two of them share, what was said of it last, and whether it was void,
// deleted or expired once.

import { DEFAULT_NAMESPACE, type PolicyId } from '../../src/acl/ids.ts';
import type { Token } from '../../src/acl/token.ts';
import { CallerResolver } from '../../src/service/rights/caller-resolver.ts';
import { isVoid } from '../../src/state/reads/standing.ts';
import {
  accessorNumbered,
  aNamespaceName,
  policyIdNumbered,
  secretNumbered,
} from '../support/fixtures.ts';
import type { MachineHarness } from '../support/machine-harness.ts';

/** One of the datacenters. */
export type Place = 0 | 1 | 2;
export const PLACES: readonly Place[] = [0, 1, 2];
export type MethodName = 'login' | 'own';

/** The namespace of each auth method. */
export const SPACE_OF: Readonly<Record<MethodName, string>> = { login: 'default', own: 'team' };

/** A token as it was made once; another one with its ids is another one. */
export interface Life {
  readonly mark: string;
  /** In which it was made. */
  readonly batch: number;
  readonly number: number;
  readonly secret: number;
  readonly space: string;
  readonly spaceMark: string;
  readonly method: MethodName | undefined;
  readonly methodMark: string | undefined;
  readonly isLocal: boolean;
  /** Of local ones: where, and what it links to since it was changed last. */
  readonly at: Place;
  links: readonly PolicyId[];
  readonly expiresMs: number | undefined;
  /** By place: why it never acts there again. */
  readonly over: Over[];
}

type Over = string | undefined;

/** A datacenter at a moment. */
export interface Seen {
  readonly place: Place;
  readonly harness: MachineHarness;
  /** What has heard of every change from the start of that server on. */
  readonly kept: CallerResolver;
  readonly nowMs: number;
}

export function resolverOf({ place, harness }: Pick<Seen, 'place' | 'harness'>): CallerResolver {
  return new CallerResolver({
    view: harness.machine,
    clock: harness.clock,
    metrics: { count: () => undefined } as never,
    settings: { datacenter: `dc${place + 1}`, defaultPolicy: 'deny' },
  });
}

export class TokenLives {
  readonly #lives = new Map<string, Life>();
  /** By place: what was deleted on the fork alone may be back there, and what was made on it may be gone. */
  readonly #hasLeftFork = PLACES.map(() => false);
  readonly #note: (what: string) => void;

  constructor(note: (what: string) => void) {
    this.#note = note;
  }

  add(life: Life): void {
    this.#lives.set(life.mark, life);
  }

  /** A local one was changed. */
  link(mark: string, links: readonly PolicyId[]): void {
    const life = this.#lives.get(mark);
    if (life !== undefined) life.links = links;
  }

  /** The one with that number was deleted: the one that was there before the batch, or one that was made in it. */
  end(
    place: Place,
    number: number,
    which: { readonly mark: string; readonly batch: number },
  ): void {
    for (const life of this.#lives.values()) {
      const isHere = life.number === number && (!life.isLocal || life.at === place);
      const isIt = life.mark === which.mark || life.batch === which.batch;
      if (isHere && isIt) life.over[place] ??= 'deleted';
    }
  }

  /** Those that are stored there. */
  storedIn({ harness }: Pick<Seen, 'harness'>): readonly Life[] {
    return [...this.#lives.values()].filter((life) => tokenOf(harness, life) !== undefined);
  }

  leftFork(seen: Pick<Seen, 'place' | 'harness'>): void {
    const { place, harness } = seen;
    this.#hasLeftFork[place] = true;
    for (const life of this.#lives.values()) {
      // A method that was deleted on the fork alone is not deleted; whether it is that one, `look` asks.
      const isBack = life.over[place] === GONE_METHOD && tokenOf(harness, life) !== undefined;
      if (isBack || !life.isLocal) life.over[place] = undefined;
    }
  }

  /** What an archive of that place has of each of them. */
  asOf(place: Place): ReadonlyMap<string, Pick<Life, 'links'> & { readonly over: Over }> {
    const known = [...this.#lives.values()].map((life) => {
      const { mark, links, over } = life;
      return [mark, { links, over: over[place] }] as const;
    });
    return new Map(known);
  }

  /** It is there again as it was, and what was made since is not. */
  restore(place: Place, then: ReturnType<TokenLives['asOf']>): void {
    for (const life of this.#lives.values()) {
      if (life.isLocal && life.at !== place) continue;
      const known = then.get(life.mark);
      life.over[place] = known === undefined ? 'made behind the archive' : known.over;
      if (known !== undefined) life.links = known.links;
    }
  }

  /** Throws where what is there is not what the history says. */
  look(seen: Seen): void {
    const { place, harness, nowMs } = seen;
    const fresh = resolverOf(seen);
    for (const life of this.#lives.values()) {
      if (life.isLocal && life.at !== place) continue;
      const found = tokenOf(harness, life);
      const isThere = found !== undefined && !isVoid(found, harness.machine, nowMs);
      const why = this.#whyNot(seen, life, found);
      if (isThere && why !== undefined)
        throw new Error(`dc${place + 1}: ${life.mark} acts: ${why}`);
      if (!isThere && why === undefined) this.#gone(place, life, found);
      this.#requireBySecret(seen, life, isThere, fresh);
      if (found === undefined || !life.isLocal) continue;
      const [has, shall] = [found.policies, life.links].map((each) => each.join(' '));
      if (has !== shall)
        throw new Error(`dc${place + 1}: ${life.mark} links to ${has}, not ${shall}`);
    }
  }

  /** Why the history lets it not act there; undefined where it does. Notes what is over for ever. */
  #whyNot(seen: Seen, life: Life, found: Token | undefined): string | undefined {
    const { place } = seen;
    const before = life.over[place];
    if (before !== undefined) return before;
    if (!life.isLocal && found === undefined) return 'not there';
    const why = lostNow(seen, life);
    if (why === undefined) return undefined;
    this.#note(why);
    life.over[place] = why;
    return why;
  }

  /** It does not act, though nothing took that from it: one of all may have its ids, or a fork was left. */
  #gone(place: Place, life: Life, found: Token | undefined): void {
    const hasIdsOf = (other: Life): boolean =>
      !other.isLocal && (other.number === life.number || other.secret === life.secret);
    const gaveWay = found === undefined && [...this.#lives.values()].some(hasIdsOf);
    if (!gaveWay && !this.#hasLeftFork[place]) {
      throw new Error(`dc${place + 1}: ${life.mark} does not act, and nothing took that from it`);
    }
    if (gaveWay) this.#note('gave way to one of all');
    life.over[place] = 'gave way';
  }

  /** Whoever shows its secret is it exactly if it acts, and may what its links say now. */
  #requireBySecret(seen: Seen, life: Life, isThere: boolean, fresh: CallerResolver): void {
    const { place, harness } = seen;
    const [kept, now] = [seen.kept, fresh].map((resolver) => rightsIn(resolver, life));
    if (kept !== now)
      throw new Error(`dc${place + 1}: ${life.mark} is remembered as ${kept}: ${now}`);
    const [holder] = now!.split(':');
    if ((holder === life.mark) !== isThere) {
      throw new Error(`dc${place + 1}: who shows the secret of ${life.mark} is ${holder}`);
    }
    if (!isThere || !life.isLocal) return;
    const allowed = life.links.filter((id) => harness.machine.policy(id) !== undefined);
    const shall = `${life.mark}:${[1, 2, 3].filter((each) => allowed.includes(policyIdNumbered(each)))}`;
    if (now !== shall) throw new Error(`dc${place + 1}: ${now} is allowed, and not ${shall}`);
  }
}

const GONE_METHOD = 'void: the method is gone';

/** Whom the secret shows, and which keys that one may write. */
function rightsIn(resolver: CallerResolver, life: Life): string {
  try {
    const { token, authorizer } = resolver.resolve(secretNumbered(life.secret));
    const mayWrite = [1, 2, 3].filter(
      (each) =>
        authorizer.decide({
          resource: 'key',
          access: 'write',
          segment: `${each}`,
          namespace: DEFAULT_NAMESPACE,
        }) === 'allow',
    );
    return `${token.description}:${mayWrite}`;
  } catch (error) {
    if ((error as { code?: string }).code !== 'token-unknown') throw error;
    return 'nobody:';
  }
}

function tokenOf({ machine }: MachineHarness, life: Life): Token | undefined {
  const found = machine.token(accessorNumbered(life.number));
  return found?.description === life.mark ? found : undefined;
}

function lostNow({ harness: { machine }, nowMs }: Seen, life: Life): string | undefined {
  if (life.expiresMs !== undefined && life.expiresMs < nowMs) return 'expired';
  const space = machine.namespace(aNamespaceName(life.space))?.description ?? 'none';
  if (life.isLocal && space !== life.spaceMark) return 'void: the namespace is gone';
  if (life.method === undefined) return undefined;
  const method = machine.authMethod(aNamespaceName(SPACE_OF[life.method]), life.method);
  return method?.displayName === life.methodMark ? undefined : GONE_METHOD;
}
