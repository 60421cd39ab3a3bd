// What this server says about itself: status, agent, catalog, health, its own description. The facts
// come from NodeInfo; what shows more than the state of health needs `agent:read` or `node:read`,
// asked through the same door as everything else.

import { must } from '../../../cluster/base/assert.ts';
import { AclError } from '../../acl/error.ts';
import { DEFAULT_NAMESPACE } from '../../acl/ids.ts';
import { aclDisabled } from '../../acl/refusals.ts';
import { durationNsOf } from '../../acl/values/duration.ts';
import { decodeBody } from '../../api/bodies/decode.ts';
import { NODE_ENDPOINTS, type NodeEndpointName } from '../../api/endpoints/endpoints-node.ts';
import { AUTHORIZATIONS_MAX, type AuthorizationItem } from '../../authz/parse-authorization.ts';
import type { Call, Consistency } from '../../service/call.ts';
import { requireOwnDatacenter } from '../../service/datacenters/own-datacenter.ts';
import type { OperationInput, OperationName, OperationOutput } from '../../service/operations.ts';
import type { AuthorizationAnswer } from '../../service/rights/authorization-types.ts';
import { permissionDenied } from '../../service/rights/permissions.ts';
import type { HttpParts } from '../parts.ts';
import { descriptionOf } from '../wire/description.ts';
import { type Exchange, JSON_TYPE, TEXT_TYPE } from '../wire/exchange.ts';
import { textOf } from '../wire/query.ts';
import { meaningOf } from './agent-token.ts';
import { askedOf } from './call-of.ts';
import { memberFilterOf } from './member-filter.ts';
import type { MemberInfo, NodeInfo } from './node-info.ts';
import type { Found } from './serve-operation.ts';

/** The version of the interface: deployed clients refuse to talk to older ones. */
const INTERFACE_VERSION = '1.22.0';
const ALIVE = 1;
const FAILED = 4;
/** What deployed servers speak between each other, as they tell it: some clients read no member without it. */
const PROTOCOLS = {
  ProtocolMin: 1,
  ProtocolMax: 5,
  ProtocolCur: 2,
  DelegateMin: 2,
  DelegateMax: 5,
  DelegateCur: 4,
} as const;

type ServerQuestion = Omit<AuthorizationItem, 'namespace'>;
type Serve = (exchange: Exchange, found: Found) => Promise<void> | void;

/** Answers one request of an endpoint of the node. Never rejects. */
export async function serveNode(
  name: NodeEndpointName,
  exchange: Exchange,
  found: Found,
): Promise<void> {
  try {
    await SERVE_BY_NAME[name](exchange, found);
  } catch (error) {
    exchange.fail(error);
  }
}

/** Asks the service on behalf of an endpoint: whoever keeps a record of requests is told of that one alone. */
async function ask<Name extends OperationName>(
  { exchange, endpoint }: { readonly exchange: Exchange; readonly endpoint: NodeEndpointName },
  name: Name,
  input: OperationInput<Name>,
): Promise<OperationOutput<Name>> {
  const { unrecorded, operations } = exchange.parts;
  const { call } = askedOf(exchange, NODE_ENDPOINTS[endpoint]);
  try {
    const own = {
      ...call,
      datacenter: undefined,
      consistency: consistencyOf(exchange, endpoint, call),
    };
    return await (unrecorded?.operations ?? operations).run(name, input, own);
  } catch (error) {
    unrecorded?.onFailed(endpoint, call, error);
    throw error;
  }
}

/** What a server tells of itself is wanted most while nobody leads: then its own state says who may see it. */
function consistencyOf(
  { parts }: Exchange,
  endpoint: NodeEndpointName,
  { consistency }: Call,
): Consistency {
  const isTold = consistency === 'default' && NODE_ENDPOINTS[endpoint].kind === 'plain';
  return isTold && parts.node.leader() === undefined ? 'stale' : consistency;
}

const SERVE_BY_NAME: Readonly<Record<NodeEndpointName, Serve>> = {
  'status.leader': (exchange) => {
    requireOwn(exchange, 'status.leader');
    sendValue(exchange, exchange.parts.node.leader() ?? '');
  },
  'status.peers': (exchange) => {
    requireOwn(exchange, 'status.peers');
    sendValue(exchange, exchange.parts.node.peers());
  },
  'agent.self': async (exchange) => {
    await requireAgent(exchange, 'agent.self', 'read');
    sendValue(exchange, selfOf(exchange.parts));
  },
  'agent.version': (exchange) =>
    sendValue(exchange, {
      HumanVersion: INTERFACE_VERSION,
      SHA: '',
      BuildDate: '1970-01-01T00:00:00Z',
      FIPS: '',
      Conclave: exchange.parts.node.version,
    }),
  'agent.members': async (exchange) => {
    const isMeant = memberFilterOf(textOf(exchange.query, 'filter'));
    const members = exchange.parts.node.members();
    const items = members.map(({ name }) => ({ resource: 'node', access: 'read', segment: name }));
    const allowed = await allowedOf(exchange, 'agent.members', items);
    const seen = members.filter((_, place) => allowed[place] === true);
    const { datacenter } = exchange.parts.node;
    sendValue(exchange, seen.map((member) => memberOf(member, datacenter)).filter(isMeant));
  },
  'agent.set-token': async (exchange, { parameter, body }) => {
    if (!exchange.parts.settings.aclEnabled) throw aclDisabled();
    await requireAgent(exchange, 'agent.set-token', 'write');
    const { schema, label } = NODE_ENDPOINTS['agent.set-token'].body;
    const options = { label, namespaces: false };
    const { Token = '' } = decodeBody(schema, body ?? new Uint8Array(), options);
    if (meaningOf(parameter) === 'default') await setDefaultToken(exchange, Token);
    sendValue(exchange, true);
  },
  'agent.metrics': async (exchange) => {
    await requireAgent(exchange, 'agent.metrics', 'read');
    const { metrics, clock } = exchange.parts;
    if (exchange.query.get('format') === 'prometheus') {
      sendText(exchange, { status: 200, text: metrics.prometheus() });
    } else sendValue(exchange, metrics.toJson(clock.wallMs()));
  },
  'catalog.datacenters': (exchange) => sendValue(exchange, exchange.parts.node.datacenters()),
  openapi: (exchange) => {
    const { parts, isPretty } = exchange;
    exchange.sendReady(JSON_TYPE, descriptionOf(parts.node.version, { isPretty }));
  },
  livez: (exchange) => sendText(exchange, { status: 200, text: 'ok\n' }),
  readyz: async (exchange) => {
    const own = exchange.parts.node.notReadyReasons();
    const reasons = own.length > 0 ? own : await lagReasons(exchange);
    if (reasons.length === 0) sendText(exchange, { status: 200, text: 'ok\n' });
    else sendText(exchange, { status: 503, text: `${reasons.join('\n')}\n` });
  },
};

/** With `max_lag`: why this datacenter is too far behind the primary. */
async function lagReasons(exchange: Exchange): Promise<readonly string[]> {
  // Of a script whose variable is empty, it is refused as any other condition that got lost.
  const text = exchange.query.get('max_lag');
  if (text === undefined) return [];
  const maxNs = durationNsOf(text);
  if (maxNs === undefined || maxNs < 0n) throw new AclError('malformed', 'Invalid max_lag');
  if (!exchange.parts.settings.aclEnabled) return [];
  const asking = { exchange, endpoint: 'readyz' } as const;
  const { enabled, federation } = await ask(asking, 'replication.status', {});
  const own = federation.datacenters.find(({ isSelf }) => isSelf);
  if (!enabled || own === undefined) return [];
  if (own.lagMs === undefined)
    return ['how far this datacenter is behind the primary is not known'];
  if (own.lagMs * NS_OF_MS <= Number(maxNs)) return [];
  return [`this datacenter is ${Math.round(own.lagMs)} ms behind the primary`];
}

const NS_OF_MS = 1e6;

function sendValue(exchange: Exchange, value: unknown): void {
  exchange.sendJson(JSON.stringify(value), [], undefined);
}

function sendText(
  exchange: Exchange,
  { status, text }: { readonly status: number; readonly text: string },
): void {
  exchange.send({ status, type: TEXT_TYPE, body: text });
}

function selfOf({ node }: HttpParts): object {
  const config = {
    Datacenter: node.datacenter,
    PrimaryDatacenter: node.primaryDatacenter,
    NodeName: node.nodeName,
    NodeID: node.nodeId,
    Revision: '',
    Server: true,
    Version: INTERFACE_VERSION,
    ConclaveVersion: node.version,
    ...node.config(),
  };
  const self = node.members().find((member) => member.name === node.nodeName);
  const stats = node.stats();
  return {
    Config: config,
    Stats: { ...stats, consul: { ...stats.consul, ...asDeployedServersTell(node, stats) } },
    Member: self === undefined ? null : memberOf(self, node.datacenter),
    Meta: {},
  };
}

/** What deployed clients look for under these names. */
function asDeployedServersTell(
  node: NodeInfo,
  { raft }: Readonly<Record<string, Readonly<Record<string, string>>>>,
): Readonly<Record<string, string>> {
  return {
    server: 'true',
    leader: String(raft?.state === 'Leader'),
    leader_addr: node.leader() ?? '',
    known_datacenters: String(node.datacenters().length),
  };
}

async function setDefaultToken(exchange: Exchange, secret: string): Promise<void> {
  const { defaultToken, recorded } = exchange.parts;
  const { call } = askedOf(exchange, NODE_ENDPOINTS['agent.set-token']);
  const carryOut = (): void => defaultToken.set(secret);
  if (recorded === undefined) carryOut();
  else await recorded('agent.set-token', call, { input: { kind: 'default' }, carryOut });
}

/** The tags have the names by which deployed clients show a member. */
function memberOf(member: MemberInfo, datacenter: string) {
  return {
    Name: member.name,
    Addr: member.address,
    Port: member.port,
    Tags: {
      role: 'consul',
      dc: datacenter,
      id: member.id,
      build: member.version,
      vsn: String(PROTOCOLS.ProtocolCur),
      voter: String(member.isVoter),
      ...(member.reads !== undefined && { reads_feature_level: String(member.reads) }),
    },
    Status: member.isAlive ? ALIVE : FAILED,
    ...PROTOCOLS,
  };
}

async function requireAgent(
  exchange: Exchange,
  name: NodeEndpointName,
  access: 'read' | 'write',
): Promise<void> {
  const segment = exchange.parts.node.nodeName;
  const items = [{ resource: 'agent', access, segment }];
  const [isAllowed] = await allowedOf(exchange, name, items);
  if (isAllowed === true) return;
  // Whoever is refused is told the accessor id, by which one can ask why.
  const [answer] = await answersTo(exchange, name, { items, explain: true });
  const token = must(answer?.explanation?.token, 'the token of who was refused');
  const error = permissionDenied({ token }, `agent:${access}`, {
    name: segment,
    decidedIn: DEFAULT_NAMESPACE,
  });
  const { call } = askedOf(exchange, NODE_ENDPOINTS[name]);
  exchange.parts.unrecorded?.onFailed(name, call, error);
  throw error;
}

/** A server tells what is so in its own datacenter, and never lets it pass for what is so elsewhere. */
function requireOwn(exchange: Exchange, name: NodeEndpointName): void {
  const { node } = exchange.parts;
  const { call } = askedOf(exchange, NODE_ENDPOINTS[name]);
  requireOwnDatacenter(call.datacenter, node.datacenter, node.datacenters());
}

/**
 * Whether the caller may do each of these at this server, whatever datacenter or namespace the request names;
 * all, while ACLs are off. Servers are of no namespace, so what rules in `default` say of them counts: those of
 * another one are written by whoever looks after that one.
 */
async function allowedOf(
  exchange: Exchange,
  name: NodeEndpointName,
  items: readonly ServerQuestion[],
): Promise<readonly boolean[]> {
  if (!exchange.parts.settings.aclEnabled) return items.map(() => true);
  const allowed: boolean[] = [];
  for (let start = 0; start < items.length; start += AUTHORIZATIONS_MAX) {
    const batch = items.slice(start, start + AUTHORIZATIONS_MAX);
    const answers = await answersTo(exchange, name, { items: batch, explain: false });
    allowed.push(...answers.map((answer) => answer.allow));
  }
  return allowed;
}

async function answersTo(
  exchange: Exchange,
  name: NodeEndpointName,
  { items, explain }: { readonly items: readonly ServerQuestion[]; readonly explain: boolean },
): Promise<readonly AuthorizationAnswer[]> {
  const inDefault = items.map((item) => ({ ...item, namespace: DEFAULT_NAMESPACE }));
  return await ask({ exchange, endpoint: name }, 'authorize', { items: inDefault, explain });
}
