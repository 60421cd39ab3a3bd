// What speaks against a node by what it says of itself, at either side of a connection, in words that tell
// an operator which of the two to change. Whether it says the truth is the proof's matter.

import { type Hello, NEWEST_PROTOCOL, OLDEST_PROTOCOL } from '../../wire/frame.ts';
import type { TransportSelf } from '../transport.ts';
import { HandshakeRefusal } from './handshake-refusal.ts';

export interface OwnSide {
  readonly self: TransportSelf;
  /** Empty: none yet. */
  readonly clusterId: string;
  /** Empty: none yet. */
  readonly federationId: string;
  /** The level that its group uses. */
  readonly uses: number;
  readonly hasKey: boolean;
}

export function refusalOfHello(hello: Hello, own: OwnSide): HandshakeRefusal | undefined {
  const reason =
    versionReason(hello, own) ??
    groupReason(hello, own) ??
    levelReason(hello, own) ??
    keyReason(hello, own);
  if (reason !== undefined) return new HandshakeRefusal('refused', reason);
  const { self } = own;
  if (hello.node !== self.node) return undefined;
  if (hello.id === self.id) {
    return new HandshakeRefusal('self', `${self.name} is the node at both ends`);
  }
  const says = `${whoIs(hello)} has the same number as ${self.name} (${self.id}): give one a new data folder`;
  return new HandshakeRefusal('refused', says);
}

export function whoIs({ name, id }: Hello): string {
  return `node ${name} (${id})`;
}

function versionReason(hello: Hello, { self }: OwnSide): string | undefined {
  const { oldestVersion, newestVersion } = hello;
  if (oldestVersion <= NEWEST_PROTOCOL && newestVersion >= OLDEST_PROTOCOL) return undefined;
  const theirs = rangeText(oldestVersion, newestVersion);
  const ours = rangeText(OLDEST_PROTOCOL, NEWEST_PROTOCOL);
  const older = oldestVersion > NEWEST_PROTOCOL ? self.name : whoIs(hello);
  return `${whoIs(hello)} speaks protocol ${theirs}, ${self.name} speaks ${ours}: upgrade ${older}`;
}

function groupReason(hello: Hello, own: OwnSide): string | undefined {
  const { self, clusterId } = own;
  if (hello.datacenter !== self.datacenter) return federationReason(hello, own);
  if (hello.clusterId !== '' && clusterId !== '' && hello.clusterId !== clusterId) {
    return (
      `${whoIs(hello)} is of cluster ${hello.clusterId}, ${self.name} of cluster ${clusterId}, ` +
      `and both are of datacenter "${self.datacenter}"`
    );
  }
  return undefined;
}

/** Nodes of two datacenters only call each other, and only those of one federation. */
function federationReason(hello: Hello, own: OwnSide): string | undefined {
  const { self, clusterId, federationId } = own;
  const two = `${whoIs(hello)} is of datacenter "${hello.datacenter}", ${self.name} of "${self.datacenter}"`;
  if (hello.lane !== 'call') return two;
  if (clusterId !== '' && hello.clusterId === clusterId) {
    return `${two}, and both are of cluster ${clusterId}: a cluster is one datacenter`;
  }
  if (federationId === '' || hello.federationId === '') return undefined;
  if (hello.federationId === federationId) return undefined;
  return `${two}, and they are of two federations: ${hello.federationId} and ${federationId}`;
}

/** Whoever cannot read what a group's log says has no part in it. Other datacenters do not read it. */
function levelReason(hello: Hello, { self, uses }: OwnSide): string | undefined {
  if (hello.datacenter !== self.datacenter) return undefined;
  if (hello.reads < uses) return tooOldText(whoIs(hello), { reads: hello.reads, uses });
  if (self.reads < hello.uses) {
    return tooOldText(self.name, { reads: self.reads, uses: hello.uses });
  }
  return undefined;
}

/** For people: who reads less than its group uses, and what to do about it. */
export function tooOldText(
  who: string,
  { reads, uses }: { readonly reads: number; readonly uses: number },
): string {
  return `${who} reads the log up to feature level ${reads}, and the cluster uses ${uses}: upgrade ${who}`;
}

function keyReason(hello: Hello, { self, hasKey }: OwnSide): string | undefined {
  if (hello.hasKey === hasKey) return undefined;
  const [having, lacking] = hasKey ? [self.name, whoIs(hello)] : [whoIs(hello), self.name];
  return `${having} has a cluster_key and ${lacking} has none: give every node the same one`;
}

function rangeText(oldest: number, newest: number): string {
  return oldest === newest ? `${oldest}` : `${oldest} to ${newest}`;
}
