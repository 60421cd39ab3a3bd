// What each object was at each place of one chain of the global log, told by the effects of its entries.

import type { KnownEntry } from '../../checks/federation/global-chain.ts';
import { AUTH_METHODS, POLICIES, ROLES, TOKENS } from '../../../../src/state/objects.ts';
import { decodeRecord } from '../../../../src/state/record-codec.ts';
import { ROW } from '../../../../src/state/tables.ts';
import { bytesOf, textOf } from '../../world/key-text.ts';
import type { SortedRows } from '../../world/sorted-rows.ts';
import type { LoginTarget, Target } from '../acl-requests.ts';
import type { Version } from '../object-model.ts';

/** What an object was from one seq on, until the next. */
export interface Phase {
  readonly from: number;
  readonly version: Version;
}

/** No object has this index. */
const NO_METHOD = 0;

const NEVER: Phase = { from: 0, version: null };

export class GlobalPhases {
  /** By key of the target. */
  readonly #byKey = new Map<string, Phase[]>();
  /** By the key of its row. */
  readonly #keyByRow: Map<string, string> = new Map();
  /** By seq: all policies, as a listing shows them. */
  readonly #listings: (readonly [number, readonly string[]])[] = [];
  readonly #policies = new Map<string, string>();
  /** By name: from which seq on there is the auth method of which CreateIndex, or none. */
  readonly #methods = new Map<string, { readonly from: number; readonly createIndex: number }[]>();
  readonly #methodByRow = new Map<string, string>();

  /**
   * `origin`: the objects before the first entry. `before`: what made objects that these entries may
   * delete.
   */
  constructor(
    chain: readonly KnownEntry[],
    { origin, before }: { readonly origin?: SortedRows; readonly before?: GlobalPhases },
  ) {
    if (before !== undefined) {
      this.#keyByRow = new Map(before.#keyByRow);
      this.#methodByRow = new Map(before.#methodByRow);
    }
    for (const { key, value } of origin?.all() ?? []) this.#take(0, bytesOf(key), value);
    this.#listings.push([0, [...this.#policies.values()].sort()]);
    for (const { entry } of chain) {
      if (entry.body.kind !== 'effects') continue;
      for (const { key, value } of entry.body.effects) this.#take(entry.seq, key, value);
      this.#listings.push([entry.seq, [...this.#policies.values()].sort()]);
    }
  }

  /** Whether the object was this at any place of it. */
  wasEver(target: Target, version: Version): boolean {
    return this.of(target).some(({ from, version: each }) => {
      return from > 0 && each?.value === version?.value && each?.index === version?.index;
    });
  }

  of(target: Target | LoginTarget): readonly Phase[] {
    if (target.kind === 'login') return this.#ofLogin(target);
    return this.#byKey.get(keyOf(target)) ?? [NEVER];
  }

  /** Whether there was anything of the auth method of that name. */
  hasMethod(name: string): boolean {
    return this.#methods.has(name);
  }

  /** Whether that token was made, replaced or deleted. */
  hasToken(accessorId: string): boolean {
    return this.#byKey.has(`token ${accessorId}`);
  }

  /** A token of a login is there until its auth method is not, or until it is deleted itself. */
  #ofLogin({ accessorId, isLocal, method, version }: LoginTarget): readonly Phase[] {
    const methods = this.#methods.get(method.name) ?? [];
    const begun = methods.findIndex(({ createIndex }) => createIndex === method.createIndex);
    const own = isLocal
      ? [{ from: 0, version }]
      : (this.#byKey.get(`token ${accessorId}`) ?? [NEVER]);
    if (begun < 0) return [NEVER];
    const end = methods.slice(begun).find(({ createIndex }) => createIndex !== method.createIndex);
    if (end === undefined) return own;
    return [...own.filter(({ from }) => from < end.from), { from: end.from, version: null }];
  }

  /** What a listing showed at each seq that changed something. */
  get listings(): readonly (readonly [number, readonly string[]])[] {
    return this.#listings;
  }

  #take(seq: number, key: Uint8Array, value: Uint8Array | undefined): void {
    const row = textOf(key);
    if (value === undefined) {
      this.#policies.delete(row);
      const method = this.#methodByRow.get(row);
      if (method !== undefined) this.#noteMethod(method, seq, NO_METHOD);
      const known = this.#keyByRow.get(row);
      if (known !== undefined) this.#add(known, { from: seq, version: null });
      return;
    }
    if (key[0] === ROW.policy) {
      const { name, description, modifyIndex: index } = decodeRecord(POLICIES.codec, value);
      this.#keyByRow.set(row, `policy ${name}`);
      this.#policies.set(row, `${name} ${index}`);
      this.#add(`policy ${name}`, { from: seq, version: { value: description, index } });
    } else if (key[0] === ROW.token) {
      const token = decodeRecord(TOKENS.codec, value);
      const { accessorId, description, modifyIndex: index } = token;
      this.#keyByRow.set(row, `token ${accessorId}`);
      this.#add(`token ${accessorId}`, { from: seq, version: { value: description, index } });
    } else if (key[0] === ROW.role) {
      const { name, description, modifyIndex: index } = decodeRecord(ROLES.codec, value);
      this.#keyByRow.set(row, `role ${name}`);
      this.#add(`role ${name}`, { from: seq, version: { value: description, index } });
    } else if (key[0] === ROW.authMethod) {
      const method = decodeRecord(AUTH_METHODS.codec, value);
      const { name, description, createIndex, modifyIndex: index } = method;
      this.#keyByRow.set(row, `auth-method ${name}`);
      this.#methodByRow.set(row, name);
      this.#add(`auth-method ${name}`, { from: seq, version: { value: description, index } });
      this.#noteMethod(name, seq, createIndex);
    }
  }

  #noteMethod(name: string, from: number, createIndex: number): void {
    const methods = this.#methods.get(name) ?? [];
    methods.push({ from, createIndex });
    this.#methods.set(name, methods);
  }

  #add(key: string, phase: Phase): void {
    const phases = this.#byKey.get(key) ?? [NEVER];
    phases.push(phase);
    this.#byKey.set(key, phases);
  }
}

function keyOf(target: Target): string {
  return target.kind === 'token' ? `token ${target.accessorId}` : `${target.kind} ${target.name}`;
}
