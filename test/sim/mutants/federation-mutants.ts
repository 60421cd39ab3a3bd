// Planted bugs between datacenters: the place in the global log, acknowledgements, promises, snapshots,
// and what must stay at home.

import { FeedServer } from '../../../cluster/federation/feed/feed-server.ts';
import { Subscriber } from '../../../cluster/federation/feed/subscriber.ts';
import { RestOfLog } from '../../../cluster/federation/promotion/candidacy/rest-of-log.ts';
import {
  decodeAsk,
  encodeAsk,
  PROMOTION_METHOD,
  type PromiseAsk,
} from '../../../cluster/federation/promotion/promotion-frames.ts';
import { MemberCalls } from '../../../cluster/member/member-calls.ts';
import { ReadBarriers } from '../../../cluster/replica/requests/read-barriers.ts';
import { Guests } from '../../../cluster/transport/links/guests.ts';
import type { Policy } from '../../../src/acl/policy.ts';
import { FederationView } from '../../../src/node/federation/federation-view.ts';
import { ComingEntries } from '../../../src/node/federation/ports/coming-entries.ts';
import { LeaderDuties } from '../../../src/node/reign/leader-duties.ts';
import { MovingPrimary } from '../../../src/service/operators/moving-primary.ts';
import { PositionWaiters } from '../../../src/service/position-waiters.ts';
import { CallerResolver } from '../../../src/service/rights/caller-resolver.ts';
import { UnderWay } from '../../../src/service/writes/under-way.ts';
import { ChangeSet } from '../../../src/state/change-set.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import { decodeEntry, encodeEntry } from '../../../src/state/global-log/global-entry.ts';
import { GlobalLogWriter } from '../../../src/state/global-log/global-log-writer.ts';
import { globalSnapshotOf } from '../../../src/state/global-log/global-snapshot.ts';
import { currentEpoch, type Replication } from '../../../src/state/global-log/replication.ts';
import { StagedImport } from '../../../src/state/global-log/staged-import.ts';
import { StateMachine } from '../../../src/state/machine.ts';
import { Digest } from '../../../src/state/rows/digest.ts';
import { TOKEN_CODEC } from '../../../src/state/rows/layout/record-codec.ts';
import type { Sums } from '../../../src/state/rows/objects/object-rows.ts';
import { StoredState } from '../../../src/state/stored-state.ts';
import type { Mutant } from './mutant.ts';
import { replaced, together } from './replaced.ts';

/** Of a group's first leaders. */
const EARLY_TERM_MAX = 3;
const FAR: Pick<PromiseAsk['cursor'], 'epoch' | 'seq'> = { epoch: 2 ** 40, seq: 2 ** 40 };

export const FEDERATION_MUTANTS: readonly Mutant[] = [
  {
    name: 'no-cursor',
    breaks: 'entries are taken in without the place that says so, and taken in again',
    foundBy: ['G3 no gap'],
    subject: 'datacenters',
    seed: 1,
    install: () =>
      replaced(GlobalLogWriter.prototype, 'append', (real) => {
        return function (this: GlobalLogWriter, entry, bytes) {
          const { datacenter, epochs } = this.replication ?? {};
          const isOwn = epochs?.at(-1)?.primary === datacenter;
          if (isOwn || entry.seq % 5 !== 0) real.call(this, entry, bytes);
        };
      }),
  },
  {
    name: 'unheeded-batches',
    breaks:
      "a datacenter's own writes do not wait for entries of the primary that are on their way in",
    foundBy: ['authority'],
    subject: 'datacenters',
    seed: 10,
    install: () =>
      replaced(UnderWay.prototype, 'during', (real) => {
        return function <Output>(this: UnderWay, change: Change, propose: () => Promise<Output>) {
          return change.type === 'global-log.apply' ? propose() : real.call(this, change, propose);
        } as UnderWay['during'];
      }),
  },
  {
    name: 'lost-deletion',
    breaks: 'a deletion that arrives is not carried out',
    foundBy: ['G8 same state'],
    subject: 'datacenters',
    seed: 1,
    install: () => replaced(ChangeSet.prototype, 'deleteArrived', () => () => undefined),
  },
  {
    name: 'acknowledge-before-apply',
    breaks: 'a write counts as acknowledged by others before they have applied it',
    foundBy: ['G4 majority'],
    subject: 'datacenters',
    badDay: 'lines between datacenters are cut one way',
    seed: 1,
    install: () =>
      replaced(FeedServer.prototype, 'awaitAck', () => () => Promise.resolve('reached' as const)),
  },
  {
    name: 'promise-without-cursor',
    breaks: 'a datacenter promises an epoch to one that lacks what it has, and does not take it',
    foundBy: ['G4 majority'],
    subject: 'datacenters',
    badDay: 'one that lacks what others have is to be promoted, and is given it',
    seed: 1,
    install: () =>
      together(
        asksAre((ask) => ({ ...ask, cursor: { ...ask.cursor, ...FAR } })),
        replaced(RestOfLog.prototype, 'take', () => () => Promise.resolve()),
      ),
  },
  {
    name: 'what-comes-untold',
    breaks: 'a primary that was put back is not told of entries that are on their way to a disk',
    foundBy: ['G2 prefix chain'],
    subject: 'datacenters',
    badDay: 'the disks of the primary are put back while what it lost stands before a frozen disk',
    seed: 1,
    install: () => replaced(ComingEntries.prototype, 'furthest', () => (cursor) => cursor),
  },
  {
    name: 'promise-not-kept',
    breaks: 'a promise is given and not kept in the log',
    foundBy: ['G1 epoch owner', 'G4 majority', 'G2 prefix chain'],
    subject: 'datacenters',
    badDay: 'two datacenters are promoted at once',
    seed: 1,
    install: () => asksAre((ask) => ({ ...ask, isTrial: true })),
  },
  {
    name: 'no-fence',
    breaks: 'a primary goes on as if it had not promised a later epoch to another one',
    // Where whoever is asked tells what it has heard, it is left with a primary that follows nobody.
    foundBy: ['G6 fenced', 'G1 epoch owner', 'G2 prefix chain', 'liveness'],
    subject: 'datacenters',
    badDay: 'two datacenters are promoted at once',
    seed: 1,
    install: () => got(GlobalLogWriter.prototype, 'replication', unfenced),
  },
  {
    name: 'forgotten-suffix',
    breaks: 'what a primary wrote beyond the fork is not set apart',
    foundBy: ['G5 no silent loss'],
    subject: 'datacenters',
    badDay: 'a datacenter is promoted by force, and the old primary returns',
    seed: 1,
    install: () =>
      replaced(ChangeSet.prototype, 'changeReplication', (real) => {
        return function (this: ChangeSet, replication) {
          real.call(this, { ...replication, divergent: [] });
        };
      }),
  },
  {
    name: 'lost-resubmission',
    breaks: 'an entry of a fork that is to be made again is said to be, and is not',
    foundBy: ['forks'],
    subject: 'datacenters',
    badDay: 'two forks in a row are settled entry by entry',
    seed: 1,
    install: () =>
      replaced(MovingPrimary.prototype, 'take', () => {
        return function (this: MovingPrimary, { entry }) {
          const { epoch, seq, index } = decodeEntry(entry);
          return Promise.resolve({ index, position: { epoch, seq } });
        };
      }),
  },
  {
    name: 'discards-all',
    breaks: 'whoever discards one entry of a fork discards all of them',
    foundBy: ['G5 no silent loss'],
    subject: 'datacenters',
    badDay: 'two forks in a row are settled entry by entry',
    seed: 1,
    install: () =>
      replaced(MovingPrimary.prototype, 'discard', (real) => {
        return function (this: MovingPrimary, _position, asker) {
          return real.call(this, undefined, asker);
        };
      }),
  },
  {
    name: 'snapshot-without-pin',
    breaks:
      'the rows of a snapshot are read while the state goes on, and nobody looks at their digest',
    foundBy: ['G12 snapshot'],
    subject: 'datacenters',
    badDay: 'the log is not kept for a datacenter that is away for too long',
    seed: 2,
    install: () =>
      together(
        replaced(StateMachine.prototype, 'globalSnapshot', () => {
          return function (this: StateMachine) {
            const { store } = this as unknown as { store: Parameters<typeof globalSnapshotOf>[0] };
            return globalSnapshotOf(unpinned(store));
          };
        }),
        got(StagedImport.prototype, 'sums', trusted),
      ),
  },
  {
    name: 'left-behind',
    breaks: 'local tokens are not carried over into a snapshot of the primary',
    foundBy: ['local tokens', 'G7 locality'],
    subject: 'datacenters',
    badDay: 'the log is not kept for a datacenter that is away for too long',
    seed: 1,
    install: () =>
      replaced(StagedImport.prototype, 'putLocal', () => {
        return function (this: StagedImport) {
          this.moveOn({ hasDropped: true });
        };
      }),
  },
  {
    name: 'taken-for-global',
    breaks: 'a local token is taken for one that all datacenters have',
    foundBy: ['G7 locality'],
    subject: 'datacenters',
    seed: 1,
    install: () =>
      replaced(TOKEN_CODEC, 'objectOf', (real) => {
        return (fields, stamp) => ({ ...real(fields, stamp), local: false });
      }),
  },
  {
    name: 'outlived-logins',
    breaks: 'a token counts, and stays, though its time has passed',
    foundBy: ['revocations'],
    subject: 'datacenters',
    badDay: 'tokens of logins expire, or are given back, while datacenters are away',
    seed: 1,
    install: () =>
      together(
        replaced(LeaderDuties.prototype, 'start', () => () => undefined),
        replaced(StoredState.prototype, 'tokenBySecret', (real) => {
          return function (this: StoredState, secret) {
            const token = real.call(this, secret);
            return token && { ...token, expirationTime: undefined };
          };
        }),
      ),
  },
  {
    name: 'never-reaped',
    breaks: 'nobody deletes what is void',
    foundBy: ['liveness'],
    subject: 'datacenters',
    badDay: 'tokens of logins expire, or are given back, while datacenters are away',
    seed: 1,
    install: () => replaced(LeaderDuties.prototype, 'start', () => () => undefined),
  },
  {
    name: 'no-wait-for-position',
    breaks: 'a position counts as reached at once',
    foundBy: ['G9 read your writes', 'G10 monotonic', 'revocations'],
    subject: 'datacenters',
    badDay: 'lines between datacenters are cut one way',
    seed: 1,
    install: () =>
      replaced(PositionWaiters.prototype, 'arrives', () => () => Promise.resolve(true)),
  },
  {
    name: 'local-read-barrier',
    breaks:
      'a server of a secondary answers default reads from its own state without asking its leader',
    foundBy: ['G9 read your writes'],
    subject: 'datacenters',
    badDay: 'an old leader comes back with what it was about to propose',
    seed: 2,
    install: () => replaced(ReadBarriers.prototype, 'add', () => () => Promise.resolve()),
  },
  {
    name: 'own-words',
    breaks: 'an entry that arrives is written down with another time than it has',
    foundBy: ['G2 prefix chain'],
    subject: 'datacenters',
    seed: 1,
    install: () =>
      replaced(GlobalLogWriter.prototype, 'append', (real) => {
        return function (this: GlobalLogWriter, entry, packed) {
          const { datacenter, epochs } = this.replication ?? {};
          const isOwn = epochs?.at(-1)?.primary === datacenter;
          const other = { ...entry, timeMs: entry.timeMs + 1 };
          const bytes = isOwn || entry.seq % 5 !== 0 ? packed.bytes : encodeEntry(other);
          real.call(this, entry, { ...packed, bytes });
        };
      }),
  },
  {
    name: 'forgotten-fence',
    breaks:
      'a primary that has promised a later epoch writes on, and forgets the promise with that',
    foundBy: ['G6 fenced'],
    subject: 'datacenters',
    badDay: 'two datacenters are promoted at once',
    seed: 1,
    install: () => {
      let isFinishing = false;
      return together(
        got(GlobalLogWriter.prototype, 'replication', (real: Replication | undefined) =>
          isFinishing ? real : unfenced(real),
        ),
        replaced(GlobalLogWriter.prototype, 'finish', (real) => {
          return function (this: GlobalLogWriter) {
            isFinishing = true;
            const hasMoved = real.call(this);
            isFinishing = false;
            return hasMoved;
          };
        }),
      );
    },
  },
  {
    name: 'trims-more-than-it-says',
    breaks: 'of the global log one entry less is kept than is said',
    foundBy: ['G13 bounded'],
    subject: 'datacenters',
    badDay: 'the log is not kept for a datacenter that is away for too long',
    seed: 1,
    install: () =>
      replaced(ChangeSet.prototype, 'changeReplication', (real) => {
        return function (this: ChangeSet, replication) {
          const { first = 0 } = this.replication ?? {};
          const hasTrimmed = first > 0 && replication.first > first && !replication.isDiverged;
          const said = hasTrimmed ? replication.first - 1 : replication.first;
          real.call(this, { ...replication, first: said });
        };
      }),
  },
  {
    name: 'remembered-lists',
    breaks: 'a list shows some policies as the list before it did',
    foundBy: ['G11 atomic'],
    subject: 'datacenters',
    seed: 1,
    install: () => {
      const shown = new WeakMap<StoredState, Map<string, Policy>>();
      return replaced(StoredState.prototype, 'policies', (real) => {
        return function (this: StoredState, scope, page) {
          const before = shown.get(this) ?? new Map<string, Policy>();
          shown.set(this, before);
          return asBefore(real.call(this, scope, page), before);
        };
      });
    },
  },
  {
    name: 'ended-logins',
    breaks: 'a token that a login made counts, and stays, though its auth method is gone',
    foundBy: ['revocations'],
    subject: 'datacenters',
    badDay: 'auth methods are deleted while datacenters are away',
    seed: 1,
    install: () =>
      together(
        replaced(CallerResolver.prototype, 'isVoid', () => () => false),
        replaced(StoredState.prototype, 'orphanedTokens', () => () => {
          return Promise.resolve({ accessorIds: [], looked: 0, last: undefined, isEnd: true });
        }),
      ),
  },
  {
    name: 'outlived-namespaces',
    breaks: 'a local token counts though its namespace is gone, until it is deleted',
    foundBy: ['revocations'],
    subject: 'datacenters',
    seed: 12,
    install: () => replaced(StoredState.prototype, 'namespaceLostUpTo', () => () => 0),
  },
  {
    name: 'whoever-answers',
    breaks: 'what is meant for one datacenter is asked of whoever is at an address of it',
    foundBy: ['G1 epoch owner', 'G4 majority'],
    subject: 'datacenters',
    badDay: 'one of five is gone, and both halves of the others elect right after a start',
    seed: 1,
    install: () =>
      replaced(Guests.prototype, 'call', (real) => {
        return function (this: Guests, address, { datacenter: _meant, ...request }) {
          return real.call(this, address, request);
        };
      }),
  },
  {
    name: 'any-cluster',
    breaks: 'a datacenter that lost all its disks goes on under its name as if it had them',
    foundBy: ['G4 majority', 'G1 epoch owner', 'G2 prefix chain'],
    subject: 'datacenters',
    badDay: 'whoever elected another primary loses all its disks, and meets the old one',
    seed: 1,
    install: () => replaced(FederationView.prototype, 'clusterIdOf', () => () => undefined),
  },
  {
    name: 'removed-is-served',
    breaks: 'a datacenter that an operator has removed is given the log as before',
    foundBy: ['G15 removed'],
    subject: 'datacenters',
    badDay: 'a datacenter is removed and goes on, and is allowed again',
    seed: 1,
    install: () =>
      together(
        replaced(FederationView.prototype, 'isRemoved', () => () => false),
        replaced(FeedServer.prototype, 'forget', () => () => undefined),
      ),
  },
  {
    name: 'unheard-ahead',
    breaks: 'a primary whose disks were put back writes over what others have of its reign',
    foundBy: ['G2 prefix chain', 'G4 majority'],
    subject: 'datacenters',
    badDay: 'the disks of the primary are put back, and it goes on as it says',
    seed: 1,
    install: () => replaced(FeedServer.prototype, 'ahead', () => () => []),
  },
  {
    name: 'outlived-restore',
    breaks:
      'what is remembered of tokens is not forgotten where the whole state becomes another one',
    foundBy: ['local tokens', 'revocations', 'G9 read your writes'],
    subject: 'datacenters',
    badDay: 'archives are restored at the primary, and refused elsewhere',
    seed: 1,
    install: () =>
      replaced(CallerResolver.prototype, 'onApplied', (real) => {
        return function (this: CallerResolver, event) {
          if (event.kind !== 'replaced') real.call(this, event);
        };
      }),
  },
  {
    name: 'first-leaders-follow',
    breaks: 'only the first leaders of a datacenter follow the global log',
    foundBy: ['liveness'],
    subject: 'datacenters',
    seed: 1,
    isSlow: true,
    install: () =>
      replaced(Subscriber.prototype, 'start', (real) => {
        return function (this: Subscriber, term) {
          if (term <= EARLY_TERM_MAX) real.call(this, term);
        };
      }),
  },
];

/** Every second one as it was shown before, where it was. */
async function* asBefore(
  slices: AsyncIterable<readonly Policy[]>,
  before: Map<string, Policy>,
): AsyncGenerator<readonly Policy[]> {
  for await (const slice of slices) {
    const now = slice.map((policy) => {
      return (Number(policy.name.slice(1)) % 2 === 0 && before.get(policy.name)) || policy;
    });
    for (const policy of slice) before.set(policy.name, policy);
    yield now;
  }
}

/** What datacenters are asked for by candidates is something else. */
function asksAre(make: (ask: PromiseAsk) => PromiseAsk): () => void {
  return replaced(MemberCalls.prototype, 'serve', (real) => {
    return function (this: MemberCalls, method, handler, from) {
      const isAsk = method === PROMOTION_METHOD.promise;
      const asked: typeof handler = (request) =>
        handler({ ...request, payload: encodeAsk(make(decodeAsk(request.payload))) });
      real.call(this, method, isAsk ? asked : handler, from);
    };
  });
}

function unfenced(replication: Replication | undefined): Replication | undefined {
  if (replication === undefined) return undefined;
  const { epoch, primary } = currentEpoch(replication);
  if (primary !== replication.datacenter || replication.isDiverged) return replication;
  return { ...replication, maxEpochPromised: epoch, votedFor: primary };
}

/** Whatever the rows come to, it is what the header says. */
function trusted(this: StagedImport, { fullDigest, globalDigest, totals }: Sums): Sums {
  const { digest } = this.progress.header;
  const full = new Digest(fullDigest);
  full.subtract(globalDigest);
  full.add(digest);
  return { fullDigest: full.bytes(), globalDigest: digest, totals };
}

/** Reads what there is at the moment of each reading. */
function unpinned(store: Parameters<typeof globalSnapshotOf>[0]): typeof store {
  return {
    snapshot: () => ({
      get: (key) => store.snapshot().get(key),
      rows: (range) => store.snapshot().rows(range),
      close: () => Promise.resolve(),
    }),
  };
}

/** A getter gives what `make` makes of the real one's. */
function got<Owner extends object, Value>(
  owner: Owner,
  name: keyof Owner & string,
  make: (this: Owner, real: Value) => Value,
): () => void {
  const real = Object.getOwnPropertyDescriptor(owner, name)!;
  Object.defineProperty(owner, name, {
    ...real,
    get(this: Owner) {
      return make.call(this, real.get!.call(this) as Value);
    },
  });
  return () => Object.defineProperty(owner, name, real);
}
