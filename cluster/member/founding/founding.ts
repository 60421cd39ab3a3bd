// Who founds a group, and with whom: decided the same way by everybody who sees the same neighbours,
// and safe when they do not, because each founding node promises itself to one founding only, and is
// released by nobody but the founder. Pure.

import { assert } from '../../base/assert.ts';
import { addressText, type NetAddress } from '../../platform/net.ts';
import { encodeMembershipChange } from '../../raft/membership/membership-change.ts';
import { encodeGroupContext, type MemberRecord } from '../../replica/group-record.ts';

/** What a node without a group knows of another one. */
export interface Neighbour {
  readonly record: MemberRecord;
  /** How many nodes it expects to found a group; 1: it founds with nobody. */
  readonly expect: number;
  /** The cluster that it belongs to; empty: none. */
  readonly clusterId: string;
}

/** By which a node promises itself to one founding; as it lies on its disk. */
export interface FoundingPromise {
  /** Becomes the id of the cluster. Never used for another founding. */
  readonly foundingId: string;
  readonly founderId: string;
  readonly founderName: string;
  readonly founderAddress: NetAddress;
}

export type FoundingStep =
  /** This node founds, with these others and itself, ascending by id. */
  | { readonly kind: 'found'; readonly founders: readonly Neighbour[] }
  | { readonly kind: 'wait'; readonly says: string };

/** What a node does that belongs to no group and sees these neighbours, none of whom does either. */
export function foundingStep(self: Neighbour, neighbours: readonly Neighbour[]): FoundingStep {
  const { expect } = self;
  if (expect === 1) {
    return wait(
      'no server at the addresses of retry_join belongs to a cluster yet; this one only joins: to begin ' +
        'a new cluster, set bootstrap_expect to the same number on its first servers',
    );
  }
  const odd = neighbours.find((neighbour) => neighbour.expect > 1 && neighbour.expect !== expect);
  if (odd !== undefined) {
    return wait(
      `server ${odd.record.name} expects ${odd.expect} servers to begin with and this one ${expect}: ` +
        'bootstrap_expect must be the same on all of them',
    );
  }
  const all = [self, ...neighbours.filter((neighbour) => neighbour.expect === expect)];
  all.sort((one, other) => (one.record.id < other.record.id ? -1 : 1));
  const twin = sameName(all);
  if (twin !== undefined) return wait(`two servers have the name ${twin}: node_name must differ`);
  if (all.length < expect) {
    const seen = all.map(({ record }) => record.name).join(', ');
    return wait(`waiting for ${expect - all.length} more of ${expect} servers; so far: ${seen}`);
  }
  const founders = all.slice(0, expect);
  if (founders[0]?.record.id === self.record.id) return { kind: 'found', founders };
  return wait(`waiting for server ${founders[0]?.record.name ?? ''} to found the cluster`);
}

/** What has become of a founding, as a node that knows says. */
export type Fate =
  /** The founder still asks for promises. */
  | 'pending'
  /** It never came to be and never will; only the founder may say so. */
  | 'released'
  /** The cluster of that id is there. */
  | 'founded';

/** What a node says of a founding, by what is on its disk. */
export function fateOf(
  foundingId: string,
  own: { readonly clusterId: string | undefined; readonly promise: FoundingPromise | undefined },
): Fate {
  if (own.clusterId === foundingId) return 'founded';
  return own.promise?.foundingId === foundingId ? 'pending' : 'released';
}

/** Whether what `answererId` says of a founding binds a node that gave this promise. */
export function isBinding(fate: Fate, answererId: string, promise: FoundingPromise): boolean {
  return fate === 'founded' || answererId === promise.founderId;
}

/** For people: a promise is out, and nothing is heard of what became of it. */
export function waitsForFounder({ founderName, founderAddress }: FoundingPromise): string {
  const at = addressText(founderAddress);
  return (
    `this server has promised server ${founderName} (${at}) to found a cluster with it, and waits for ` +
    'its word. If that server, or its data folder, is gone for good: stop this server, empty its data ' +
    'folder (it holds no data yet) and start it again'
  );
}

/** The first entries of a group's log: equal bytes for equal records in equal order. */
export function foundingPayloads(founders: readonly MemberRecord[]): readonly Uint8Array[] {
  return founders.map((record) =>
    encodeMembershipChange({
      transition: 'auto',
      changes: [{ kind: 'add-voter', node: record.node }],
      context: encodeGroupContext({ members: [record] }),
    }),
  );
}

const PROMISE_FORMAT = 1;

export function promiseText(promise: FoundingPromise): string {
  const { foundingId, founderId, founderName, founderAddress } = promise;
  const { host, port } = founderAddress;
  return JSON.stringify([PROMISE_FORMAT, foundingId, founderId, founderName, host, port]);
}

/** Throws on a text that is no promise of a format known here. */
export function promiseOf(text: string): FoundingPromise {
  const fields: unknown = JSON.parse(text);
  assert(Array.isArray(fields) && fields.length === 6, 'a promise has six fields', { text });
  const [format, foundingId, founderId, founderName, host, port] = fields as readonly unknown[];
  assert(format === PROMISE_FORMAT, 'the format of a promise is known here', { text });
  const texts = [foundingId, founderId, founderName, host];
  assert(
    texts.every((each) => typeof each === 'string'),
    'a promise names its founder',
    { text },
  );
  assert(Number.isSafeInteger(port), 'the port of a founder is a number', { text });
  return {
    foundingId: foundingId as string,
    founderId: founderId as string,
    founderName: founderName as string,
    founderAddress: { host: host as string, port: port as number },
  };
}

function wait(says: string): FoundingStep {
  return { kind: 'wait', says };
}

function sameName(neighbours: readonly Neighbour[]): string | undefined {
  const names = neighbours.map(({ record }) => record.name);
  return names.find((name, place) => names.indexOf(name) !== place);
}
