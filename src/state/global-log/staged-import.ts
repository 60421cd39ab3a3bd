// The state that comes in as a snapshot of another datacenter, while this one serves on: its global
// objects, and a copy of what lives here alone. From the first carried row on, every local change is made
// in both, so that nothing of the last moments is missing when the one takes the place of the other.

import type { AuthMethod } from '../../acl/auth-method.ts';
import { DEFAULT_NAMESPACE } from '../../acl/ids.ts';
import type { Token } from '../../acl/token.ts';
import {
  changesCarried,
  endsWithLostMethod,
  keepsArrivedRequests,
  tellsLocalDeletions,
} from '../commands/feature-levels.ts';
import { isOfLocalToken } from '../commands/outcome.ts';
import { readAt, readAuthMethod, readNamespace } from '../reads/reads.ts';
import { type ArrivedRequest, requestRow } from '../reads/shared-request.ts';
import { isOrphaned } from '../reads/standing.ts';
import { decodeRecord } from '../rows/layout/record-codec.ts';
import { ObjectRows, type Sums } from '../rows/objects/object-rows.ts';
import {
  AUTH_METHODS,
  methodKey,
  NAMESPACES,
  secretKey,
  TOKENS,
  tableOfRow,
} from '../rows/objects/objects.ts';
import {
  encodeRetiredNamespace,
  readRetiredNamespace,
  retiredNamespaceKey,
} from '../rows/objects/retired-namespace.ts';
import { forgetOrigin } from '../rows/objects/token-origin.ts';
import { decodeRequest, requestAgeOf } from '../rows/request-row.ts';
import { RESTORE_KEY } from '../rows/restore-progress.ts';
import type { Getter } from '../rows/store/getter.ts';
import { type Rows, stagedRows } from '../rows/store/row-buffer.ts';
import { isBookkeepingRow, NO_BYTES, namedKey, ROW, rowKey } from '../rows/tables.ts';
import { decodeImport, encodeImport, type ImportProgress } from './import-progress.ts';

/** Of the key of a request in the key that begins with its time. */
const REQUEST_AT = 9;

/** What a local token is looked at by before it comes in. */
export interface CarriedBy {
  /** See `forkIndexOf`. */
  readonly forkIndex: number | undefined;
  /** The feature level in use. */
  readonly level: number;
}

export class StagedImport {
  readonly #rows: Rows;
  /** Where its rows are collected. */
  readonly #staged: Rows;
  readonly #objects: ObjectRows;
  #progress: ImportProgress;
  #isChanged = false;

  constructor(rows: Rows, progress: ImportProgress) {
    this.#rows = rows;
    this.#staged = stagedRows(rows);
    this.#objects = new ObjectRows(this.#staged, progress.sums);
    this.#progress = progress;
  }

  /** The one that is under way, if there is one. */
  static in(rows: Rows): StagedImport | undefined {
    const value = rows.get(RESTORE_KEY);
    const progress = value === undefined ? undefined : decodeImport(value);
    return progress === undefined ? undefined : new StagedImport(rows, progress);
  }

  get progress(): ImportProgress {
    return this.#progress;
  }

  get sums(): Sums {
    return this.#objects.sums();
  }

  /** Whether local changes go into both states by now. */
  get isCarrying(): boolean {
    return this.#progress.carryCount > 0;
  }

  /** Behind whatever was put with the same command. */
  moveOn(progress: Partial<ImportProgress>): void {
    this.#progress = { ...this.#progress, ...progress };
    this.#isChanged = true;
  }

  /** A row of the snapshot. It must be a global one. */
  putGlobal(key: Uint8Array, value: Uint8Array): void {
    const table = tableOfRow(key[0]!);
    const object = decodeRecord(table.codec, value);
    this.#objects.put(table, object, { value });
    // Only these two have a method to hang on; and all tokens come before the first method.
    if (key[0] === ROW.token) this.#retireIfOrphaned(object as unknown as Token);
    if (key[0] === ROW.authMethod) this.#forgetRetired(object as unknown as AuthMethod);
  }

  /** A request that is remembered with the snapshot, by the index of this state. */
  putRequest({ key, request }: ArrivedRequest, index: number): void {
    this.#staged.putRow(rowKey('request', key), requestRow(request, index));
    this.#staged.putRow(rowKey('requestByTime', request.timeMs, key), NO_BYTES);
  }

  /** A row of this datacenter as it is now; a local token, or bookkeeping. Anything else stays behind. */
  carry(key: Uint8Array, by: CarriedBy): void {
    const value = this.#rows.get(key);
    if (value === undefined) return;
    if (key[0] === ROW.token) {
      const token = decodeRecord(TOKENS.codec, value);
      if (token.local) this.putLocal(token, by);
    } else if (isBookkeepingRow(key[0]!) && !this.#isRequestThere(key)) {
      const staysBehind = tellsLocalDeletions(by.level) && this.#isSharedRequest(key);
      if (!staysBehind) this.#staged.putRow(key, value);
    }
  }

  /** A bookkeeping row was written, or is gone, at that feature level. */
  copyRow(key: Uint8Array, value: Uint8Array | undefined, level: number): void {
    if (keepsArrivedRequests(level)) this.#leaveArrived(key, value);
    const isOfArrived = keepsArrivedRequests(level) && key[0] === ROW.request;
    if (value !== undefined) this.#staged.putRow(key, value);
    else if (!isOfArrived) this.#staged.deleteRow(key);
  }

  /**
   * A local token was written. It gives way to a global one that has its ids, and stays behind with an auth method
   * or namespace of a fork. One that came in before only changes: what it gave way to would have been there then.
   */
  putLocal(token: Token, by: CarriedBy): void {
    this.#isChanged = true;
    const isThere = changesCarried(by.level) && this.#isCarried(token);
    if (!isThere && (this.#isTaken(token) || this.#isOfFork(token, by))) {
      this.#progress = { ...this.#progress, hasDropped: true };
      return;
    }
    const { old } = this.#objects.put(TOKENS, token);
    if (old !== undefined) return;
    this.#retireIfGone(token);
    this.#retireIfOrphaned(token);
  }

  /** A local token is gone, at that feature level. */
  deleteLocal(token: Token, level: number): void {
    const found = readAt(this.#staged, TOKENS, TOKENS.keyOf(token));
    if (found?.local !== true) return;
    this.#isChanged = true;
    this.#objects.delete(TOKENS, found);
    forgetOrigin(this.#staged, found, level);
  }

  /** Puts what follows from it among the rows. To be called before they are written. */
  finish(): void {
    if (!this.#isChanged) return;
    this.#objects.putCounts();
    this.#rows.putRow(RESTORE_KEY, encodeImport({ ...this.#progress, sums: this.sums }));
  }

  /** It becomes the state, as the commands before left it: nobody asks for its progress any more. */
  end(): void {
    this.#rows.deleteRow(RESTORE_KEY);
  }

  /**
   * Of what all share the primary remembers all that is still so. What it does not is of before a restore, and is not
   * done any more.
   */
  #isSharedRequest(key: Uint8Array): boolean {
    const isByTime = key[0] === ROW.requestByTime;
    if (!isByTime && key[0] !== ROW.request) return false;
    const requestKey = key.subarray(isByTime ? REQUEST_AT : 1);
    const value = this.#rows.get(rowKey('request', requestKey));
    return value !== undefined && !isOfLocalToken(decodeRequest(value).outcome.answer);
  }

  /**
   * What came with the snapshot of a request may be of another time than what is remembered here. It goes where the
   * one of its own time does, and with its time where another takes its place.
   */
  #leaveArrived(key: Uint8Array, value: Uint8Array | undefined): void {
    const isForgotten = key[0] === ROW.requestByTime && value === undefined;
    const isReplaced = key[0] === ROW.request && value !== undefined;
    if (!isForgotten && !isReplaced) return;
    const requestKey = key.subarray(isForgotten ? REQUEST_AT : 1);
    const row = rowKey('request', requestKey);
    const there = this.#staged.get(row);
    if (there === undefined) return;
    const { timeMs } = requestAgeOf(there);
    if (isReplaced) this.#staged.deleteRow(rowKey('requestByTime', timeMs, requestKey));
    else if (isSameKey(key, timeMs, requestKey)) this.#staged.deleteRow(row);
  }

  /**
   * What came with the snapshot is on the chain; what is remembered here of the same request may be of a fork
   * that was left.
   */
  #isRequestThere(key: Uint8Array): boolean {
    if (key[0] === ROW.request) return this.#staged.get(key) !== undefined;
    if (key[0] !== ROW.requestByTime) return false;
    const requestKey = key.subarray(REQUEST_AT);
    const there = this.#staged.get(rowKey('request', requestKey));
    return there !== undefined && !isSameKey(key, requestAgeOf(there).timeMs, requestKey);
  }

  #isCarried(token: Token): boolean {
    return readAt(this.#staged, TOKENS, TOKENS.keyOf(token))?.local === true;
  }

  #isTaken(token: Token): boolean {
    const holder = this.#staged.get(secretKey(token.secretId));
    const keys = [TOKENS.keyOf(token), ...(holder === undefined ? [] : [rowKey('token', holder)])];
    return keys.some((key) => readAt(this.#staged, TOKENS, key)?.local === false);
  }

  /** What it hangs on was made on the fork, or has its name from there; in the snapshot that is something else. */
  #isOfFork({ authMethod, namespace }: Token, { forkIndex, level }: CarriedBy): boolean {
    if (forkIndex === undefined) return false;
    const method = authMethod && readAuthMethod(this.#rows, authMethod.namespace, authMethod.name);
    const space = readNamespace(this.#rows, namespace);
    const isAnother = (key: Uint8Array): boolean => !isSameRow(this.#rows, this.#staged, key);
    const origin = endsWithLostMethod(level) ? authMethod : undefined;
    return (
      (origin !== undefined &&
        origin.createIndex >= forkIndex &&
        isAnother(namedKey('authMethod', origin.namespace, origin.name))) ||
      (method !== undefined &&
        method.createIndex >= forkIndex &&
        isAnother(AUTH_METHODS.keyOf(method))) ||
      (space !== undefined &&
        space.name !== DEFAULT_NAMESPACE &&
        space.createIndex >= forkIndex &&
        isAnother(NAMESPACES.keyOf(space)))
    );
  }

  /** The namespace that the token is in is not in the snapshot, or another one has its name there. */
  #retireIfGone(token: Token): void {
    const { namespace: name, createIndex } = token;
    const here = readNamespace(this.#rows, name);
    const there = readNamespace(this.#staged, name);
    const isVoid = createIndex <= (readRetiredNamespace(this.#rows, name)?.upTo ?? 0);
    if (!isVoid && here !== undefined && there?.createIndex === here.createIndex) return;
    const { upTo = 0, tokens = 0 } = readRetiredNamespace(this.#staged, name) ?? {};
    const retired = { upTo: Math.max(upTo, createIndex), tokens: tokens + 1 };
    this.#staged.putRow(retiredNamespaceKey(name), encodeRetiredNamespace(retired));
  }

  /** The method is there after all. */
  #forgetRetired(method: AuthMethod): void {
    const key = methodKey('retiredMethod', method);
    if (this.#staged.get(key) !== undefined) this.#staged.deleteRow(key);
  }

  #retireIfOrphaned(token: Token): void {
    const { authMethod } = token;
    if (authMethod === undefined || !isOrphaned(token, methodsIn(this.#staged))) return;
    this.#staged.putRow(methodKey('retiredMethod', authMethod), NO_BYTES);
  }
}

function isSameKey(key: Uint8Array, timeMs: number, requestKey: Uint8Array): boolean {
  return Buffer.compare(key, rowKey('requestByTime', timeMs, requestKey)) === 0;
}

/** Whether both have it, with the same bytes. */
function isSameRow(left: Getter, right: Getter, key: Uint8Array): boolean {
  const here = left.get(key);
  const there = right.get(key);
  return here !== undefined && there !== undefined && Buffer.compare(here, there) === 0;
}

function methodsIn(rows: Getter): Parameters<typeof isOrphaned>[1] {
  return { authMethod: (namespace, name) => readAuthMethod(rows, namespace, name) };
}
