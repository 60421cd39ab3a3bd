// What the first release with a global log wrote of it, byte for byte: entries of each kind, and the rows of
// a snapshot that is coming in and of a namespace that is gone. Never edit the bytes: other datacenters and
// older disks have them. Another layout has another format, and bytes of its own.

import t from 'tap';
import type { AccessorId } from '../../../src/acl/ids.ts';
import { arrivedEffect } from '../../../src/state/global-effects.ts';
import {
  decodeEntry,
  type EntryBody,
  encodeEntry,
  entryHash,
  entryLinks,
  type GlobalEntry,
} from '../../../src/state/global-log/global-entry.ts';
import {
  decodeImport,
  encodeImport,
  type ImportProgress,
} from '../../../src/state/global-log/import-progress.ts';
import { decodeRecord, POLICY_CODEC } from '../../../src/state/rows/layout/record-codec.ts';
import { EMPTY_META } from '../../../src/state/rows/meta.ts';
import { idBytes } from '../../../src/state/rows/objects/objects.ts';
import {
  decodeRetiredNamespace,
  encodeRetiredNamespace,
} from '../../../src/state/rows/objects/retired-namespace.ts';
import { rowKey } from '../../../src/state/rows/tables.ts';
import { GOLDEN_RECORDS } from '../golden-bytes.ts';

/** Format 1. */
const GOLDEN_ENTRIES: Readonly<Record<string, string>> = {
  effects:
    '9c0103ce00011171c4200505050505050505050505050505050505050505050505050505050505050505' +
    'cd0190cb4279b76daa800000019292c4111411111111222243338444000000000002c49c940107cb4200' +
    '00000000000097d92431313131313131312d323232322d343333332d383434342d393031313030303030' +
    '303031a8706f6c6963792d31a764656661756c74a8706f6c6963792031bb6e6f6465202222207b20706f' +
    '6c696379203d20227265616422207d91a3646331d92c583241676146686e514752685353462f68306d36' +
    '71705831776a2f484a5762795863786b454d2f354772593d92c4063c7465616d00c0c420090909090909' +
    '0909090909090909090909090909090909090909090909090909c2d92431313131313131312d32323232' +
    '2d343333332d383434342d303030303030303030303037c0',
  'effects with a request':
    '9c0103ce00011171c4200505050505050505050505050505050505050505050505050505050505050505' +
    'cd0190cb4279b76daa800000019292c4111411111111222243338444000000000002c49c940107cb4200' +
    '00000000000097d92431313131313131312d323232322d343333332d383434342d393031313030303030' +
    '303031a8706f6c6963792d31a764656661756c74a8706f6c6963792031bb6e6f6465202222207b20706f' +
    '6c696379203d20227265616422207d91a3646331d92c583241676146686e514752685353462f68306d36' +
    '71705831776a2f484a5762795863786b454d2f354772593d92c4063c7465616d00c0c420090909090909' +
    '0909090909090909090909090909090909090909090909090909c3c094c4200101010101010101010101' +
    '010101010101010101010101010101010101010101c42002020202020202020202020202020202020202' +
    '020202020202020202020202020200',
  'effects that deleted':
    '9c0103ce00011171c4200505050505050505050505050505050505050505050505050505050505050505' +
    'cd0190cb4279b76daa800000019192c4063c7465616d00c0c42009090909090909090909090909090909' +
    '09090909090909090909090909090909c2c094c420010101010101010101010101010101010101010101' +
    '0101010101010101010101c4200202020202020202020202020202020202020202020202020202020202' +
    '02020207c3',
  reset:
    '9c0103ce00011171c4200505050505050505050505050505050505050505050505050505050505050505' +
    'cd0190cb4279b76daa8000000290c4200909090909090909090909090909090909090909090909090909' +
    '090909090909c2c0c0',
  'epoch-start':
    '9c0103ce00011171c4200505050505050505050505050505050505050505050505050505050505050505' +
    'cd0190cb4279b76daa8000000393a364633292a3646332a177c3c4200909090909090909090909090909' +
    '090909090909090909090909090909090909c2c0c0',
  datacenters:
    '9c0103ce00011171c4200505050505050505050505050505050505050505050505050505050505050505' +
    'cd0190cb4279b76daa800000049293a3646331c3c293a177c3c3c4200909090909090909090909090909' +
    '090909090909090909090909090909090909c2c0c0',
};

/** Since level 4: which cluster has the name. */
const GOLDEN_NAMED =
  '9c0103ce00011171c4200505050505050505050505050505050505050505050505050505050505050505' +
  'cd0190cb4279b76daa800000049395a3646331c3c2c2a36f6e6594a36f6c64c2c2c393a177c3c3c42009' +
  '09090909090909090909090909090909090909090909090909090909090909c2c0c0';

/** Of the first of them. */
const GOLDEN_HASH = '0db9e63f231320e84f1f3f6b4cab4624281f9155bc16e5cfa5191c07208c71e2';
const GOLDEN_IMPORT =
  '9c02a3732d31cb4280000000000000c48799029303cd0136c42007070707070707070707070707070707' +
  '0707070707070707070707070707070791940101c4200505050505050505050505050505050505050505' +
  '050505050505050505050505a36463319193a3646331c3c2ccc8cd019004c42008080808080808080808' +
  '08080808080808080808080808080808080808080808a3666564cd012cc402140102c3c2c42003030303' +
  '03030303030303030303030303030303030303030303030303030303c420040404040404040404040404' +
  '04040404040404040404040404040404040404049703000000000201';
const GOLDEN_RETIRED = '9301ce0001117003';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytesOf = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'));
const filled = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);

/** Byte strings as text, so that views and copies compare alike. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return hex(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}

const POLICY_KEY = rowKey('policy', idBytes('11111111-2222-4333-8444-000000000002'));
const POLICY = bytesOf(GOLDEN_RECORDS.policy);
const EFFECTS: EntryBody = {
  kind: 'effects',
  effects: [
    arrivedEffect(POLICY_KEY, POLICY)!,
    arrivedEffect(rowKey('namespace', 'team'), undefined)!,
  ],
};

function entry(body: EntryBody, given: Partial<GlobalEntry> = {}): GlobalEntry {
  return {
    epoch: 3,
    seq: 70_001,
    prevHash: filled(5),
    index: 400,
    timeMs: 1_767_225_600_000,
    body,
    digest: filled(9),
    isBootstrap: false,
    principal: undefined,
    request: undefined,
    ...given,
  };
}

const ENTRIES: Readonly<Record<string, GlobalEntry>> = {
  effects: entry(EFFECTS, { principal: '11111111-2222-4333-8444-000000000007' as AccessorId }),
  'effects with a request': entry(EFFECTS, {
    isBootstrap: true,
    request: {
      key: filled(1),
      fingerprint: filled(2),
      answer: { type: 'policy', policy: decodeRecord(POLICY_CODEC, POLICY) },
    },
  }),
  'effects that deleted': entry(
    { kind: 'effects', effects: [arrivedEffect(rowKey('namespace', 'team'), undefined)!] },
    {
      request: {
        key: filled(1),
        fingerprint: filled(2),
        answer: { type: 'deleted', existed: true },
      },
    },
  ),
  reset: entry({ kind: 'reset' }),
  'epoch-start': entry({
    kind: 'epoch-start',
    primary: 'dc2',
    promises: ['dc2', 'w'],
    isForced: true,
  }),
  datacenters: entry({
    kind: 'datacenters',
    datacenters: [
      { name: 'dc1', isVoter: true, isWitness: false },
      { name: 'w', isVoter: true, isWitness: true },
    ],
  }),
};

t.test('global entries: are written as they always were, and read back whole', async (test) => {
  test.same(Object.keys(ENTRIES), Object.keys(GOLDEN_ENTRIES));
  for (const [name, each] of Object.entries(ENTRIES)) {
    const golden = GOLDEN_ENTRIES[name]!;
    test.equal(hex(encodeEntry(each)), golden, `${name} is written so`);
    const bytes = bytesOf(golden);
    test.strictSame(plain(decodeEntry(bytes)), plain(each), `${name} is read so`);
    const { epoch, seq, prevHash, timeMs } = each;
    test.strictSame(plain(entryLinks(bytes)), plain({ epoch, seq, prevHash, timeMs }), name);
  }
  const first = bytesOf(GOLDEN_ENTRIES.effects!);
  test.equal(hex(entryHash(first)), GOLDEN_HASH, 'the hash that the next entry names');
});

t.test('global entries: datacenters have their clusters with them since level 4', async (test) => {
  const dc1 = { name: 'dc1', isVoter: true, isWitness: false, clusterId: 'one' };
  const removed = { name: 'old', isVoter: false, isWitness: false, isRemoved: true } as const;
  const w = { name: 'w', isVoter: true, isWitness: true };
  const named = entry({ kind: 'datacenters', datacenters: [dc1, removed, w] });
  test.equal(hex(encodeEntry(named)), GOLDEN_NAMED);
  test.strictSame(plain(decodeEntry(bytesOf(GOLDEN_NAMED))), plain(named));
});

t.test('global entries: of another format or kind, they are not read', async (test) => {
  const golden = GOLDEN_ENTRIES.reset!;
  const format = bytesOf(`${golden.slice(0, 2)}02${golden.slice(4)}`);
  test.throws(() => decodeEntry(format), { name: 'AssertionError', message: /format/ });
  const kind = bytesOf(golden);
  const at = golden.indexOf('0290') / 2;
  kind[at] = 9;
  test.throws(() => decodeEntry(kind), { name: 'AssertionError', message: /kind/ });
});

t.test('snapshots that come in: the row is written as it always was', async (test) => {
  const progress: ImportProgress = {
    id: 's-1',
    timeMs: 2 ** 41,
    header: {
      federationId: 'fed',
      cursor: { epoch: 3, seq: 310, hash: filled(7) },
      epochs: [{ epoch: 1, startSeq: 1, startHash: filled(5), primary: 'dc1' }],
      datacenters: [{ name: 'dc1', isVoter: true, isWitness: false }],
      datacentersSeq: 200,
      index: 400,
      bootstrapIndex: 4,
      digest: filled(8),
    },
    chunkCount: 300,
    lastKey: Uint8Array.of(20, 1),
    carryCount: 2,
    isCarried: true,
    hasDropped: false,
    sums: {
      globalDigest: filled(3),
      fullDigest: filled(4),
      totals: { ...EMPTY_META.totals, tokens: 3, localTokens: 2, namespaces: 1 },
    },
  };
  test.equal(hex(encodeImport(progress)), GOLDEN_IMPORT);
  test.strictSame(plain(decodeImport(bytesOf(GOLDEN_IMPORT))), plain(progress));
  const newer = bytesOf(`${GOLDEN_IMPORT.slice(0, 2)}63${GOLDEN_IMPORT.slice(4)}`);
  test.throws(() => decodeImport(newer), { name: 'AssertionError', message: /format/ });
});

t.test('namespaces that are gone: the row is written as it always was', async (test) => {
  const retired = { upTo: 70_000, tokens: 3 };
  test.equal(hex(encodeRetiredNamespace(retired)), GOLDEN_RETIRED);
  test.strictSame(decodeRetiredNamespace(bytesOf(GOLDEN_RETIRED)), retired);
  const newer = bytesOf(`${GOLDEN_RETIRED.slice(0, 2)}02${GOLDEN_RETIRED.slice(4)}`);
  test.throws(() => decodeRetiredNamespace(newer), { name: 'AssertionError', message: /format/ });
});
