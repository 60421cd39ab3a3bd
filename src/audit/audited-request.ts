// What is recorded of one request that comes in by a door: what it is about, who asks, what came of it. Only
// what this server knows to be a name or an id is repeated: people put secrets where ids belong.

import { AclError, type AclErrorCode } from '../acl/error.ts';
import {
  ANONYMOUS_SECRET,
  DEFAULT_NAMESPACE,
  lookupBytes,
  type NamespaceName,
  type SecretId,
} from '../acl/ids.ts';
import { idsIn, secretsMeant } from '../acl/values/ids-in-text.ts';
import { isNamespaceName } from '../acl/values/names.ts';
import type { Call } from '../service/call.ts';
import { ALL_NAMESPACES } from '../service/rights/select-namespace.ts';
import type { ObjectView, WriteMeta, WriteResult } from '../service/views.ts';
import { NotAsked } from '../service/writes/tries.ts';
import type { StateView } from '../state/view.ts';
import type { AuditObject, AuditRecord } from './audit-record.ts';

export interface Asker {
  readonly view: Pick<
    StateView,
    'token' | 'tokenBySecret' | 'policy' | 'role' | 'bindingRule' | 'namespace' | 'authMethod'
  >;
  /** Ids of the servers of this datacenter. */
  readonly servers: () => readonly string[];
}

/** What a caller may write in the place of a name. */
const NAME_CHARS_MAX = 256;
/** What stands in the place of one, and cannot be one, may be a bearer token. */
const OBJECT_NAME = /^[\w-]+$/;

/** Who asks for what, and from where. */
export function requestOf(asker: Asker, operation: string, call: Call): Omit<AuditRecord, 'event'> {
  return {
    operation,
    accessorId: accessorIdOf(asker, call),
    client: call.remoteAddress,
    // Whoever asks made it up for this request: of nothing that is known here.
    requestId: shortText(asker, call.requestId),
    datacenter: nameOf(asker, call.datacenter),
    namespace: namespaceOf(asker, call),
  };
}

/** By its query or a header. */
function namespaceOf(asker: Asker, call: Call): string | undefined {
  const named = call.namespaceParameter || call.namespaceHeader;
  return named === ALL_NAMESPACES ? named : namespaceIn(asker, named);
}

/** What no namespace can be called is none, and may be anything. One that there is may have an id in its name. */
function namespaceIn(asker: Asker, given: unknown): NamespaceName | undefined {
  const text = typeof given === 'string' ? shortText(asker, given)?.trim() : undefined;
  if (text === undefined || !isNamespaceName(text)) return undefined;
  return asker.view.namespace(text) === undefined && nameOf(asker, text) === undefined
    ? undefined
    : text;
}

/** Whose token it is, as far as this server knows it by now. */
export function accessorIdOf(
  { view }: Asker,
  { secret = ANONYMOUS_SECRET }: Call,
): string | undefined {
  return view.tokenBySecret(secret)?.accessorId;
}

/** What an operator asked for, without the texts that may not be repeated. */
export function inputIn(asker: Asker, input: object): Readonly<Record<string, unknown>> {
  const repeatable = (value: unknown): unknown => {
    if (typeof value === 'string') return nameOf(asker, value);
    return typeof value === 'object' && value !== null ? inputIn(asker, value) : value;
  };
  return Object.fromEntries(Object.entries(input).map(([key, each]) => [key, repeatable(each)]));
}

/** The object that an input names: with its id where this server knows that, or where it is known to have been one. */
export function objectIn(
  asker: Asker,
  operation: string,
  input: object,
  isOne = false,
): AuditObject | undefined {
  const given = input as Readonly<Record<string, unknown>>;
  const draft = (given.draft ?? {}) as Readonly<Record<string, unknown>>;
  const text = (value: unknown): string | undefined =>
    typeof value === 'string' ? nameOf(asker, value) : undefined;
  const idOf = (value: unknown): string | undefined =>
    text(value) ?? (isOne && typeof value === 'string' ? value : undefined);
  const id = idOf(given.accessorId) ?? idOf(given.id);
  const namespace = namespaceIn(asker, draft.namespace) ?? namespaceIn(asker, given.namespace);
  const nameIn = (value: unknown): string | undefined =>
    typeof value === 'string' ? objectNameIn(asker, value, { namespace, isOne }) : undefined;
  const name = nameIn(given.name) ?? nameIn(given.authMethod) ?? nameIn(draft.name);
  if (id === undefined && name === undefined && namespace === undefined) return undefined;
  return { kind: kindOf(operation), id, name, namespace };
}

/** A name may have an id in it, as programs make them: it is one where something here is called so, or was. */
function objectNameIn(
  asker: Asker,
  given: string,
  where: { readonly namespace: NamespaceName | undefined; readonly isOne: boolean },
): string | undefined {
  const { view } = asker;
  const { namespace = DEFAULT_NAMESPACE, isOne } = where;
  const text = shortText(asker, given)?.trim();
  if (text === undefined || !OBJECT_NAME.test(text)) return undefined;
  const isKnown = (): boolean =>
    view.namespace(text) !== undefined || view.authMethod(namespace, text) !== undefined;
  return isOne || nameOf(asker, text) !== undefined || isKnown() ? text : undefined;
}

function kindOf(operation: string): string {
  const [kind = operation] = operation.split('.');
  return KINDS[kind] ?? kind;
}

const KINDS: Readonly<Record<string, string>> = {
  bootstrap: 'token',
  'explain-login': 'auth-method',
  login: 'auth-method',
  logout: 'token',
  oidc: 'auth-method',
};

/** What a change was about, before it was made and, where it was done, behind it. */
export interface Subject {
  readonly asked: AuditObject | undefined;
  readonly done: () => AuditObject | undefined;
}

/** What came of a change, from the answer. */
export function answerOf(output: unknown, { asked, done }: Subject): Omit<AuditRecord, 'event'> {
  if (typeof output !== 'object' || output === null || !('meta' in output)) {
    return { outcome: output === false ? 'nothing' : 'done' };
  }
  const { value, meta } = output as Partial<WriteResult<ObjectView | boolean>> & {
    readonly meta: WriteMeta;
  };
  const { epoch, seq } = meta.position;
  const place = { index: meta.index, position: `${epoch}.${seq}` };
  if (value === false) return { ...place, outcome: 'nothing' };
  if (typeof value !== 'object') {
    return { ...place, object: asked?.id === undefined ? done() : asked, outcome: 'done' };
  }
  const shown = shownOf(value);
  const isNamed = asked?.id !== undefined || asked?.name !== undefined;
  const source = isNamed ? asked : done();
  const from = source !== undefined && isOther(source, shown.object) ? source : undefined;
  return { ...place, ...shown, from, outcome: 'done' };
}

/** Such as the auth method of a login, or the token that was cloned. */
function isOther({ kind, id }: AuditObject, made: AuditObject): boolean {
  return kind !== made.kind || (id !== undefined && id.toLowerCase() !== made.id?.toLowerCase());
}

function shownOf(view: ObjectView): { readonly object: AuditObject; readonly hash?: string } {
  switch (view.kind) {
    case 'token': {
      const { accessorId: id, namespace, hash } = view.token;
      return { object: { kind: view.kind, id, namespace }, hash };
    }
    case 'policy': {
      const { id, name, namespace, hash } = view.policy;
      return { object: { kind: view.kind, id, name, namespace }, hash };
    }
    case 'role': {
      const { id, name, namespace, hash } = view.role;
      return { object: { kind: view.kind, id, name, namespace }, hash };
    }
    case 'auth-method': {
      const { name, namespace } = view.method;
      return { object: { kind: view.kind, name, namespace } };
    }
    case 'binding-rule': {
      const { id, namespace } = view.rule;
      return { object: { kind: view.kind, id, namespace } };
    }
    case 'namespace':
      return { object: { kind: view.kind, name: view.namespace.name } };
    default:
      return view satisfies never;
  }
}

/** How a request that was not carried out, or perhaps not, is told. */
export function failureOf(
  error: unknown,
  { ack }: Pick<Call, 'ack'>,
): Pick<AuditRecord, 'outcome' | 'error'> {
  const code = error instanceof AclError ? error.code : 'internal';
  const isLate = code === 'wait-timeout' && ack !== undefined && !(error instanceof NotAsked);
  return { outcome: isLate || OPEN.has(code) ? 'unknown' : 'refused', error: code };
}

const OPEN: ReadonlySet<AclErrorCode> = new Set(['outcome-unknown', 'internal']);

/** The text, if it is short, and no secret. */
function shortText({ view }: Asker, given: string | undefined): string | undefined {
  // Who copies a secret may copy a blank with it.
  const text = given?.trim() ?? '';
  if (text === '' || text.length > NAME_CHARS_MAX) return undefined;
  const isSecret = [text, ...idsIn(text).flatMap(secretsMeant)].some(
    (each) => view.tokenBySecret(each as SecretId) !== undefined,
  );
  return isSecret ? undefined : given;
}

/** Likewise, and no id that neither an object nor a server has. */
function nameOf(asker: Asker, given: string | undefined): string | undefined {
  const { view, servers } = asker;
  const text = shortText(asker, given)?.trim();
  if (text === undefined) return undefined;
  if (lookupBytes(text) === undefined) return idsIn(text).length === 0 ? text : undefined;
  const object = view.policy(text) ?? view.role(text) ?? view.bindingRule(text);
  const server = text.toLowerCase();
  return (
    view.token(text)?.accessorId ?? object?.id ?? (servers().includes(server) ? server : undefined)
  );
}
