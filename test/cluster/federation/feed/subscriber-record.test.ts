// What a subscriber shows of itself, step by step, whatever its session does.

import t from 'tap';
import type { FeedNews } from '../../../../cluster/federation/feed/feed-frames.ts';
import {
  SubscriberRecord,
  type SubscriberState,
} from '../../../../cluster/federation/feed/subscriber-record.ts';
import type { LogFields } from '../../../../cluster/platform/logger.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const NEWS: FeedNews = { epoch: 1, headSeq: 10, headAtMs: 0, nowMs: 0, majoritySeq: 0 };

function aRecord(appliedSeq?: number) {
  const lines: string[] = [];
  const note =
    (level: string) =>
    ({ kind, why, source }: LogFields, message: string): void => {
      const fields = [kind, why, source].filter((each) => each !== undefined);
      lines.push([level, message, ...fields].join(' '));
    };
  const logger = {
    debug: note('debug'),
    info: note('info'),
    warn: note('warn'),
    error: note('error'),
  };
  const clock = new FakeClock();
  const place = { appliedSeq };
  const cursor = () =>
    place.appliedSeq === undefined
      ? undefined
      : { epoch: 1, seq: place.appliedSeq, hash: Buffer.alloc(32) };
  const record = new SubscriberRecord({ clock, logger, cursor });
  const shown = <Field extends keyof SubscriberState>(...fields: readonly Field[]): unknown[] => {
    const state = record.state();
    return fields.map((each) => state[each]);
  };
  const tell = (headSeq: number, figures: readonly number[], lagBytes = 7): void =>
    record.sawReport({ digest: undefined, lagBytes, headSeq, figures });
  return { record, shown, tell, lines, clock, place };
}

t.test('subscriber: outside of a reign it says nothing of a primary', async (test) => {
  const { record, shown, tell, place } = aRecord(4);
  const told = ['applied', 'news', 'lagEntries', 'lagMs', 'lagBytes', 'figures'] as const;
  const nothing = told.map(() => undefined);
  test.same(shown('kind', ...told), ['idle', ...nothing], 'though it has a cursor');
  record.beginReign(() => 30);
  test.same(shown('kind', 'lagEntries', 'lagMs'), ['connecting', undefined, 30]);
  test.equal(record.headSeq, 0);
  record.sawNews(NEWS);
  tell(4, [1, 2]);
  test.same(shown('lagEntries', 'lagBytes', 'figures'), [6, 7, [1, 2]]);
  test.equal(record.headSeq, 10);
  record.endReign();
  test.same(shown('kind', ...told), ['idle', ...nothing]);
  record.beginReign(() => 0);
  place.appliedSeq = 9;
  record.sawNews(NEWS);
  record.appliedEntries();
  test.same(shown('lagBytes', 'figures'), [undefined, undefined], 'what was told before is over');
});

t.test('subscriber: what it lacks is never less than nothing', async (test) => {
  const { record, shown, tell, place } = aRecord(12);
  record.beginReign(() => 0);
  record.sawNews(NEWS);
  tell(10, []);
  test.same(shown('lagEntries', 'lagBytes'), [0, 0], 'it has more than was told of');
  place.appliedSeq = 9;
  test.same(shown('lagEntries', 'lagBytes'), [1, 7]);
  place.appliedSeq = undefined;
  test.same(shown('lagEntries', 'lagBytes'), [undefined, 7], 'its own place is not known');
});

t.test('subscriber: figures of the primary hold where it has its head', async (test) => {
  const { record, shown, tell, place } = aRecord(4);
  record.beginReign(() => 0);
  tell(5, [1]);
  test.same(shown('figures'), [undefined]);
  place.appliedSeq = 5;
  record.appliedEntries();
  test.same(shown('figures'), [[1]], 'with the entries');
  tell(6, [2]);
  test.same(shown('figures'), [[1]]);
  place.appliedSeq = 7;
  tell(7, [3]);
  test.same(shown('figures'), [[3]], 'with the report');
});

t.test('subscriber: what stands in the way is named where it does', async (test) => {
  const { record, shown } = aRecord(4);
  record.beginReign(() => 0);
  record.diverged(3);
  test.same(shown('kind', 'forkSeq', 'laterEpoch'), ['diverged', 3, undefined]);
  record.failed('the line broke', false);
  test.same(shown('kind', 'forkSeq'), ['diverged', 3], 'and goes on to');
  record.fencedBy(5, 'epoch 5 has begun');
  test.same(shown('kind', 'forkSeq', 'laterEpoch'), ['fenced', undefined, 5]);
  record.failed('the line broke again', false);
  test.same(shown('kind', 'laterEpoch'), ['fenced', 5]);
  record.failed('it is removed', true);
  test.same(shown('kind', 'laterEpoch'), ['refused', undefined]);
  record.failed('nobody answers', false);
  test.same(shown('kind', 'forkSeq', 'laterEpoch'), ['connecting', undefined, undefined]);
});

t.test('subscriber: the latest reign stays known, and what was counted', async (test) => {
  const { record, shown, clock, lines } = aRecord(4);
  record.source = 'p1:1';
  record.beginReign(() => 0);
  record.sawReign(3);
  record.sawReign(2);
  record.beginSession();
  record.differs('it is not the same');
  record.differs('it is not the same');
  test.match(lines.at(-1), 'error it is not the same p1:1');
  record.appliedEntries();
  test.same(shown('lastAppliedAtMs'), [clock.wallMs()]);
  clock.advance(5);
  record.appliedSnapshot();
  test.same(shown('lastAppliedAtMs'), [clock.wallMs()]);
  record.endReign();
  test.same(shown('begunEpoch', 'sessionCount', 'differenceCount'), [3, 1, 2]);
});

t.test('subscriber: each change is one line, and a failure one while it lasts', async (test) => {
  const { record, clock, lines, shown } = aRecord(4);
  record.source = 'p1:1';
  record.beginReign(() => 0);
  record.become('tail');
  record.become('tail');
  test.same(lines.splice(0), [
    'info the feed stands connecting p1:1',
    'info the feed stands tail p1:1',
  ]);
  record.failed('the line broke', false);
  clock.advance(1_000);
  record.failed('the line broke', false);
  test.same(lines.splice(0), ['warn the feed stands connecting the line broke p1:1']);
  test.equal(record.lastError?.atMs, clock.wallMs(), 'and when it was seen last');
  record.failed('nobody answers', false);
  test.same(lines.splice(0), ['warn the feed stands connecting nobody answers p1:1']);
  record.become('tail');
  record.failed('nobody answers', false);
  test.same(lines, ['info the feed stands tail p1:1', 'info the feed stands connecting p1:1']);
  test.match(shown('lastError'), [{ text: 'nobody answers' }]);
});
