// `conclave operator …` and `conclave keygen`: what each command asks, prints and ends with.

import t from 'tap';
import { problem, run, type Script } from './harness.ts';

const IDS = {
  one: 'e349749b-3303-3ddf-959c-b5885a0e1f6e',
  two: '5e26a3af-f4fc-4104-a8bb-4da9f19cb278',
  new: '10b71f14-4b08-4ae5-840c-f86d39e7d330',
};
const peer = (fields: object) => ({
  Leader: false,
  ProtocolVersion: '3',
  Voter: true,
  ...fields,
});
const GROUP = {
  Servers: [
    peer({ ID: IDS.one, Node: 'alice', Address: '10.0.0.1:8300', Leader: true, LastIndex: 1167 }),
    peer({ ID: IDS.two, Node: 'bob', Address: '10.0.0.2:8300', LastIndex: 1166 }),
    peer({
      ID: IDS.new,
      Node: 'carol\u001b',
      Address: '10.0.0.3:8300',
      Voter: false,
      LastIndex: 0,
    }),
  ],
  Index: 1167,
};
const CONFIGURATION = {
  CleanupDeadServers: true,
  LastContactThreshold: '200ms',
  MaxTrailingLogs: 250,
  MinQuorum: 0,
  ServerStabilizationTime: '10s',
  CreateIndex: 1,
  ModifyIndex: 7,
};
const server = (fields: object) => ({
  Address: '10.0.0.1:8300',
  Version: '0.1.0',
  LastContact: '0s',
  LastTerm: 3,
  LastIndex: 1167,
  Healthy: true,
  StableSince: '2026-11-21T06:00:00.000Z',
  NodeStatus: 'alive',
  NodeType: 'voter',
  Meta: {},
  ...fields,
});
const STATE = {
  Healthy: false,
  FailureTolerance: 0,
  OptimisticFailureTolerance: 0,
  Leader: IDS.one,
  Voters: [IDS.one, IDS.two],
  FeatureLevel: { Active: 1, Readable: 2, WaitsFor: ['bob'] },
  Servers: {
    [IDS.one]: server({ ID: IDS.one, Name: 'alice', Status: 'leader' }),
    [IDS.two]: server({
      ID: IDS.two,
      Name: 'bob',
      Status: 'voter',
      NodeStatus: 'failed',
      Healthy: false,
      LastContact: null,
    }),
  },
};

const PRIMARY = {
  Datacenter: 'dc1',
  Epoch: 1,
  PromisedEpoch: 1,
  Position: '1.41',
  HeadPosition: '1.44',
  Voters: ['dc1', 'dc2'],
  Closed: '',
  DivergentEntries: 0,
  GoneEntries: 0,
};
const MOVED = {
  Datacenter: 'dc2',
  Epoch: 2,
  Promises: [],
  Position: '1.41',
  HeadPosition: '1.44',
};
const DIVERGENCE = {
  Count: 1,
  Entries: [
    {
      Position: '1.42',
      Time: '2026-11-21T06:00:00.000Z',
      AccessorID: IDS.one,
      Kind: 'effects',
      Objects: [
        { Kind: 'policy', ID: IDS.two, Name: 'web\u001b', Deleted: false },
        { Kind: 'token', ID: IDS.new, Name: '', Deleted: true },
      ],
    },
  ],
  Gone: [],
};

const autopilot = '/v1/operator/autopilot/configuration';
const ANSWERS: NonNullable<Script['answers']> = {
  'GET /v1/operator/raft/configuration': { value: GROUP },
  'DELETE /v1/operator/raft/peer': { value: true },
  'POST /v1/operator/raft/transfer-leader': { value: { Success: true } },
  [`GET ${autopilot}`]: { value: CONFIGURATION },
  [`PUT ${autopilot}`]: { value: true },
  'GET /v1/operator/autopilot/state': { value: STATE },
  'DELETE /v1/operator/datacenter/dc2': { value: true },
  'PUT /v1/operator/datacenter/dc2': { value: true },
  'GET /v1/operator/primary': { value: PRIMARY },
  'PUT /v1/operator/primary': { value: MOVED },
  'GET /v1/operator/divergence': { value: DIVERGENCE },
  'PUT /v1/operator/divergence': { value: { Position: '2.51', Index: 812 } },
  'DELETE /v1/operator/divergence': { value: true },
};

const { CreateIndex, ModifyIndex, ...KEPT } = CONFIGURATION;

/** Command line → requests. */
const ASKED: readonly (readonly [line: string, ...asked: string[]])[] = [
  ['operator raft list-peers', 'GET /v1/operator/raft/configuration'],
  ['operator raft list-peers -stale', 'GET /v1/operator/raft/configuration?stale'],
  [`operator raft remove-peer -id ${IDS.two}`, `DELETE /v1/operator/raft/peer?id=${IDS.two}`],
  [
    'operator raft remove-peer -address=10.0.0.2:8300 --stale',
    'DELETE /v1/operator/raft/peer?address=10.0.0.2%3A8300',
  ],
  ['operator raft transfer-leader', 'POST /v1/operator/raft/transfer-leader'],
  [
    `operator raft transfer-leader --id ${IDS.two}`,
    `POST /v1/operator/raft/transfer-leader?id=${IDS.two}`,
  ],
  ['operator autopilot get-config', `GET ${autopilot}`],
  [
    'operator autopilot set-config -cleanup-dead-servers=false -max-trailing-logs 100 -last-contact-threshold=1s -server-stabilization-time 30s -min-quorum 3',
    `GET ${autopilot}`,
    `PUT ${autopilot}?cas=7 ${JSON.stringify({
      ...KEPT,
      CleanupDeadServers: false,
      LastContactThreshold: '1s',
      MaxTrailingLogs: 100,
      MinQuorum: 3,
      ServerStabilizationTime: '30s',
    })}`,
  ],
  [
    'operator autopilot set-config --min-quorum 5 --cas 7',
    `GET ${autopilot}`,
    `PUT ${autopilot}?cas=7 ${JSON.stringify({ ...KEPT, MinQuorum: 5 })}`,
  ],
  ['operator autopilot state', 'GET /v1/operator/autopilot/state'],
  ['operator datacenter remove dc2', 'DELETE /v1/operator/datacenter/dc2'],
  ['operator datacenter remove dc2 --force', 'DELETE /v1/operator/datacenter/dc2?force'],
  ['operator datacenter allow dc2', 'PUT /v1/operator/datacenter/dc2'],
  ['operator datacenter allow dc2 --force', 'PUT /v1/operator/datacenter/dc2?force'],
  ['operator primary', 'GET /v1/operator/primary'],
  ['operator promote', 'PUT /v1/operator/primary {"Mode":"hand-over"}'],
  ['operator promote dc2', 'PUT /v1/operator/primary {"Datacenter":"dc2","Mode":"hand-over"}'],
  [
    'operator promote dc2 --election',
    'PUT /v1/operator/primary {"Datacenter":"dc2","Mode":"election"}',
  ],
  [
    'operator promote --force --epoch 2 --accept-loss',
    'PUT /v1/operator/primary {"Mode":"forced","Epoch":2,"AcceptLoss":true}',
  ],
  ['operator divergence list --limit 5', 'GET /v1/operator/divergence?limit=5'],
  ['operator divergence resubmit 1.42', 'PUT /v1/operator/divergence?position=1.42'],
  ['operator divergence resubmit 1.42 -cas 7', 'PUT /v1/operator/divergence?position=1.42&cas=7'],
  ['operator divergence discard 1.42', 'DELETE /v1/operator/divergence?position=1.42'],
  ['operator divergence discard --all', 'DELETE /v1/operator/divergence?all='],
  ['keygen'],
];

for (const [line, ...wanted] of ASKED) {
  t.test(`conclave ${line}: asks`, async (t) => {
    const { asked, status, err } = await run(line.split(' '), { answers: ANSWERS });
    t.same(asked, wanted);
    t.equal(status, 0, err);
  });
}

const printed = async (line: string, script: Script = {}): Promise<string> =>
  (await run(line.split(' '), { answers: ANSWERS, ...script })).out;

t.test(
  'list-peers: is the table that operators know, with what is not known left open',
  async (t) => {
    t.equal(
      await printed('operator raft list-peers'),
      `Node       ID                                    Address        State     Voter  RaftProtocol  Commit Index  Trails Leader By
alice      ${IDS.one}  10.0.0.1:8300  leader    true   3             1167          -
bob        ${IDS.two}  10.0.0.2:8300  follower  true   3             1166          1 commit
carol\\x1b  ${IDS.new}  10.0.0.3:8300  learner   false  3             -             -
`,
    );
    const json = JSON.parse(await printed('operator raft list-peers --format json')) as object;
    t.same(json, GROUP, 'as JSON: what the server said');
    const far = { ...GROUP, Servers: [GROUP.Servers[0], { ...GROUP.Servers[1], LastIndex: 1100 }] };
    const behind = await printed('operator raft list-peers', {
      answers: { 'GET /v1/operator/raft/configuration': { value: far } },
    });
    t.match(behind, '67 commits');
  },
);

t.test('autopilot: configuration and state as blocks', async (t) => {
  t.equal(
    await printed('operator autopilot get-config'),
    `CleanupDeadServers:       true
LastContactThreshold:     200ms
MaxTrailingLogs:          250
MinQuorum:                0
ServerStabilizationTime:  10s
Modify Index:             7
`,
  );
  t.equal(
    await printed('operator autopilot state'),
    `Healthy:            false  bob
Failure Tolerance:  0
Leader:             ${IDS.one}
Voters:
   ${IDS.one}
   ${IDS.two}
Feature Level:      1 (2 waits for bob)
Server alice:
   ID: ${IDS.one}
   Address: 10.0.0.1:8300
   Version: 0.1.0
   Status: leader
   Node Status: alive
   Healthy: true
   Last Contact: 0s
   Last Term: 3
   Last Index: 1167
   Stable Since: 2026-11-21 06:00:00 UTC
Server bob:
   ID: ${IDS.two}
   Address: 10.0.0.1:8300
   Version: 0.1.0
   Status: voter
   Node Status: failed
   Healthy: false
   Last Contact: never
   Last Term: 3
   Last Index: 1167
   Stable Since: 2026-11-21 06:00:00 UTC
`,
  );
  t.same(JSON.parse(await printed('operator autopilot state --format=json')), STATE);
});

t.test('what was done is said in a sentence, as JSON what the server said', async (t) => {
  const removed = `operator raft remove-peer --id ${IDS.two}`;
  t.equal(await printed(removed), `Removed the server ${IDS.two} from the group.\n`);
  t.equal(await printed(`${removed} --format json`), 'true\n');
  t.match(await printed('operator raft transfer-leader'), /^Another server leads now/);
  const given = await printed(`operator raft transfer-leader -id ${IDS.two}`);
  t.match(given, `The server ${IDS.two} leads now`);
  t.equal(
    await printed('operator autopilot set-config --min-quorum 3'),
    'Configuration updated.\n',
  );
});

t.test('divergence: the list, what is gone, and one sentence where there is neither', async (t) => {
  const listed = async (value: object) => {
    const answers = { ...ANSWERS, 'GET /v1/operator/divergence': { value } };
    const { out, err } = await run(['operator', 'divergence', 'list'], { answers });
    return { out, err };
  };
  const whole = await listed(DIVERGENCE);
  t.match(whole.out, /^Position .*\n1\.42 .*policy .* token .* deleted\n$/);
  t.equal(
    whole.err,
    'Make each anew with `divergence resubmit`, or forget it with `divergence discard`.\n',
  );
  const nothing = { Count: 0, Entries: [], Gone: [] };
  t.same(await listed(nothing), { out: '', err: 'There are no divergent entries.\n' });
  const range = { First: '1.5', Last: '1.30', Count: 26 };
  const lost = await listed({ ...nothing, Gone: [range, { ...range, Last: '1.5', Count: 1 }] });
  t.match(
    lost.err,
    /^There are no divergent entries\.\nLost: 26 entries, 1\.5 to 1\.30, are gone\. /,
  );
  t.match(lost.err, /\nLost: entry 1\.5 is gone\. /);
  t.match(lost.err, /`divergence discard --all`\.\n$/);
});

t.test('keygen: 32 random bytes as base64, and nothing else', async (t) => {
  const key = Buffer.alloc(32, 7).toString('base64');
  t.equal(await printed('keygen'), `${key}\n`);
});

/** Command lines that are wrong, and what is said of them. Nothing is sent. */
const USAGE: readonly (readonly [line: string, says: RegExp])[] = [
  ['operator raft remove-peer', /say which one: --id or --address/],
  [`operator raft remove-peer --id x --address y`, /give only one of --id and --address/],
  ['operator raft remove-peer --id=', /--id is empty/],
  ['operator raft transfer-leader --id=', /--id is empty/],
  ['operator datacenter remove', /say which one: a name/],
  ['operator autopilot set-config', /say what to change/],
  ['operator promote --election --force', /give only one of --election and --force/],
  ['operator promote --force --accept-loss', /--force needs --epoch/],
  ['operator promote --force --epoch 2', /--force needs --accept-loss/],
  ['operator promote --epoch 2', /go with --force alone/],
  ['operator divergence resubmit', /say which entry/],
  ['operator divergence discard', /say which entry/],
  ['operator divergence discard 1.42 --all', /give only one of --all and a position/],
  ['operator autopilot set-config --cleanup-dead-servers maybe', /expected true or false/],
  ['operator autopilot set-config --max-trailing-logs -1', /whole number/],
  ['operator autopilot set-config --min-quorum many', /whole number/],
];

for (const [line, says] of USAGE) {
  t.test(`conclave ${line}: exit status 2`, async (t) => {
    const { status, err, asked } = await run(line.split(' '), { answers: ANSWERS });
    t.equal(status, 2);
    t.match(err, says);
    t.same(asked, []);
  });
}

const REMOVED =
  'an operator has removed datacenter dc2 from the federation; `conclave operator datacenter allow dc2` at the primary lets it come back';

/** What the server refuses, and the next step that a person is told. */
const FAILED: readonly (readonly [line: string, answers: Script['answers'], says: RegExp])[] = [
  [
    'operator datacenter remove dc9',
    { 'DELETE /v1/operator/datacenter/dc9': { value: false } },
    /there is no datacenter dc9, or not any more: nothing was removed\. --force keeps out one that was let back/,
  ],
  [
    'operator datacenter remove dc9 --force',
    { 'DELETE /v1/operator/datacenter/dc9?force': { value: false } },
    /there is no datacenter dc9, or not any more: nothing was removed\n/,
  ],
  [
    'operator datacenter allow dc2',
    { 'PUT /v1/operator/datacenter/dc2': { value: false } },
    /datacenter dc2 was not removed: nothing was changed/,
  ],
  [
    'operator divergence resubmit 1.18',
    {
      'PUT /v1/operator/divergence': problem(
        409,
        'cas-mismatch',
        'the object is there with ModifyIndex 3: look at it, and name that index with cas to put the entry over it',
      ),
    },
    /Next: look at the object; --cas with that index puts the entry over it/,
  ],
  [
    'operator divergence resubmit 1.18',
    {
      'PUT /v1/operator/divergence': problem(
        409,
        'cas-mismatch',
        'the object was changed by the entry, and has been deleted since: name cas=0 to make it anew',
      ),
    },
    /Next: it was taken away for a reason: --cas 0 brings it back/,
  ],
  [
    'operator raft remove-peer --id nope',
    {
      'DELETE /v1/operator/raft/peer': problem(
        404,
        'update-target-missing',
        'id "nope" was not found in the Raft configuration',
      ),
    },
    /id "nope" was not found[\s\S]*Next: `conclave operator raft list-peers` shows who belongs/,
  ],
  [
    'operator promote',
    {
      'PUT /v1/operator/primary': problem(
        503,
        'unavailable',
        'Remote DC has no server currently reachable: dc1: refused',
      ),
    },
    /Next: .* Where the primary is gone: `conclave operator promote --election` at the one/,
  ],
  [
    'operator promote --election',
    {
      'PUT /v1/operator/primary': problem(
        503,
        'unavailable',
        'The primary stays where it is: there is no majority: dc1 does not answer (refused)',
      ),
    },
    /Next: .*gone for good, `conclave operator primary` .* `conclave operator promote --force --epoch/,
  ],
  [
    'operator promote --election',
    {
      'PUT /v1/operator/primary': problem(
        503,
        'unavailable',
        `The primary stays where it is: there is no majority: dc1 does not answer (${REMOVED})`,
      ),
    },
    /Next: nothing was changed\. Let it come back .* do not promote it: it would be a second primary/,
  ],
  [
    'operator promote --election',
    {
      'PUT /v1/operator/primary': problem(
        503,
        'unavailable',
        'The primary stays where it is: w has more, behind a restore, and nothing of what was restored. Nobody …',
      ),
    },
    /Next: nothing was changed\. Start whoever may still have it; where nobody has, do as the message/,
  ],
  [
    'operator raft list-peers',
    {
      'GET /v1/operator/raft/configuration': problem(
        503,
        'unavailable',
        'this datacenter is a witness: it votes, and has no objects',
      ),
    },
    /Next: ask a server of another datacenter \(--http-addr\)/,
  ],
  [
    'operator raft list-peers',
    {
      'GET /v1/operator/raft/configuration': problem(
        503,
        'unavailable',
        'server node-2 was removed from the cluster. To let it join again as a new server, stop it',
      ),
    },
    /Next: ask another server of the datacenter/,
  ],
  [
    'operator raft list-peers',
    {
      'GET /v1/operator/raft/configuration': problem(
        503,
        'unavailable',
        'dc3 is cluster a here, not b: if its disks were lost, `conclave operator datacenter remove dc3` lets it in',
      ),
    },
    /Next: nothing was changed; the message names the way on\.\n$/,
  ],
  [
    'operator raft list-peers',
    { 'GET /v1/operator/raft/configuration': problem(503, 'unavailable', 'No cluster leader') },
    /No cluster leader[\s\S]*Next: .*list-peers --stale/,
  ],
  [
    'operator autopilot set-config --min-quorum 5',
    {
      [`GET ${autopilot}`]: { value: CONFIGURATION },
      [`PUT ${autopilot}`]: problem(409, 'cas-mismatch', 'the ModifyIndex is not 7'),
    },
    /somebody else changed it meanwhile/,
  ],
  [
    'operator autopilot set-config --min-quorum 5 --cas 8',
    { [`GET ${autopilot}`]: { value: CONFIGURATION } },
    /not as --cas 8 expects: what was read has ModifyIndex 7; nothing was changed/,
  ],
  [
    'operator autopilot set-config --min-quorum 5',
    {
      [`GET ${autopilot}`]: { value: CONFIGURATION },
      [`PUT ${autopilot}`]: { value: false },
    },
    /somebody else changed the configuration meanwhile: nothing was changed/,
  ],
];

for (const [line, answers = {}, says] of FAILED) {
  t.test(`conclave ${line}: exit status 1 and what to do next (${says.source})`, async (t) => {
    const { status, err, out } = await run(line.split(' '), { answers });
    t.equal(status, 1);
    t.match(err, says);
    t.equal(out, '');
  });
}
