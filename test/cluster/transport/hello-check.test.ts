// What speaks against a node by what it says of itself, told by one side alone: the other one may be of a release that
// does not look, and two sides that both look would hide what one of them does not see.

import t from 'tap';
import { type OwnSide, refusalOfHello } from '../../../cluster/transport/handshake/hello-check.ts';
import type { Hello } from '../../../cluster/wire/frame.ts';

const HELLO: Hello = {
  ...{ kind: 'hello', oldestVersion: 1, newestVersion: 2, lane: 'control', hasKey: true },
  ...{ clusterId: 'c1', datacenter: 'dc1', federationId: 'f1', node: 2, id: 'two', name: 'two' },
  ...{ programVersion: '1', life: 'x', nonce: new Uint8Array(32), reads: 3, uses: 3 },
};
const SELF = { node: 1, id: 'one', name: 'one', datacenter: 'dc1', version: '1', reads: 3 };
const OWN: OwnSide = { self: SELF, clusterId: 'c1', federationId: 'f1', uses: 3, hasKey: true };

interface Given extends Omit<Partial<OwnSide>, 'self'> {
  readonly self?: Partial<OwnSide['self']>;
}

function said(hello: Partial<Hello>, { self, ...own }: Given = {}): string | undefined {
  const side = { ...OWN, ...own, self: { ...SELF, ...self } };
  const refusal = refusalOfHello({ ...HELLO, ...hello } as Hello, side);
  return refusal && `${refusal.code}: ${refusal.message}`;
}

/** Of another datacenter, which has a cluster of its own and asks for calls alone. */
const ELSEWHERE = { datacenter: 'dc2', clusterId: 'c2', lane: 'call' } as const;

t.test('hello: who belongs here is let in', (test) => {
  const good: Readonly<Record<string, string | undefined>> = {
    'a member': said({}),
    'one that belongs to no cluster yet': said({ clusterId: '' }),
    'one, where there is none here yet': said({}, { clusterId: '', uses: 1 }),
    'a newer release': said({ newestVersion: 9, reads: 9 }),
    'another datacenter of the federation': said(ELSEWHERE),
    'one that knows of none yet': said({ ...ELSEWHERE, federationId: '' }),
    'one, where none is known here yet': said(ELSEWHERE, { federationId: '' }),
    'one that reads less, for it does not read this log': said({ ...ELSEWHERE, reads: 1, uses: 9 }),
    'one, where there is no cluster here yet': said(
      { ...ELSEWHERE, clusterId: '' },
      { clusterId: '' },
    ),
    'one with the number of a node here': said({ ...ELSEWHERE, node: 9 }),
  };
  for (const [what, refusal] of Object.entries(good)) test.equal(refusal, undefined, what);
  test.end();
});

t.test('hello: who does not is told what to change, whatever the other side looks at', (test) => {
  const wrong: readonly (readonly [string | undefined, RegExp])[] = [
    [said({ oldestVersion: 3, newestVersion: 4 }), /speaks protocol 3 to 4, .*: upgrade one$/],
    [said({ oldestVersion: 0, newestVersion: 0 }), /speaks protocol 0, .*: upgrade node two/],
    [said({ clusterId: 'c2' }), /is of cluster c2, one of cluster c1/],
    [said({ ...ELSEWHERE, lane: 'control' }), /is of datacenter "dc2", one of "dc1"$/],
    [
      said({ ...ELSEWHERE, clusterId: 'c1' }),
      /both are of cluster c1: a cluster is one datacenter/,
    ],
    [said({ ...ELSEWHERE, federationId: 'f2' }), /they are of two federations: f2 and f1/],
    [
      said({ reads: 2, uses: 1 }),
      /two .* up to feature level 2, and the cluster uses 3: upgrade node/,
    ],
    [said({ uses: 4 }, { uses: 1 }), /^refused: one reads the log .* 3, and the cluster uses 4/],
    [said({ hasKey: false }), /one has a cluster_key and node two .* has none/],
    [said({}, { hasKey: false }), /node two .* has a cluster_key and one has none/],
    [said({ ...ELSEWHERE, hasKey: false }), /one has a cluster_key/],
    [said({ node: 1 }), /^refused: node two \(two\) has the same number as one/],
    [said({ node: 1, id: 'one' }), /^self: one is the node at both ends/],
  ];
  for (const [refusal, says] of wrong) test.match(refusal, says);
  test.end();
});
