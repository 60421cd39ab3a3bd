// What a server says about itself on the wire: status, agent, catalog, health, its own description.
// These are no operations of the service; src/http answers them from what the node tells it.

import { Type } from 'typebox';
import { Done } from '../bodies/answers.ts';
import { AgentTokenBody } from '../bodies/bodies.ts';
import { answer } from '../bodies/schema.ts';
import { type Endpoint, endpoint } from './endpoint.ts';

const texts = Type.Record(Type.String(), Type.String());

const Member = answer('Member', {
  Name: Type.String(),
  Addr: Type.String(),
  Port: Type.Integer(),
  Tags: texts,
  Status: Type.Integer({ description: '1 is alive, 4 is failed.' }),
  ProtocolMin: Type.Integer({
    description: 'As deployed servers tell it, like the five that follow.',
  }),
  ProtocolMax: Type.Integer(),
  ProtocolCur: Type.Integer(),
  DelegateMin: Type.Integer(),
  DelegateMax: Type.Integer(),
  DelegateCur: Type.Integer(),
});

const MetricPoint = answer('MetricPoint', {
  Name: Type.String(),
  Value: Type.Number(),
  Labels: texts,
});

const MetricSample = answer('MetricSample', {
  Name: Type.String(),
  Count: Type.Integer(),
  Sum: Type.Number(),
  Mean: Type.Number(),
  Labels: texts,
});

type GetPart = Pick<Endpoint, 'path' | 'summary' | 'access' | 'answer' | 'query' | 'alsoAsText'>;

function get<const Part extends GetPart>(part: Part) {
  return endpoint({ kind: 'plain', method: 'GET', namespaced: false, ...part });
}

const OWN_DATACENTER = {
  dc: 'The datacenter of the server that is asked; another one is refused.',
};

export const NODE_ENDPOINTS = {
  'status.leader': get({
    path: '/v1/status/leader',
    summary: 'Address of the leader of this datacenter; empty when there is none.',
    access: 'none',
    query: OWN_DATACENTER,
    answer: Type.String(),
  }),
  'status.peers': get({
    path: '/v1/status/peers',
    summary: 'Addresses of the voters of this datacenter.',
    access: 'none',
    query: OWN_DATACENTER,
    answer: Type.Array(Type.String()),
  }),
  'agent.self': get({
    path: '/v1/agent/self',
    summary: 'The configuration and the figures of this server.',
    access: 'agent:read',
    answer: answer('Self', {
      Config: Type.Record(Type.String(), Type.Unknown()),
      Stats: Type.Record(Type.String(), texts),
      Member,
      Meta: texts,
    }),
  }),
  'agent.version': get({
    path: '/v1/agent/version',
    summary: 'Versions of the interface and of this program.',
    access: 'none',
    answer: answer('Version', {
      HumanVersion: Type.String({
        description: 'The version of the interface, as clients gate on it.',
      }),
      SHA: Type.String(),
      BuildDate: Type.String(),
      FIPS: Type.String(),
      Conclave: Type.String({ description: 'The version of this program.' }),
    }),
  }),
  'agent.members': get({
    path: '/v1/agent/members',
    summary: 'The members of this datacenter that the token may see.',
    access: 'node:read',
    query: {
      filter:
        'Only members that this selector means: over `Name`, `Addr`, `Port`, `Status` and `Tags`, without `matches`.',
    },
    answer: Type.Array(Member),
  }),
  'agent.set-token': endpoint({
    kind: 'control',
    method: 'PUT',
    path: '/v1/agent/token/:kind',
    summary:
      '`default`: the token of requests that bring none, at this server, until it ends. Taken without effect: ' +
      '`agent`, `replication`, `dns` and `config_file_service_registration`, in whose name a server here does nothing.',
    access: 'agent:write',
    namespaced: false,
    body: { schema: AgentTokenBody, label: 'Request decode failed', required: true },
    answer: Done,
  }),
  'agent.metrics': get({
    path: '/v1/agent/metrics',
    summary: 'The figures of this server, as JSON or for Prometheus.',
    access: 'agent:read',
    query: { format: '`prometheus`: the text format.' },
    alsoAsText: true,
    answer: answer('Metrics', {
      Timestamp: Type.String(),
      Gauges: Type.Array(MetricPoint),
      Points: Type.Array(MetricPoint),
      Counters: Type.Array(MetricSample),
      Samples: Type.Array(MetricSample),
    }),
  }),
  'catalog.datacenters': get({
    path: '/v1/catalog/datacenters',
    summary: 'The datacenters of the federation.',
    access: 'none',
    answer: Type.Array(Type.String()),
  }),
  openapi: get({
    path: '/v1/openapi.json',
    summary: 'This document.',
    access: 'none',
    answer: Type.Record(Type.String(), Type.Unknown()),
  }),
  livez: get({
    path: '/livez',
    summary: 'Whether the process runs. Plain text.',
    access: 'none',
    answer: Type.String(),
  }),
  readyz: get({
    path: '/readyz',
    summary: 'Whether this server can serve; 503 with the reasons when not. Plain text.',
    access: 'none',
    query: {
      max_lag: 'A duration: not ready either while the datacenter is further behind the primary.',
    },
    answer: Type.String(),
  }),
};

/** Those of the above that answer with bare text. */
export const TEXT_ENDPOINTS: ReadonlySet<string> = new Set(['livez', 'readyz']);

export type NodeEndpointName = keyof typeof NODE_ENDPOINTS;
