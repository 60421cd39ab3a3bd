// The `kubernetes` auth method: a service account's JWT, which the cluster itself reviews. The name of
// the account may be overridden by an annotation on it (compatibility.md 7.2, 7.3).

import { decodeJwt, decodeProtectedHeader } from 'jose';
import { messageOf } from '../../cluster/base/message-of.ts';
import { withoutTrailing } from '../../cluster/base/without-trailing.ts';
import type { AuthMethod } from '../acl/auth-method.ts';
import { DEFAULT_NAMESPACE, type NamespaceName } from '../acl/ids.ts';
import { requireNamespaceName } from '../acl/values/names.ts';
import type { AuthMethodValidator } from './auth-method-validator.ts';
import { ConfigReader, invalidConfig } from './config-reader.ts';
import type { AttributeNames, Identity } from './identity.ts';
import { checkCertificates, requireFewCertificates } from './jwt/signing-keys.ts';
import type { Outside } from './outside/outside.ts';
import {
  ask,
  isRecord,
  jsonObjectOf,
  loginUnavailable,
  parseHttpUrl,
  RemoteFailure,
} from './outside/remote.ts';
import type { Surroundings } from './outside/surroundings.ts';
import { checkBearerLength, refused } from './refused.ts';

/** The annotation of a service account that replaces its name; deployed clusters carry it. */
const NAME_ANNOTATION = 'consul.hashicorp.com/service-name';
const FIELDS = ['serviceaccount.namespace', 'serviceaccount.name', 'serviceaccount.uid'] as const;
const NAMES: AttributeNames = {
  selectable: { strings: FIELDS, stringMaps: [], listMaps: [] },
  interpolatable: FIELDS,
};
const KEYS = ['Host', 'CACert', 'ServiceAccountJWT'] as const;
/** Before there were namespace rules, and with clients that know none: the namespaces of the cluster are those here. */
const MAPPING_KEYS = ['ConsulNamespacePrefix', 'ConsulNamespaceOverrides'] as const;
/** A name of a namespace may begin so. */
const PREFIX = /^([a-z0-9][a-z0-9-]{0,61})?$/;
/** The names that a cluster gives to namespaces and service accounts. */
const OBJECT_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

interface KubernetesConfig {
  /** Without a slash at the end. */
  readonly baseUrl: string;
  readonly caPem: string;
  readonly serviceAccountJwt: string;
  /** Undefined: namespaces of the cluster are not mapped. */
  readonly mapping: NamespaceMapping | undefined;
}

interface NamespaceMapping {
  readonly prefix: string;
  /** By the names that they have in the cluster; without the prefix. */
  readonly overrides: ReadonlyMap<string, NamespaceName>;
}

interface ServiceAccount {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export function createKubernetes(outside: Outside): AuthMethodValidator {
  return {
    checkConfig: async ({ config, namespace, namespaceRules }) => {
      const { caPem, mapping } = decodeConfig(config);
      if (mapping !== undefined) requireMayMap(namespace, namespaceRules);
      checked('error parsing kubernetes ca cert', () => requireFewCertificates(caPem));
    },
    attributeNames: () => NAMES,
    mappingText: ({ config }) => mappingTextOf(decodeConfig(config).mapping),
    validate: (method, bearer) => validate(outside.of(method), method, bearer),
  };
}

function decodeConfig(config: AuthMethod['config']): KubernetesConfig {
  const reader = new ConfigReader(config, [...KEYS, 'MapNamespaces', ...MAPPING_KEYS]);
  for (const key of KEYS) {
    if (!reader.has(key)) throw invalidConfig(`Config.${key} is required`);
  }
  const caPem = reader.string('CACert');
  checked('error parsing kubernetes ca cert', () => checkCertificates(caPem));
  const serviceAccountJwt = reader.string('ServiceAccountJWT');
  checked('Config.ServiceAccountJWT is not a valid JWT', () => checkIsJwt(serviceAccountJwt));
  const host = reader.string('Host');
  // A bare host and port means TLS, as in the cluster's own client configuration.
  const url = /^[a-z]+:\/\//i.test(host) ? host : `https://${host}`;
  checked('Config.Host is not valid', () => parseHttpUrl(url));
  const mapping = mappingOf(reader);
  return { baseUrl: withoutTrailing(url, '/'), caPem, serviceAccountJwt, mapping };
}

type Reader = ConfigReader<(typeof KEYS)[number] | (typeof MAPPING_KEYS)[number] | 'MapNamespaces'>;

function mappingOf(reader: Reader): NamespaceMapping | undefined {
  if (!reader.bool('MapNamespaces', false)) {
    const idle = MAPPING_KEYS.find((key) => reader.has(key));
    if (idle === undefined) return undefined;
    throw invalidConfig(`Config.${idle} needs Config.MapNamespaces`);
  }
  const prefix = reader.string('ConsulNamespacePrefix');
  if (!PREFIX.test(prefix)) {
    throw invalidConfig('Config.ConsulNamespacePrefix is not valid: no namespace can begin so');
  }
  const overrides = [...reader.stringMap('ConsulNamespaceOverrides')].map(([from, to]) => {
    const place = to === '' ? DEFAULT_NAMESPACE : to;
    checked('Config.ConsulNamespaceOverrides is not valid', () => requireNamespaceName(place));
    return [from, place as NamespaceName] as const;
  });
  return { prefix, overrides: new Map(overrides) };
}

/** In one order, however the overrides were sent: no key is there twice. */
function mappingTextOf(mapping: NamespaceMapping | undefined): string {
  if (mapping === undefined) return '';
  const overrides = [...mapping.overrides].sort(([left], [right]) => (left < right ? -1 : 1));
  return JSON.stringify([mapping.prefix, ...overrides]);
}

/** Whoever writes a method of another namespace may not say what is in others; and one of the two must decide. */
function requireMayMap(
  namespace: NamespaceName,
  namespaceRules: AuthMethod['namespaceRules'],
): void {
  if (namespace !== DEFAULT_NAMESPACE) {
    throw invalidConfig(
      `Config.MapNamespaces can only be used in the ${DEFAULT_NAMESPACE} namespace`,
    );
  }
  if (namespaceRules.length > 0) {
    throw invalidConfig('Config.MapNamespaces cannot be used with NamespaceRules');
  }
}

function checked(prefix: string, check: () => unknown): void {
  try {
    check();
  } catch (error) {
    throw invalidConfig(`${prefix}: ${messageOf(error)}`);
  }
}

function checkIsJwt(token: string): void {
  try {
    decodeProtectedHeader(token);
    decodeJwt(token);
  } catch (error) {
    throw new Error('it does not parse', { cause: error });
  }
}

async function validate(outside: Outside, method: AuthMethod, bearer: string): Promise<Identity> {
  checkBearerLength(bearer);
  const config = decodeConfig(method.config);
  try {
    checkIsJwt(bearer);
  } catch (error) {
    throw refused('the bearer token is not a JSON Web Token', error);
  }
  try {
    const account = await review(outside, config, bearer);
    const shown = { ...account, name: await shownName(outside, config, account) };
    return identityOf(shown, config.mapping);
  } catch (failure) {
    if (!(failure instanceof RemoteFailure)) throw failure;
    const what = 'a review of the service account';
    throw loginUnavailable(outside, { method: method.name, what, failure });
  }
}

async function review(
  surroundings: Surroundings,
  config: KubernetesConfig,
  token: string,
): Promise<ServiceAccount> {
  const answer = await askCluster(surroundings, config, {
    path: '/apis/authentication.k8s.io/v1/tokenreviews',
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } },
  });
  if (answer === undefined) throw new RemoteFailure('unexpected status 404');
  const status = recordOf(answer.status);
  if (typeof status.error === 'string' && status.error !== '') {
    // The cluster's text may quote what it was sent, so it goes no further.
    throw refused('lookup failed: the cluster could not authenticate the service account jwt');
  }
  if (status.authenticated !== true) {
    throw refused('lookup failed: service account jwt not valid');
  }
  return accountOf(recordOf(status.user));
}

function accountOf(user: Readonly<Record<string, unknown>>): ServiceAccount {
  const parts = typeof user.username === 'string' ? user.username.split(':') : [];
  const [system, kind, namespace = '', name = ''] = parts;
  if (parts.length !== 4) throw refused('lookup failed: unexpected username format');
  if (system !== 'system' || kind !== 'serviceaccount') {
    throw refused('lookup failed: username returned is not a service account');
  }
  // These become part of a path, so they must be nothing but names.
  if (!OBJECT_NAME.test(namespace) || !OBJECT_NAME.test(name)) {
    throw refused('lookup failed: unexpected username format');
  }
  return { namespace, name, uid: typeof user.uid === 'string' ? user.uid : '' };
}

async function shownName(
  surroundings: Surroundings,
  config: KubernetesConfig,
  { namespace, name }: ServiceAccount,
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}`;
  const account = await askCluster(surroundings, config, { path });
  if (account === undefined) throw refused('annotation lookup failed: no such service account');
  const annotations = recordOf(recordOf(account.metadata).annotations);
  const override = Object.hasOwn(annotations, NAME_ANNOTATION)
    ? annotations[NAME_ANNOTATION]
    : undefined;
  return typeof override === 'string' ? override : name;
}

/** The answer as an object, or undefined for status 404. */
async function askCluster(
  surroundings: Surroundings,
  { baseUrl, caPem, serviceAccountJwt }: KubernetesConfig,
  { path, body }: { readonly path: string; readonly body?: unknown },
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const response = await ask(surroundings, {
    method: body === undefined ? 'GET' : 'POST',
    url: `${baseUrl}${path}`,
    headers: {
      accept: 'application/json',
      'content-type': 'application/json',
      authorization: `Bearer ${serviceAccountJwt}`,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    caPem,
  });
  if (response.status === 404) return undefined;
  if (response.status !== 200 && response.status !== 201) {
    throw new RemoteFailure(`unexpected status ${response.status}`);
  }
  return jsonObjectOf(response.body);
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

function identityOf(
  { namespace, name, uid }: ServiceAccount,
  mapping: NamespaceMapping | undefined,
): Identity {
  const strings = new Map([
    ['serviceaccount.namespace', namespace],
    ['serviceaccount.name', name],
    ['serviceaccount.uid', uid],
  ]);
  return {
    selectable: { strings, lists: new Map() },
    interpolatable: strings,
    ...(mapping !== undefined && {
      mappedNamespace: mapping.overrides.get(namespace) ?? `${mapping.prefix}${namespace}`,
    }),
  };
}
