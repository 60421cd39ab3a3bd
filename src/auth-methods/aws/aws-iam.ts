// The `aws-iam` auth method: whoever can sign `sts:GetCallerIdentity` as a role or user of AWS is that
// role or user. AWS checks the signature; we check that the request is that request and goes to AWS
// or to the operator's endpoint (aws-request.ts), and whether the principal is bound.

import { messageOf } from '../../../cluster/base/message-of.ts';
import { withoutTrailing } from '../../../cluster/base/without-trailing.ts';
import type { AuthMethod } from '../../acl/auth-method.ts';
import type { AuthMethodValidator } from '../auth-method-validator.ts';
import { ConfigReader, invalidConfig } from '../config-reader.ts';
import type { AttributeNames, Identity } from '../identity.ts';
import type { HttpsResponse } from '../outside/https-client.ts';
import type { Outside } from '../outside/outside.ts';
import { ask, loginUnavailable, parseHttpUrl, RemoteFailure } from '../outside/remote.ts';
import type { Surroundings } from '../outside/surroundings.ts';
import { checkBearerLength, refused } from '../refused.ts';
import { isBindableArn, matchesArn, type Principal, principalOf } from './aws-arn.ts';
import {
  callerIdentityRequest,
  checkServerId,
  type Endpoint,
  entityRequest,
  type SignedRequest,
} from './aws-request.ts';
import { elementAt, parseXml, textAt, type XmlElement } from './xml.ts';

const KEYS = [
  'BoundIAMPrincipalARNs',
  'EnableIAMEntityDetails',
  'IAMEntityTags',
  'ServerIDHeaderValue',
  'MaxRetries',
  'IAMEndpoint',
  'STSEndpoint',
  'AllowedSTSHeaderValues',
] as const;
const RETRIES_DEFAULT = 1;
const RETRIES_MAX = 5;

interface AwsConfig {
  readonly boundArns: readonly string[];
  readonly entityDetails: boolean;
  readonly entityTags: readonly string[];
  /** Empty: not asked for. */
  readonly serverId: string;
  readonly retries: number;
  readonly sts: Endpoint;
  readonly iam: Endpoint;
  readonly allowedHeaders: readonly string[];
}

interface Entity {
  readonly principal: Principal;
  /** The ARN that bound ARNs are compared with. */
  readonly arn: string;
  readonly id: string;
  /** Undefined without entity details. */
  readonly path: string | undefined;
  readonly tags: ReadonlyMap<string, string>;
}

export function createAwsIam(outside: Outside): AuthMethodValidator {
  return {
    checkConfig: async ({ config }) => {
      decodeConfig(config);
    },
    attributeNames: ({ config }) => attributeNames(decodeConfig(config)),
    validate: (method, bearer) => validate(outside.of(method), method, bearer),
  };
}

function decodeConfig(config: AuthMethod['config']): AwsConfig {
  const reader = new ConfigReader(config, KEYS);
  const boundArns = reader.strings('BoundIAMPrincipalARNs');
  const entityDetails = reader.bool('EnableIAMEntityDetails', false);
  const entityTags = reader.strings('IAMEntityTags');
  checkBoundArns(boundArns, entityDetails);
  if (entityTags.length > 0 && !entityDetails) {
    throw invalidConfig('must set EnableIAMEntityDetails=true to use IAMEntityTags');
  }
  const retries = reader.has('MaxRetries') ? reader.integer('MaxRetries') : RETRIES_DEFAULT;
  return {
    boundArns,
    entityDetails,
    entityTags,
    serverId: reader.string('ServerIDHeaderValue'),
    retries: retries < 0 ? RETRIES_DEFAULT : Math.min(retries, RETRIES_MAX),
    sts: { service: 'sts', url: decodeEndpoint('STSEndpoint', reader.string('STSEndpoint')) },
    iam: { service: 'iam', url: decodeEndpoint('IAMEndpoint', reader.string('IAMEndpoint')) },
    allowedHeaders: reader.strings('AllowedSTSHeaderValues'),
  };
}

function checkBoundArns(arns: readonly string[], entityDetails: boolean): void {
  if (arns.length === 0) {
    throw invalidConfig('BoundIAMPrincipalARNs is required and must have at least 1 entry');
  }
  for (const arn of arns) {
    if (!isBindableArn(arn)) throw invalidConfig(`invalid principal ARN: ${JSON.stringify(arn)}`);
    if (arn.includes('*') && !entityDetails) {
      throw invalidConfig(
        'must set EnableIAMEntityDetails=true to use wildcards in BoundIAMPrincipalARNs',
      );
    }
  }
}

function decodeEndpoint(key: string, text: string): URL | undefined {
  if (text === '') return undefined;
  try {
    return parseHttpUrl(text);
  } catch (error) {
    throw invalidConfig(`error ${key} is invalid: ${messageOf(error)}`);
  }
}

function attributeNames({ entityDetails, entityTags }: AwsConfig): AttributeNames {
  const strings = ['entity_name', 'entity_id', 'account_id'];
  if (!entityDetails) {
    return {
      selectable: { strings, stringMaps: [], listMaps: [] },
      interpolatable: strings,
    };
  }
  const withPath = [...strings, 'entity_path'];
  const tags = entityTags.map((tag) => `entity_tags.${tag}`);
  return {
    // Deployed rules ask with `!= ""` whether an entity has a tag of the configuration.
    selectable: {
      strings: withPath,
      stringMaps: ['entity_tags'],
      listMaps: [],
      emptyWhenAbsent: new Set(tags),
    },
    interpolatable: [...withPath, ...tags],
  };
}

async function validate(outside: Outside, method: AuthMethod, bearer: string): Promise<Identity> {
  checkBearerLength(bearer);
  const config = decodeConfig(method.config);
  const { allowedHeaders } = config;
  const request = callerIdentityRequest(bearer, { endpoint: config.sts, allowedHeaders });
  if (config.serverId !== '') checkServerId(request, config.serverId);
  const entity = config.entityDetails
    ? entityRequest(request, { endpoint: config.iam, allowedHeaders })
    : undefined;
  try {
    const caller = callerOf(await send(outside, config, { request, endpoint: config.sts }));
    const found =
      entity === undefined
        ? caller
        : entityOf(
            caller,
            entity.action,
            await send(outside, config, { request: entity, endpoint: config.iam }),
          );
    requireBound(config, found);
    return identityOf(config, found);
  } catch (failure) {
    if (!(failure instanceof RemoteFailure)) throw failure;
    const what = 'the identity of the caller';
    throw loginUnavailable(outside, { method: method.name, what, failure });
  }
}

async function send(
  surroundings: Surroundings,
  { retries }: AwsConfig,
  { request, endpoint }: { readonly request: SignedRequest; readonly endpoint: Endpoint },
): Promise<XmlElement> {
  for (let attempt = 0; ; attempt += 1) {
    const response = await sendOnce(surroundings, request, endpoint).catch((error: unknown) => {
      if (error instanceof RemoteFailure && attempt < retries) return undefined;
      throw error;
    });
    if (response === undefined) continue;
    if (response.status >= 500 && attempt < retries) continue;
    return documentOf(response);
  }
}

function sendOnce(
  surroundings: Surroundings,
  { url, headers, body }: SignedRequest,
  endpoint: Endpoint,
): Promise<HttpsResponse> {
  // A pinned endpoint decides where the request goes; Host stays what the client signed.
  const pinned = endpoint.url?.href;
  const target = pinned === undefined ? url.href : `${withoutTrailing(pinned, '/')}/`;
  return ask(surroundings, {
    method: 'POST',
    url: target,
    headers: { ...Object.fromEntries(headers), host: url.host },
    body,
  });
}

function documentOf({ status, body }: HttpsResponse): XmlElement {
  if (status >= 400 && status < 500 && status !== 429) {
    throw refused(`AWS did not accept the signed request: status ${status}`);
  }
  if (status !== 200) throw new RemoteFailure(`unexpected status ${status}`);
  try {
    return parseXml(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (error) {
    throw refused('AWS answered in an unexpected form', error);
  }
}

function callerOf(document: XmlElement): Entity {
  const result =
    document.name === 'GetCallerIdentityResponse'
      ? elementAt(document, 'GetCallerIdentityResult')
      : undefined;
  const arn = result === undefined ? undefined : textAt(result, 'Arn');
  const userId = result === undefined ? undefined : textAt(result, 'UserId');
  const account = result === undefined ? undefined : textAt(result, 'Account');
  const principal = principalOf(arn ?? '');
  if (principal === undefined || userId === undefined || principal.accountId !== account) {
    throw refused('AWS named no role or user as the caller');
  }
  // A session's id is the id of its role, a colon and the name of the session.
  const [id = ''] = userId.split(':');
  return { principal, arn: principal.canonicalArn, id, path: undefined, tags: new Map() };
}

/** The same entity with its full ARN, path and tags; throws when it is another one. */
function entityOf(caller: Entity, action: 'GetRole' | 'GetUser', document: XmlElement): Entity {
  const kind = action === 'GetRole' ? 'Role' : 'User';
  const entity =
    document.name === `${action}Response`
      ? elementAt(document, `${action}Result`, kind)
      : undefined;
  const arn = entity === undefined ? undefined : textAt(entity, 'Arn');
  const principal = principalOf(arn ?? '');
  if (entity === undefined || arn === undefined || principal === undefined) {
    throw refused('AWS described no role or user');
  }
  const isSame =
    principal.canonicalArn === caller.principal.canonicalArn &&
    textAt(entity, `${kind}Id`) === caller.id;
  if (!isSame) throw refused('the described entity is not the caller');
  return { ...caller, arn, path: textAt(entity, 'Path') ?? '', tags: tagsOf(entity) };
}

function tagsOf(entity: XmlElement): ReadonlyMap<string, string> {
  const members = elementAt(entity, 'Tags')?.children ?? [];
  return new Map(
    members.flatMap((member) => {
      const key = textAt(member, 'Key');
      return key === undefined ? [] : [[key, textAt(member, 'Value') ?? ''] as const];
    }),
  );
}

function requireBound({ boundArns }: AwsConfig, { arn }: Entity): void {
  if (boundArns.some((bound) => matchesArn(bound, arn))) return;
  throw refused(`IAM principal ${arn} is not trusted`);
}

function identityOf({ entityTags }: AwsConfig, entity: Entity): Identity {
  const strings = new Map([
    ['entity_name', entity.principal.name],
    ['entity_id', entity.id],
    ['account_id', entity.principal.accountId],
  ]);
  if (entity.path !== undefined) strings.set('entity_path', entity.path);
  for (const tag of entityTags) {
    const value = entity.tags.get(tag);
    if (value !== undefined) strings.set(`entity_tags.${tag}`, value);
  }
  return { selectable: { strings, lists: new Map() }, interpolatable: strings };
}
