// Every figure that a server shows, with its kind and what it says, once: the registry takes no other name, Prometheus
// is told the texts, and the table in docs/OPERATING.md has the same.

export interface MetricDescription {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly labels?: readonly string[];
  /** One line. */
  readonly says: string;
}

export const METRICS = {
  'conclave.http.requests': {
    kind: 'counter',
    labels: ['method', 'route', 'status'],
    says: 'answers given; route is a template, none for what is no route',
  },
  'conclave.http.request_ms': {
    kind: 'histogram',
    labels: ['method', 'route'],
    says: 'milliseconds from the request to its answer, waits of blocking queries included',
  },
  'conclave.http.blocking_queries': {
    kind: 'gauge',
    labels: ['listener'],
    says: 'blocking queries that wait now',
  },
  'conclave.acl.token.upsert': {
    kind: 'counter',
    says: 'tokens created or updated; logins and bootstraps are not in it',
  },
  'conclave.acl.token.clone': { kind: 'counter', says: 'tokens cloned' },
  'conclave.acl.token.delete': { kind: 'counter', says: 'tokens deleted by a caller' },
  'conclave.acl.policy.upsert': { kind: 'counter', says: 'policies created or updated' },
  'conclave.acl.policy.delete': { kind: 'counter', says: 'policies deleted' },
  'conclave.acl.role.upsert': { kind: 'counter', says: 'roles created or updated' },
  'conclave.acl.role.delete': { kind: 'counter', says: 'roles deleted' },
  'conclave.acl.authmethod.upsert': { kind: 'counter', says: 'auth methods created or replaced' },
  'conclave.acl.authmethod.delete': { kind: 'counter', says: 'auth methods deleted' },
  'conclave.acl.bindingrule.upsert': { kind: 'counter', says: 'binding rules created or updated' },
  'conclave.acl.bindingrule.delete': { kind: 'counter', says: 'binding rules deleted by a caller' },
  'conclave.acl.namespace.upsert': { kind: 'counter', says: 'namespaces created or replaced' },
  'conclave.acl.namespace.delete': { kind: 'counter', says: 'namespaces deleted' },
  'conclave.acl.bootstrap': { kind: 'counter', says: 'bootstraps that made a token' },
  'conclave.acl.login': {
    kind: 'counter',
    labels: ['method', 'result'],
    says: 'logins, OIDC included; result is granted or the code of the refusal',
  },
  'conclave.acl.logout': { kind: 'counter', says: 'logouts' },
  'conclave.acl.denied': {
    kind: 'counter',
    labels: ['reason'],
    says: 'requests refused for want of rights: permission-denied, token-unknown, unauthenticated, login-refused',
  },
  'conclave.acl.token.cache_hit': { kind: 'counter', says: 'secrets whose token was in memory' },
  'conclave.acl.token.cache_miss': {
    kind: 'counter',
    says: 'secrets that were looked for in the state',
  },
  'conclave.acl.token.reaped': { kind: 'counter', says: 'void tokens that were deleted' },
  'conclave.acl.token.void_backlog': {
    kind: 'gauge',
    says: 'void tokens that the last pass of the reaper found; 512 or more mean that there are more',
  },
  'conclave.server.isLeader': { kind: 'gauge', says: '1 where this server leads' },
  'conclave.raft.state.leader': { kind: 'gauge', says: 'the same' },
  'conclave.raft.state.follower': { kind: 'gauge', says: '1 where it follows' },
  'conclave.raft.state.candidate': { kind: 'gauge', says: '1 while it asks to be elected' },
  'conclave.raft.state.learner': { kind: 'gauge', says: '1 while it has no vote yet' },
  'conclave.raft.term': {
    kind: 'gauge',
    says: 'how many elections there were, about; one that climbs says that leaders are lost',
  },
  'conclave.raft.apply': {
    kind: 'counter',
    says: 'writes that this server put into the log as leader',
  },
  'conclave.raft.commitTime': {
    kind: 'histogram',
    says: 'milliseconds from there until a quorum has a write on disk and this server has applied it',
  },
  'conclave.raft.applied_index': { kind: 'gauge', says: 'last log entry that was applied' },
  'conclave.raft.commit_index': {
    kind: 'gauge',
    says: 'last log entry that is known to be on the disks of a quorum',
  },
  'conclave.raft.last_index': { kind: 'gauge', says: 'last log entry' },
  'conclave.raft.leader.lastContact': {
    kind: 'gauge',
    says: 'on the leader: milliseconds since it heard the quickest followers that make up a quorum with it; elsewhere since the leader was heard and all was there that was committed then; absent while there is none',
  },
  'conclave.raft.forwarded_writes': {
    kind: 'gauge',
    says: "writes of this server's clients that are under way at the leader",
  },
  'conclave.autopilot.healthy': {
    kind: 'gauge',
    says: '1 when every server does well; on the leader alone',
  },
  'conclave.autopilot.failure_tolerance': {
    kind: 'gauge',
    says: 'so many servers may fail before writes stop; on the leader alone',
  },
  'conclave.feature_level.active': {
    kind: 'gauge',
    says: "the feature level of the datacenter's log",
  },
  'conclave.feature_level.readable': {
    kind: 'gauge',
    says: 'the feature level that this release reads',
  },
  'conclave.feature_level.waits_for': {
    kind: 'gauge',
    says: 'servers and datacenters that read less than this release and hold the level back',
  },
  'conclave.raft.pending_writes': {
    kind: 'gauge',
    says: 'writes under way, from waiting for the log to being applied',
  },
  'conclave.state.index': { kind: 'gauge', says: 'the index that clients see' },
  'conclave.state.tokens': { kind: 'gauge', says: 'tokens stored, void ones included' },
  'conclave.state.local_tokens': { kind: 'gauge', says: 'those of them that are local' },
  'conclave.state.policies': { kind: 'gauge', says: 'policies, built-in ones included' },
  'conclave.state.roles': { kind: 'gauge', says: 'roles' },
  'conclave.state.auth_methods': { kind: 'gauge', says: 'auth methods' },
  'conclave.state.namespaces': { kind: 'gauge', says: 'namespaces, default included' },
  'conclave.federation.is_primary': {
    kind: 'gauge',
    says: '1 where the datacenter writes what all share',
  },
  'conclave.federation.takes_writes': {
    kind: 'gauge',
    says: '1 where the datacenter is primary and takes writes of what all share; on its leader',
  },
  'conclave.federation.divergent_entries': {
    kind: 'gauge',
    says: 'entries that only this datacenter has, as a primary that was left behind; see Moving the primary',
  },
  'conclave.federation.gone_entries': {
    kind: 'gauge',
    says: 'entries of that kind which its log did not keep, until an operator takes note',
  },
  'conclave.federation.epoch': {
    kind: 'gauge',
    says: 'reign of the primary, as this datacenter knows',
  },
  'conclave.federation.position': {
    kind: 'gauge',
    says: 'how much of the global log this server has',
  },
  'conclave.federation.head': {
    kind: 'gauge',
    says: 'the end of the global log, as far as this server knows',
  },
  'conclave.federation.majority': {
    kind: 'gauge',
    says: 'what a majority of datacenters has; on the leader of the primary',
  },
  'conclave.federation.lag_entries': {
    kind: 'gauge',
    labels: ['datacenter'],
    says: 'entries that it lacks; on the leader of the primary of all, on other leaders of their own',
  },
  'conclave.federation.lag_bytes': {
    kind: 'gauge',
    labels: ['datacenter'],
    says: 'bytes of those entries; by the average size where they are many',
  },
  'conclave.federation.differences': {
    kind: 'gauge',
    labels: ['datacenter'],
    says: 'how often it was found to have what the primary has not at the same place, since this leader began',
  },
  'conclave.federation.lag_seconds': {
    kind: 'gauge',
    labels: ['datacenter'],
    says: 'how long it has lacked something, as far back as the leader that tells it has seen that',
  },
  'conclave.federation.is_live': {
    kind: 'gauge',
    labels: ['datacenter'],
    says: '1 where it writes or follows closely; absent where this server cannot know',
  },
  'conclave.federation.log_entries': {
    kind: 'gauge',
    says: 'entries of the global log that are kept',
  },
  'conclave.federation.log_bytes': { kind: 'gauge', says: 'their bytes' },
  'conclave.federation.dropped_slots': {
    kind: 'gauge',
    says: 'datacenters that the log does not wait for any more; on the leader of the primary',
  },
  'conclave.federation.forwarded_calls': {
    kind: 'gauge',
    says: 'calls of this server that are under way in other datacenters',
  },
  'conclave.audit.records': { kind: 'counter', says: 'records written to the audit log' },
  'conclave.audit.lost': { kind: 'counter', says: 'records that were not, and never will be' },
  'conclave.audit.failing': {
    kind: 'gauge',
    says: '1 while the audit log cannot be written, or a record waits for more than 5 s',
  },
  'conclave.tls.certificate_seconds_left': {
    kind: 'gauge',
    labels: ['setting'],
    says: 'how long the certificate that this setting names is still good for; below 0 it has ended',
  },
  'conclave.process.resident_memory_bytes': { kind: 'gauge', says: 'memory of the process' },
  'conclave.process.loop_delay_p50_ms': {
    kind: 'gauge',
    says: 'how late the event loop got round to what was due, in the last ten seconds: the middle one',
  },
  'conclave.process.loop_delay_p99_ms': {
    kind: 'gauge',
    says: 'the same, all but one in a hundred',
  },
  'conclave.process.loop_delay_max_ms': { kind: 'gauge', says: 'the largest of the last minute' },
  'conclave.clock.behind_ms': {
    kind: 'gauge',
    says: "by so much this server's clock was behind that of the server that proposed the last command; see Clocks",
  },
  'conclave.clock.behind_primary_ms': {
    kind: 'gauge',
    says: 'where this server leads a secondary: by so much its clock was behind that of the server that led the primary, when the last entries came; see Clocks',
  },
} as const satisfies Readonly<Record<string, MetricDescription>>;

export type MetricName = keyof typeof METRICS;

/** The names of one kind. */
export type NameOf<Kind extends MetricDescription['kind']> = {
  [Name in MetricName]: (typeof METRICS)[Name]['kind'] extends Kind ? Name : never;
}[MetricName];

/** What stands behind a prefix in the names of gauges. */
export type GaugeBehind<Prefix extends string> =
  NameOf<'gauge'> extends infer Name
    ? Name extends `${Prefix}${infer Rest}`
      ? Rest
      : never
    : never;
