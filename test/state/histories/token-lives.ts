// What the history alone says of every token that was ever made, and whether a datacenter agrees: of which auth
// method and namespace it is, by marks that no two of them share, what was said of it last, and whether it was void,
// deleted or expired once. What all share, SharedHistory tells; this, of local ones, what became of each.

import type { NamespaceName } from '../../../src/acl/ids.ts';
import type { Token } from '../../../src/acl/token.ts';
import { CallerResolver } from '../../../src/service/rights/caller-resolver.ts';
import { isVoid } from '../../../src/state/reads/standing.ts';
import { accessorNumbered, secretNumbered } from '../../support/state-and-service/fixtures.ts';
import type { MachineHarness } from '../../support/state-and-service/machine-harness.ts';
import {
  type Links,
  linkIds,
  type MethodName,
  nameOf,
  type Place,
  type Space,
} from './history-objects.ts';
import { mayWrite, QUESTIONS, type Shared } from './shared-history.ts';

/** A token as it was made once; another one with its ids is another one. */
export interface Life {
  readonly mark: string;
  /** In which it was made. */
  readonly batch: number;
  readonly number: number;
  readonly secret: number;
  readonly space: Space;
  readonly spaceMark: string;
  readonly method: MethodName | undefined;
  readonly methodMark: string | undefined;
  readonly isLocal: boolean;
  /** Of local ones: where, and what it links to since it was changed last. */
  readonly at: Place;
  links: Links;
  readonly expiresMs: number | undefined;
  /** Of local ones: why it never acts again. */
  over: string | undefined;
}

/** A datacenter at a moment. */
export interface Seen {
  readonly place: Place;
  readonly harness: MachineHarness;
  /** What the history says that it has of what all share. */
  readonly shared: Shared;
  /** What has heard of every change from the start of that server on. */
  readonly kept: CallerResolver;
  readonly nowMs: number;
}

export function resolverOf({ place, harness }: Pick<Seen, 'place' | 'harness'>): CallerResolver {
  return new CallerResolver({
    view: harness.machine,
    clock: harness.clock,
    metrics: { count: () => undefined } as never,
    settings: { datacenter: nameOf(place), defaultPolicy: 'deny' },
  });
}

export class TokenLives {
  readonly #lives = new Map<string, Life>();
  /** What was deleted on the fork alone may be back, and what was made on it may be gone. */
  readonly #hasLeftFork = new Set<Place>();
  readonly #note: (what: string) => void;

  constructor(note: (what: string) => void) {
    this.#note = note;
  }

  add(life: Life): void {
    this.#lives.set(life.mark, life);
  }

  /** A local one was changed. */
  link(mark: string, links: Links): void {
    const life = this.#lives.get(mark);
    if (life !== undefined) life.links = links;
  }

  /** The local one with that number was deleted: that was there before the batch, or was made in it. */
  end(
    place: Place,
    number: number,
    which: { readonly mark: string; readonly batch: number },
  ): void {
    for (const life of this.#lives.values()) {
      const isHere = life.number === number && life.isLocal && life.at === place;
      const isIt = life.mark === which.mark || life.batch === which.batch;
      if (isHere && isIt) life.over ??= 'deleted';
    }
  }

  marked(mark: string | undefined): Life | undefined {
    return mark === undefined ? undefined : this.#lives.get(mark);
  }

  /** Those that are stored there. */
  storedIn({ harness }: Pick<Seen, 'harness'>): readonly Life[] {
    return [...this.#lives.values()].filter((life) => tokenOf(harness, life) !== undefined);
  }

  /** Whether it acts there no more. */
  isOver(seen: Omit<Seen, 'harness' | 'kept'>, life: Life): boolean {
    return (life.isLocal && life.over !== undefined) || lostNow(seen, life) !== undefined;
  }

  /** Those of all whose time is over, or whose method. */
  voidOf(seen: Omit<Seen, 'harness' | 'kept'>): readonly number[] {
    return [...this.#lives.values()]
      .filter((life) => !life.isLocal && seen.shared.tokens.get(life.number)?.mark === life.mark)
      .filter((life) => this.isOver(seen, life))
      .map(({ number }) => number);
  }

  leftFork({ place, harness }: Pick<Seen, 'place' | 'harness'>): void {
    this.#hasLeftFork.add(place);
    for (const life of this.#localOf(place)) {
      // A method that was deleted on the fork alone is not deleted; whether it is that one, `look` asks.
      const isBack = life.over === GONE_METHOD && tokenOf(harness, life) !== undefined;
      if (isBack) life.over = undefined;
    }
  }

  #localOf(place: Place): readonly Life[] {
    return [...this.#lives.values()].filter((life) => life.isLocal && life.at === place);
  }

  /** What an archive of that place has of each of its own. */
  asOf(place: Place): ReadonlyMap<string, Pick<Life, 'links' | 'over'>> {
    return new Map(this.#localOf(place).map(({ mark, links, over }) => [mark, { links, over }]));
  }

  /** It is there again as it was, and what was made since is not. */
  restore(place: Place, then: ReturnType<TokenLives['asOf']>): void {
    for (const life of this.#localOf(place)) {
      const known = then.get(life.mark);
      life.over = known === undefined ? 'made behind the archive' : known.over;
      if (known !== undefined) life.links = known.links;
    }
  }

  /** Throws where what is there is not what the history says. */
  look(seen: Seen): void {
    const { place, harness, nowMs, shared } = seen;
    const fresh = resolverOf(seen);
    for (const life of this.#lives.values()) {
      if (life.isLocal && life.at !== place) continue;
      const found = tokenOf(harness, life);
      const isThere = found !== undefined && !isVoid(found, harness.machine, nowMs);
      const why = this.#whyNot(seen, life);
      if (isThere && why !== undefined)
        throw new Error(`dc${place + 1}: ${life.mark} acts: ${why}`);
      if (!isThere && why === undefined) this.#gone(seen, life, found);
      const links = life.isLocal ? life.links : shared.tokens.get(life.number)?.links;
      requireBySecret(seen, life, isThere ? links : undefined, fresh);
      if (found === undefined || links === undefined) continue;
      const [has, shall] = [found, linkIds(links)].map((each) =>
        JSON.stringify([
          each.policies,
          each.roles,
          each.serviceIdentities,
          each.nodeIdentities,
          each.templatedPolicies,
        ]),
      );
      if (has !== shall)
        throw new Error(`dc${place + 1}: ${life.mark} links to ${has}, not ${shall}`);
    }
  }

  /** Why the history lets it not act there; undefined where it does. Notes what is over for ever. */
  #whyNot(seen: Seen, life: Life): string | undefined {
    if (life.isLocal && life.over !== undefined) return life.over;
    const why = lostNow(seen, life);
    if (!life.isLocal || why === undefined) return why;
    this.#note(why);
    life.over = why;
    return why;
  }

  /** It does not act, though nothing took that from it: one of all may have its ids, or a fork was left. */
  #gone({ place }: Seen, life: Life, found: Token | undefined): void {
    const hasIdsOf = (other: Life): boolean =>
      !other.isLocal && (other.number === life.number || other.secret === life.secret);
    const gaveWay = found === undefined && [...this.#lives.values()].some(hasIdsOf);
    if (!life.isLocal || !(gaveWay || this.#hasLeftFork.has(place))) {
      throw new Error(`dc${place + 1}: ${life.mark} does not act, and nothing took that from it`);
    }
    if (gaveWay) this.#note('gave way to one of all');
    life.over = 'gave way';
  }
}

const GONE_METHOD = 'void: the method is gone';

/** Whoever shows its secret is it exactly if it acts, by these links; and may what they say now. */
function requireBySecret(
  seen: Seen,
  life: Life,
  links: Links | undefined,
  fresh: CallerResolver,
): void {
  const { place } = seen;
  const [kept, now] = [seen.kept, fresh].map((resolver) => rightsIn(resolver, life));
  if (kept !== now)
    throw new Error(`dc${place + 1}: ${life.mark} is remembered as ${kept}: ${now}`);
  const [holder] = now!.split('|');
  if ((holder === life.mark) !== (links !== undefined)) {
    throw new Error(`dc${place + 1}: who shows the secret of ${life.mark} is ${holder}`);
  }
  if (links === undefined) return;
  const shall = `${life.mark}|${mayWrite(seen, { ...life, links })}`;
  if (now !== shall) throw new Error(`dc${place + 1}: ${now} is allowed, and not ${shall}`);
}

/** Whom the secret shows, and which of the questions are answered by yes. */
function rightsIn(resolver: CallerResolver, life: Life): string {
  try {
    const { token, authorizer } = resolver.resolve(secretNumbered(life.secret));
    const allowed = QUESTIONS.filter((question) => {
      const [resource, segment = '', , namespace] = question.split(' ');
      const asked = { segment, namespace: namespace as NamespaceName, access: 'write' } as const;
      return authorizer.decide({ ...asked, resource: resource as 'key' }) === 'allow';
    });
    return `${token.description}|${allowed}`;
  } catch (error) {
    if ((error as { code?: string }).code !== 'token-unknown') throw error;
    return 'nobody|';
  }
}

function tokenOf({ machine }: MachineHarness, life: Life): Token | undefined {
  const found = machine.token(accessorNumbered(life.number));
  return found?.description === life.mark ? found : undefined;
}

function lostNow(
  { shared, nowMs }: Pick<Seen, 'shared' | 'nowMs'>,
  life: Life,
): string | undefined {
  if (life.expiresMs !== undefined && life.expiresMs < nowMs) return 'expired';
  if (!life.isLocal && shared.tokens.get(life.number)?.mark !== life.mark) return 'not there';
  const space = shared.spaces.get(life.space)?.mark;
  if (space !== life.spaceMark) return 'void: the namespace is gone';
  if (life.method === undefined) return undefined;
  return shared.methods.get(life.method)?.mark === life.methodMark ? undefined : GONE_METHOD;
}
