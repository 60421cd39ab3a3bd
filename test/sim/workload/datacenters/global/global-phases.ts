// What each object was at each place of one chain of the global log, told by the effects of its entries.

import type { AuthMethod } from '../../../../../src/acl/auth-method.ts';
import { DEFAULT_NAMESPACE } from '../../../../../src/acl/ids.ts';
import type { Policy } from '../../../../../src/acl/policy.ts';
import { decodeRecord } from '../../../../../src/state/rows/layout/record-codec.ts';
import {
  AUTH_METHODS,
  NAMESPACES,
  POLICIES,
  ROLES,
  TOKENS,
} from '../../../../../src/state/rows/objects/objects.ts';
import { ROW } from '../../../../../src/state/rows/tables.ts';
import type { KnownEntry } from '../../../checks/federation/global-chain.ts';
import { bytesOf, textOf } from '../../../world/key-text.ts';
import { SortedRows } from '../../../world/sorted-rows.ts';
import {
  type ChangedTarget,
  type LoginTarget,
  nameWithin,
  type Target,
  type TenantTarget,
} from '../../acl-requests.ts';
import type { Version } from '../../object-model.ts';
import type { ReadTarget } from './global-history.ts';
import { GlobalRights } from './global-rights.ts';

/** What an object was from one seq on, until the next. */
export interface Phase {
  readonly from: number;
  readonly version: Version;
}

/** No object has this index. */
const NOTHING = 0;

const NEVER: Phase = { from: 0, version: null };

export class GlobalPhases {
  /** By key of the target. */
  readonly #byKey = new Map<string, Phase[]>();
  /** By the key of its row. */
  readonly #keyByRow: Map<string, string> = new Map();
  readonly #rights = new GlobalRights();
  /** By seq: all policies of the default namespace, as a listing shows them. */
  readonly #listings: (readonly [number, readonly string[]])[] = [];
  readonly #policies = new Map<string, string>();
  /** By key of the auth method or namespace: from which seq on there is that of which CreateIndex, or none. */
  readonly #holders = new Map<string, { readonly from: number; readonly createIndex: number }[]>();
  readonly #holderByRow = new Map<string, string>();

  /**
   * `origin`: the objects before the first entry. `before`: what made objects that these entries may
   * delete.
   */
  constructor(
    chain: readonly KnownEntry[],
    {
      origin,
      before,
      rowsBehind,
    }: {
      readonly origin?: SortedRows;
      readonly before?: GlobalPhases;
      /** All objects behind the entry with this hash; undefined where not all before it is known. */
      readonly rowsBehind: (hash: string) => SortedRows | undefined;
    },
  ) {
    if (before !== undefined) {
      this.#keyByRow = new Map(before.#keyByRow);
      this.#holderByRow = new Map(before.#holderByRow);
    }
    for (const { key, value } of origin?.all() ?? []) this.#take(0, bytesOf(key), value);
    this.#rights.settle(0);
    this.#listings.push([0, [...this.#policies.values()].sort()]);
    for (const { entry, hash, prevHash } of chain) {
      if (entry.body.kind === 'effects') {
        for (const { key, value } of entry.body.effects) this.#take(entry.seq, key, value);
      } else if (entry.body.kind === 'reset') {
        const all = { was: rowsBehind(prevHash), is: rowsBehind(hash) };
        for (const { key, value } of differences(all)) this.#take(entry.seq, key, value);
      } else continue;
      this.#rights.settle(entry.seq);
      this.#listings.push([entry.seq, [...this.#policies.values()].sort()]);
    }
  }

  /** Whether the object was this at any place of it. */
  wasEver(target: Target, version: Version): boolean {
    return this.of(target, '').some(({ from, version: each }) => {
      return from > 0 && each?.value === version?.value && each?.index === version?.index;
    });
  }

  /** `site`: the name of the datacenter that is asked. */
  of(target: ReadTarget, site: string): readonly Phase[] {
    if (target.kind === 'local-right') {
      const { about, links, login, holder, hasIdentity = false } = target;
      const namespace = holder?.namespace ?? DEFAULT_NAMESPACE;
      const rights = this.#rights.ofLinks(links, { about, site, namespace, hasIdentity });
      if (holder !== undefined) return within(this.#ofChanged(holder), rights);
      return login === undefined ? rights : within(this.#ofLogin(login), rights);
    }
    if (target.kind === 'changed') return this.#ofChanged(target);
    if (target.kind === 'right') return this.#rights.of(target.token.accessorId);
    if (target.kind === 'login') return this.#ofLogin(target);
    if (target.kind === 'tenant') return this.#ofTenant(target);
    return this.#byKey.get(keyOf(target)) ?? [NEVER];
  }

  /** Whether there was anything of the auth method or namespace with this key. */
  hasHolder(key: string): boolean {
    return this.#holders.has(key);
  }

  /** Whether there was another version of that object behind the first one. */
  wasChanged(key: string): boolean {
    const versions = (this.#byKey.get(key) ?? []).filter(({ version }) => version !== null);
    return versions.length > 1;
  }

  /** Whether that token was made, replaced or deleted. */
  hasToken(accessorId: string): boolean {
    return this.#byKey.has(`token ${accessorId}`);
  }

  /** Whether anything was made, replaced or deleted that has one of these keys. */
  hasAny(keys: readonly string[]): boolean {
    return keys.some((key) => this.#byKey.has(key));
  }

  /** A token of a login is there until its auth method is not, or until it is deleted itself. */
  #ofLogin({ accessorId, isLocal, method, version }: LoginTarget): readonly Phase[] {
    const own = isLocal
      ? [{ from: 0, version }]
      : (this.#byKey.get(`token ${accessorId}`) ?? [NEVER]);
    return this.#whileHeld(own, `auth-method ${method.name}`, method.createIndex);
  }

  #ofTenant({ namespace, namespaceIndex, version }: TenantTarget): readonly Phase[] {
    return this.#whileHeld([{ from: 0, version }], `namespace ${namespace}`, namespaceIndex);
  }

  /** Whatever comes from the primary meanwhile: nobody else changes it. */
  #ofChanged({ home, namespace, version }: ChangedTarget): readonly Phase[] {
    const own = [{ from: 0, version }];
    if (namespace === undefined || version === null) return own;
    return this.#whileHeld(own, `namespace ${namespace}`, home.index);
  }

  #whileHeld(own: readonly Phase[], key: string, index: number | undefined): readonly Phase[] {
    const holders = this.#holders.get(key) ?? [];
    const begun = holders.findIndex(({ createIndex }) => createIndex === index);
    if (begun < 0) return [NEVER];
    const ends = holders.slice(begun);
    const isHeld = (seq: number): boolean => {
      const last = ends.findLast(({ from }) => from <= seq);
      return last === undefined || last.createIndex === index;
    };
    const at = (seq: number): Version => own.findLast(({ from }) => from <= seq)?.version ?? null;
    const changes = [...own, ...ends.filter((_, place) => place > 0)].map(({ from }) => from);
    return [...new Set(changes)]
      .sort((left, right) => left - right)
      .map((from) => ({ from, version: isHeld(from) ? at(from) : null }));
  }

  /** Whether that auth method or namespace was there again after its end, as a restore makes it. */
  wasBroughtBack(key: string, index: number | undefined): boolean {
    const holders = this.#holders.get(key) ?? [];
    const begun = holders.findIndex(({ createIndex }) => createIndex === index);
    const end = holders.findIndex(({ createIndex }, place) => {
      return begun >= 0 && place > begun && createIndex !== index;
    });
    return end > 0 && holders.slice(end).some(({ createIndex }) => createIndex === index);
  }

  /** What a listing showed at each seq that changed something. */
  get listings(): readonly (readonly [number, readonly string[]])[] {
    return this.#listings;
  }

  #take(seq: number, key: Uint8Array, value: Uint8Array | undefined): void {
    const row = textOf(key);
    this.#rights.take(seq, key[0]!, row, value);
    if (value === undefined) {
      this.#policies.delete(row);
      const holder = this.#holderByRow.get(row);
      if (holder !== undefined) this.#noteHolder(holder, seq, NOTHING);
      const known = this.#keyByRow.get(row);
      if (known !== undefined) this.#add(known, { from: seq, version: null });
      return;
    }
    if (key[0] === ROW.policy) {
      const policy = decodeRecord(POLICIES.codec, value);
      this.#takeNamed(seq, row, { kind: 'policy', ...policy });
      const { name, namespace, modifyIndex } = policy;
      if (namespace === DEFAULT_NAMESPACE) this.#policies.set(row, `${name} ${modifyIndex}`);
    } else if (key[0] === ROW.token) {
      const token = decodeRecord(TOKENS.codec, value);
      const { accessorId, description, modifyIndex: index } = token;
      this.#keyByRow.set(row, `token ${accessorId}`);
      this.#add(`token ${accessorId}`, { from: seq, version: { value: description, index } });
    } else if (key[0] === ROW.role) {
      this.#takeNamed(seq, row, { kind: 'role', ...decodeRecord(ROLES.codec, value) });
    } else if (key[0] === ROW.authMethod) {
      const method = decodeRecord(AUTH_METHODS.codec, value);
      this.#takeHolder(seq, row, { key: `auth-method ${method.name}`, ...method });
    } else if (key[0] === ROW.namespace) {
      const namespace = decodeRecord(NAMESPACES.codec, value);
      this.#takeHolder(seq, row, { key: `namespace ${namespace.name}`, ...namespace });
    }
  }

  #takeNamed(
    seq: number,
    row: string,
    named: Pick<Policy, 'name' | 'namespace' | 'description' | 'modifyIndex'> & {
      readonly kind: 'policy' | 'role';
    },
  ): void {
    const { kind, name, namespace, description, modifyIndex: index } = named;
    const key = `${kind} ${nameWithin(namespace === DEFAULT_NAMESPACE ? undefined : namespace, name)}`;
    this.#keyByRow.set(row, key);
    this.#add(key, { from: seq, version: { value: description, index } });
  }

  /** What tokens end with. */
  #takeHolder(
    seq: number,
    row: string,
    holder: Pick<AuthMethod, 'description' | 'createIndex' | 'modifyIndex'> & {
      readonly key: string;
    },
  ): void {
    const { key, description, createIndex, modifyIndex: index } = holder;
    this.#keyByRow.set(row, key);
    this.#holderByRow.set(row, key);
    this.#add(key, { from: seq, version: { value: description, index } });
    this.#noteHolder(key, seq, createIndex);
  }

  #noteHolder(key: string, from: number, createIndex: number): void {
    const holders = this.#holders.get(key) ?? [];
    holders.push({ from, createIndex });
    this.#holders.set(key, holders);
  }

  #add(key: string, phase: Phase): void {
    const phases = this.#byKey.get(key) ?? [NEVER];
    phases.push(phase);
    this.#byKey.set(key, phases);
  }
}

/** What the inner ones say while there is the outer one. */
function within(outer: readonly Phase[], inner: readonly Phase[]): readonly Phase[] {
  const at = (phases: readonly Phase[], seq: number): Version =>
    phases.findLast(({ from }) => from <= seq)?.version ?? null;
  const froms = [...outer, ...inner].map(({ from }) => from);
  return [...new Set(froms)]
    .sort((left, right) => left - right)
    .map((from) => ({ from, version: at(outer, from) === null ? null : at(inner, from) }));
}

/** What makes the one of the other. */
function* differences({
  was = SortedRows.EMPTY,
  is = SortedRows.EMPTY,
}: {
  readonly was: SortedRows | undefined;
  readonly is: SortedRows | undefined;
}): Generator<{ readonly key: Uint8Array; readonly value: Uint8Array | undefined }> {
  for (const { key } of was.all()) {
    if (is.get(key) === undefined) yield { key: bytesOf(key), value: undefined };
  }
  for (const { key, value } of is.all()) {
    const before = was.get(key);
    const isSame = before !== undefined && Buffer.compare(before, value) === 0;
    if (!isSame) yield { key: bytesOf(key), value };
  }
}

function keyOf(target: Target): string {
  return target.kind === 'token' ? `token ${target.accessorId}` : target.key;
}
