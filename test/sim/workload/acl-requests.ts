// What clients of the service ask in a run, as requests, and what the answers say. Policies are known
// by their names, tokens by their accessor ids; both carry a value of their own in their description.

import type { AuthMethodOrigin } from '../../../src/acl/token.ts';
import { siteName } from '../subject/datacenters-subject.ts';
import type { HttpAnswer, HttpQuestion } from '../subject/node-subject.ts';
import { IDENTITY_CONFIG } from './datacenters/identity-cluster.ts';
import type { ObjectInput, ObjectOutput, Version } from './object-model.ts';

/** One object that clients fight over. */
export type Target =
  | {
      readonly kind: 'policy';
      readonly key: string;
      readonly name: string;
      /** What its tokens may read, or write, by its value. */
      readonly about: 'key' | 'acl';
      /** It counts in one of so many datacenters alone, by its value; left out: in all. */
      readonly siteCount?: number | undefined;
      /** Where it is; left out: in the default one. So of roles and tokens. */
      readonly namespace?: string | undefined;
    }
  | {
      readonly kind: 'role';
      readonly key: string;
      readonly name: string;
      /** The policy that it is linked to while its value says so. */
      readonly policy: string;
      /** In the place of the policy it has an identity, of one of so many datacenters. */
      readonly identityOf?: number | undefined;
      readonly namespace?: string | undefined;
    }
  | {
      readonly kind: 'token';
      readonly key: string;
      readonly accessorId: string;
      readonly secret: string;
      /** The policy that it is linked to. */
      readonly policy: string;
      /** What it is linked to in the place of the policy. */
      readonly role?: string | undefined;
      readonly namespace?: string | undefined;
    }
  | {
      readonly kind: 'auth-method';
      readonly key: string;
      readonly name: string;
      /** Where the tokens of its logins live. */
      readonly locality: 'local' | 'global';
      /** So long they live; undefined: until somebody ends them. */
      readonly ttlMs: number | undefined;
    }
  | { readonly kind: 'namespace'; readonly key: string; readonly name: string };

/** Of identities. */
export const SERVICE = 'web';

export type TokenTarget = Extract<Target, { readonly kind: 'token' }>;

/** A token that a login made: nobody writes it, and it ends with its auth method. */
export interface LoginTarget {
  readonly kind: 'login';
  readonly key: string;
  readonly accessorId: string;
  readonly secret: string;
  readonly isLocal: boolean;
  /** Where the login was. */
  readonly site: number;
  readonly method: AuthMethodOrigin;
  /** As the login was answered. */
  readonly version: Version;
  /** By the wall clock of whoever is asked it is void after that; Infinity where it does not expire. */
  readonly expiresAtMs: number;
  /** What its rules gave it. */
  readonly links: Links;
}

/** Ids of policies and roles. */
export interface Links {
  readonly policies: readonly string[];
  readonly roles: readonly string[];
}

/** A local token in a namespace that clients make and delete: it ends with its namespace. */
export interface TenantTarget {
  readonly kind: 'tenant';
  readonly key: string;
  readonly accessorId: string;
  readonly secret: string;
  /** Where it was made. */
  readonly site: number;
  readonly namespace: string;
  /** As it was made. */
  readonly version: Version;
  /** CreateIndex of the namespace that it was made in, as the log of its datacenter tells in the end. */
  namespaceIndex: number | undefined;
}

/** A local token that clients change, as it is at one version of it. */
export interface ChangedTarget {
  readonly kind: 'changed';
  readonly key: string;
  readonly accessorId: string;
  readonly secret: string;
  /** Where it was made. */
  readonly site: number;
  /** It ends with it; undefined: the default one. */
  readonly namespace: string | undefined;
  /** CreateIndex of the namespace that it was made in, as the log of its datacenter tells in the end. */
  readonly home: { index: number | undefined };
  /** As it was answered; null: it is deleted. */
  readonly version: Version;
  /** By the wall clock of whoever is asked it is void after that; Infinity where it does not expire. */
  readonly expiresAtMs: number;
}

/** What a token may do, by its policy or its role. */
export interface RightTarget {
  readonly kind: 'right';
  readonly key: string;
  readonly token: TokenTarget;
  /** Keys of all that it rests on. */
  readonly rootKeys: readonly string[];
}

/** What a local token, or one of a login, may do by what all share, which others write. */
export interface LocalRightTarget {
  readonly kind: 'local-right';
  readonly key: string;
  readonly secret: string;
  /** Where it lives; undefined: everywhere. */
  readonly site: number | undefined;
  readonly links: Links;
  readonly about: RightAbout;
  /** Keys of all that it rests on. */
  readonly rootKeys: readonly string[];
  /** It ends with its login. */
  readonly login: LoginTarget | undefined;
  /** The version of a token that is changed which has these links; left out: of one that is not. */
  readonly holder?: ChangedTarget;
  /** Whether it has an identity of its own; left out: it has not. */
  readonly hasIdentity?: boolean;
}

/** What is asked: whether a key, or a service, may be written. */
export type RightAbout = 'key' | 'service';

/** What a client remembers of an object that it saw. */
export interface Known {
  /** Of a policy or role: what the service calls it. */
  readonly id: string;
  readonly index: number;
}

export type Consistency = 'default' | 'consistent' | 'stale';

export function policyTarget(number: number): Target {
  return policyNamed(`p${number}`, 'key');
}

export function policyNamed(name: string, about: 'key' | 'acl', namespace?: string): Target {
  return { kind: 'policy', key: `policy ${nameWithin(namespace, name)}`, name, about, namespace };
}

export function roleNamed(name: string, policy: string, namespace?: string): Target {
  return { kind: 'role', key: `role ${nameWithin(namespace, name)}`, name, policy, namespace };
}

/** As keys of targets have it: one name is another one in each namespace. */
export function nameWithin(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

export function tokenTarget(
  number: number,
  policy: string,
  role?: string,
  namespace?: string,
): TokenTarget {
  const digits = number.toString(16).padStart(12, '0');
  return {
    kind: 'token',
    key: `token t${number}`,
    accessorId: `aaaaaaaa-0000-4000-8000-${digits}`,
    secret: `bbbbbbbb-0000-4000-8000-${digits}`,
    ...{ policy, role, namespace },
  };
}

export function authMethodTarget(
  name: string,
  locality: 'local' | 'global',
  ttlMs: number | undefined,
): Target {
  return { kind: 'auth-method', key: `auth-method ${name}`, name, locality, ttlMs };
}

export function namespaceTarget(name: string): Extract<Target, { readonly kind: 'namespace' }> {
  return { kind: 'namespace', key: `namespace ${name}`, name };
}

/** What asks for a write; undefined when the client cannot name the object yet. */
export function writeQuestion(
  target: Target,
  input: ObjectInput,
  known: Known | undefined,
): Omit<HttpQuestion, 'headers'> | undefined {
  const cas = 'cas' in input && input.cas !== undefined ? [`cas=${input.cas}`] : [];
  const query = queryText([...namespaceQuery(target), ...cas]);
  const body = 'value' in input ? bodyOf(target, input.value) : undefined;
  const all = pathOf(target);
  if (input.kind === 'create') {
    const ids =
      target.kind === 'token' ? { AccessorID: target.accessorId, SecretID: target.secret } : {};
    return { method: 'PUT', path: `${all}${query}`, body: { ...body, ...ids } };
  }
  const id = idOf(target) ?? known?.id;
  if (id === undefined) return undefined;
  const path = `${all}/${id}${query}`;
  return input.kind === 'delete' ? { method: 'DELETE', path } : { method: 'PUT', path, body };
}

function namespaceQuery(target: Target): readonly string[] {
  const named = 'namespace' in target && target.namespace !== undefined;
  return named ? [`ns=${target.namespace}`] : [];
}

/** The empty text where nothing is asked. */
function queryText(parts: readonly string[]): string {
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

/** Of all objects of its kind. */
function pathOf({ kind }: Target): string {
  return kind === 'namespace' ? '/v1/namespace' : `/v1/acl/${kind}`;
}

/** By which clients name it from the start; the service chooses the ids of policies and roles. */
function idOf(target: Target): string | undefined {
  switch (target.kind) {
    case 'policy':
    case 'role':
      return undefined;
    case 'token':
      return target.accessorId;
    default:
      return target.name;
  }
}

/** Rules follow from the value, so that a decision tells which value it was made by. */
function bodyOf(target: Target, value: string): Readonly<Record<string, unknown>> {
  const Description = value;
  switch (target.kind) {
    case 'policy': {
      const access = accessOf(value);
      const Rules =
        target.about === 'acl' ? `acl = "${access}"` : `key "x" { policy = "${access}" }`;
      const { siteCount } = target;
      const scope = siteCount === undefined ? {} : { Datacenters: [scopeOf(value, siteCount)] };
      return { Name: target.name, Description, Rules, ...scope };
    }
    case 'role': {
      if (target.identityOf !== undefined) {
        const identity = { ServiceName: SERVICE, Datacenters: [scopeOf(value, target.identityOf)] };
        const ServiceIdentities = mayWrite(value) ? [identity] : [];
        return { Name: target.name, Description, ServiceIdentities };
      }
      const Policies = mayWrite(value) ? [{ Name: target.policy }] : [];
      return { Name: target.name, Description, Policies };
    }
    case 'token':
      return target.role === undefined
        ? { Description, Policies: [{ Name: target.policy }] }
        : { Description, Roles: [{ Name: target.role }] };
    case 'namespace':
      return { Name: target.name, Description };
    default: {
      const { name: Name, locality: TokenLocality, ttlMs } = target;
      const Ttl = ttlMs === undefined ? {} : { MaxTokenTTL: `${ttlMs}ms` };
      const Config = IDENTITY_CONFIG;
      return { Name, Description, Type: 'kubernetes', TokenLocality, ...Ttl, Config };
    }
  }
}

/** Whether a policy of this value lets its tokens write, or a role has its policy. */
export function mayWrite(value: string): boolean {
  return accessOf(value) === 'write';
}

/** Of an object that counts in one datacenter, by its value: which. */
export function scopeOf(value: string, siteCount: number): string {
  return siteName(Math.floor(Number(value.slice(1)) / 2) % siteCount);
}

function accessOf(value: string): 'read' | 'write' {
  return Number(value.slice(1)) % 2 === 0 ? 'write' : 'read';
}

export function readQuestion(
  target: Target,
  consistency: Consistency,
): Omit<HttpQuestion, 'headers'> {
  const asked = consistency === 'default' ? [] : [consistency];
  const query = queryText([...namespaceQuery(target), ...asked]);
  const hasName = target.kind === 'policy' || target.kind === 'role';
  const name = hasName ? `name/${target.name}` : (idOf(target) ?? '');
  return { method: 'GET', path: `${pathOf(target)}/${name}${query}` };
}

/** Who asks; with an id, a write that is sent again is done once. */
export function headersOf(
  secret: string,
  requestId: string | undefined,
): Readonly<Record<string, string>> {
  return {
    'X-Service-Token': secret,
    ...(requestId !== undefined && { 'X-Service-Request-Id': requestId }),
  };
}

/**
 * What it names is not there, or was deleted before the write had its place in the log; or a namespace holds
 * something, or is not there.
 */
const IS_REFUSED =
  /^No such ACL (?:policy|role) |^Failed to apply role upsert request: No such policy |^Namespace "\S+" (?:is not empty: |does not exist)/;

/** Of the service dialect. */
export function outputOf(
  input: ObjectInput,
  { status, text }: HttpAnswer,
): ObjectOutput | 'unavailable' | 'unknown' | 'impossible' {
  switch (status) {
    case 200:
      return doneOutput(input, text);
    case 400:
      return IS_REFUSED.test(text) ? { kind: 'refused' } : 'impossible';
    case 404:
      return { kind: 'missing' };
    case 409:
      return input.kind === 'create' ? { kind: 'taken' } : { kind: 'mismatch' };
    case 503:
      return 'unavailable';
    case 504:
      return 'unknown';
    default:
      return 'impossible';
  }
}

function doneOutput(input: ObjectInput, text: string): ObjectOutput {
  const said = JSON.parse(text) as boolean | ObjectText;
  if (typeof said === 'boolean') return said ? { kind: 'deleted' } : { kind: 'missing' };
  const { Description: value, ModifyIndex: index } = said;
  return input.kind === 'read' ? { kind: 'found', value, index } : { kind: 'written', index };
}

interface ObjectText {
  readonly ID?: string;
  readonly AccessorID?: string;
  readonly Description: string;
  readonly ModifyIndex: number;
}

/** What a client may remember of an answer that shows an object. */
export function knownFrom({ status, text }: HttpAnswer): Known | undefined {
  if (status !== 200) return undefined;
  const said = JSON.parse(text) as boolean | ObjectText;
  if (typeof said === 'boolean') return undefined;
  return { id: said.ID ?? said.AccessorID ?? '', index: said.ModifyIndex };
}
