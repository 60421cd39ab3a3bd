// The query parameters that endpoints share, by the kind of the endpoint. src/http reads them; the
// OpenAPI document lists them.

import type { EndpointKind } from './endpoint.ts';

const EVERYWHERE = {
  pretty: 'Present: indented JSON.',
  token: 'The secret of the token. Deprecated: use the header.',
};

const DATACENTER = {
  dc: 'The datacenter to ask; default is the one of the server.',
  datacenter: 'The same as `dc`, and goes before it.',
};

const READING = {
  ...DATACENTER,
  stale: 'Present: any server answers from what it has.',
  consistent: 'Present: the leader proves its office before it answers.',
  leader: 'Present: the default consistency, by name.',
  cached: 'Accepted without effect; conflicts with `consistent`.',
  max_stale: 'A duration; above zero it means `stale`.',
  'min-position': '`epoch.seq`: waits until this datacenter has that position of the global log.',
};

const BLOCKING = {
  ...READING,
  index: 'Waits until the index of the answer is beyond this one.',
  wait: 'How long to wait at most: a duration up to `10m`, by default `5m`.',
  hash: 'Accepted without effect.',
};

const PAGING = {
  limit: 'At most so many objects, up to 1000; the header `X-Service-Next` tells how to go on.',
  next: 'Goes on where the answer with this `X-Service-Next` ended.',
};

const WRITING = {
  'min-position': '`epoch.seq`: begins when this datacenter has that position of the global log.',
  cas: 'Only if the ModifyIndex of the object is this one. For updates and deletes of one object.',
  ack: 'How many datacenters must have the write: `primary`, `majority` or `all`.',
  ack_timeout: 'How long to wait for them: a duration up to `10m`.',
};

export const NAMESPACE_PARAMETER = { ns: 'The namespace; `*` in lists means all.' };

/** Names and meanings of the parameters that every endpoint of a kind reads. */
export const QUERY_BY_KIND: Record<EndpointKind, Readonly<Record<string, string>>> = {
  read: { ...EVERYWHERE, ...BLOCKING },
  list: { ...EVERYWHERE, ...BLOCKING, ...PAGING },
  write: { ...EVERYWHERE, ...DATACENTER, ...WRITING },
  plain: { ...EVERYWHERE, ...READING },
  control: { ...EVERYWHERE, ...DATACENTER },
};
