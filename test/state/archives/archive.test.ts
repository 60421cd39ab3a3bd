// The file that an archive is: what other programs find in it, read here by nothing of ours, and what the
// reader refuses although its bytes arrived as they were sent.

import { createHash } from 'node:crypto';
import { constants, crc32, deflateRawSync, gunzipSync, gzipSync } from 'node:zlib';
import { sha256 as portable } from '@noble/hashes/sha2.js';
import t from 'tap';
import { adoptRunningSha256, beginSha256 } from '../../../cluster/platform/running-sha256.ts';
import { systemRunningSha256 } from '../../../src/platform-node/hashes/system-running-sha256.ts';
import { inspectArchive } from '../../../src/state/archive/archive-reader.ts';
import { writeArchive } from '../../../src/state/archive/archive-writer.ts';
import type { StateMachine } from '../../../src/state/machine.ts';
import { ROWS_CHUNK_BYTES } from '../../../src/state/snapshot/snapshot-format.ts';
import { aPolicy, aToken } from '../../support/state-and-service/fixtures.ts';
import { BUILTINS, replaceableMachine } from '../../support/state-and-service/machine-harness.ts';
import { GOLDEN_ARCHIVE } from '../golden-bytes.ts';

const CREATED_MS = Date.parse('2026-11-21T06:00:00Z');
const ORIGIN = { release: '1.2.3', datacenter: 'dc1', cluster: 'x', createdMs: CREATED_MS };

interface Written {
  readonly members: readonly Buffer[];
  readonly chunks: readonly Buffer[];
  readonly machine: StateMachine;
}

/** A state of several chunks, and its archive. */
async function written(): Promise<Written> {
  const server = replaceableMachine();
  await server.one(BUILTINS);
  for (let number = 1; number <= 8; number += 1) {
    const rules = `# ${createHash('sha512').update(`${number}`).digest('hex').repeat(400)}`;
    const policy = aPolicy(number, { rules });
    await server.one({ type: 'policy.set', presence: 'create', policy });
  }
  await server.one({ type: 'bootstrap', token: aToken(1), resetIndex: undefined });
  const snapshot = server.machine.snapshot();
  const chunks: Buffer[] = [];
  const members: Buffer[] = [];
  for await (const chunk of snapshot.chunks()) chunks.push(Buffer.from(chunk));
  for await (const member of writeArchive(server.machine.snapshot(), ORIGIN)) {
    members.push(Buffer.from(member));
  }
  return { members, chunks, machine: server.machine };
}

interface Entry {
  readonly name: string;
  readonly mode: string;
  readonly modified: number;
  readonly content: Buffer;
}

/** The entries of a tar archive: of their headers what programs read. */
function entriesIn(tar: Buffer): readonly Entry[] {
  const entries: Entry[] = [];
  let at = 0;
  const text = (from: number, to: number): string =>
    tar
      .subarray(at + from, at + to)
      .toString('latin1')
      .replace(/\0.*$/s, '');
  while (tar[at] !== 0) {
    const header = Buffer.from(tar.subarray(at, at + 512));
    header.fill(' ', 148, 156);
    const sum = header.reduce((total, byte) => total + byte, 0);
    if (Number.parseInt(text(148, 156), 8) !== sum) throw new Error(`no header at ${at}`);
    if (text(257, 263) !== 'ustar' || text(156, 157) !== '0') throw new Error(`no file at ${at}`);
    const size = Number.parseInt(text(124, 136), 8);
    const content = tar.subarray(at + 512, at + 512 + size);
    const [name, mode, modified] = [
      text(0, 100),
      text(100, 108),
      Number.parseInt(text(136, 148), 8),
    ];
    entries.push({ name, mode, modified, content });
    at += 512 + Math.ceil(size / 512) * 512;
  }
  if (tar.length - at < 1024 || tar.subarray(at).some((byte) => byte !== 0)) {
    throw new Error('it does not end in two blocks of zeros');
  }
  return entries;
}

const hexOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

t.test('archive: any gunzip and tar open it, and find its checksums true', async (t) => {
  const { members, chunks, machine } = await written();
  const entries = entriesIn(gunzipSync(Buffer.concat(members)));
  t.ok(chunks.length >= 4, 'several chunks of rows');
  t.same(
    entries.map(({ name }) => name),
    ['meta.json', ...chunks.map(() => 'state.bin'), 'SHA256SUMS'],
  );
  for (const { mode, modified } of entries) {
    t.same([mode, modified], ['0000600', CREATED_MS / 1000]);
  }
  const meta = entries[0]!.content;
  const state = Buffer.concat(entries.slice(1, -1).map(({ content }) => content));
  t.ok(state.equals(Buffer.concat(chunks)), 'state.bin is the snapshot');
  t.equal(
    entries.at(-1)!.content.toString(),
    `${hexOf(meta)}  meta.json\n${hexOf(state)}  state.bin\n`,
  );
  const index = machine.index();
  const logIndex = machine.appliedIndex();
  t.same(JSON.parse(meta.toString()), {
    Version: 1,
    ID: `1-${index}-${CREATED_MS}`,
    Index: index,
    Term: 1,
    Peers: null,
    Configuration: { Servers: [] },
    ConfigurationIndex: 0,
    Conclave: {
      format: 2,
      ...ORIGIN,
      index,
      position: `1.${machine.position().seq}`,
      logIndex,
      logTerm: 1,
      totals: machine.totals(),
    },
  });
});

t.test('archive: the layout is the one that docs/DATA.md gives', async (t) => {
  const { members } = await written();
  let check: Buffer = Buffer.alloc(32);
  for (const [place, member] of members.entries()) {
    const isLast = place === members.length - 1;
    const start = isLast
      ? '1f8b080400000000 00ff 2800 4356 2400'
      : '1f8b080400000000 00ff 0800 4356 0400';
    t.equal(member.subarray(0, 16).toString('hex'), start.replaceAll(' ', ''));
    t.equal(member.readUInt32LE(16), member.length);
    t.equal(gunzipSync(member).length % 512, 0, 'whole blocks');
    if (isLast) t.ok(member.subarray(20, 52).equals(check));
    check = createHash('sha256').update(check).update(member).digest();
  }
  const last = members.at(-1)!;
  t.ok(last.includes('  state.bin\n'), 'the last one is stored: its bytes are no release of zlib');
  const sizes = members.map((member) => gunzipSync(member).length);
  t.ok(Math.max(...sizes) <= ROWS_CHUNK_BYTES + 2 * 512 + 1, 'one chunk at a time');
});

/** The member again with another content, in the form that a reader takes. */
function memberWith(content: Buffer, level: number = constants.Z_BEST_SPEED): Buffer {
  const start = Buffer.from('1f8b08040000000000ff08004356040000000000', 'hex');
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(crc32(content), 0);
  trailer.writeUInt32LE(content.length, 4);
  const member = Buffer.concat([start, deflateRawSync(content, { level }), trailer]);
  member.writeUInt32LE(member.length, 16);
  return member;
}

async function wordsAbout(...members: readonly Buffer[]): Promise<string> {
  async function* bytes() {
    yield Buffer.concat(members);
  }
  const error = await inspectArchive(bytes()).then(
    () => new Error('none'),
    (cause: Error) => cause,
  );
  return `${error.name}: ${error.message}`;
}

t.test('archive: a gzip file of another program is told from damage', async (t) => {
  const { members } = await written();
  const plain = gunzipSync(Buffer.concat(members));
  const says =
    'ArchiveDamage: this is a gzip file, but no archive as Conclave writes it: another program wrote it, or packed it again';
  t.equal(await wordsAbout(gzipSync(plain)), says, 'packed again');
  const named = Buffer.from(gzipSync(plain));
  named[3] = 8;
  t.equal(await wordsAbout(named), says, 'with a name in its header');
});

t.test('archive: a newer format is refused by its number', async (t) => {
  const { members } = await written();
  const [first, ...others] = members as [Buffer, ...Buffer[]];
  const changed = (from: string, to: string): Buffer =>
    memberWith(Buffer.from(gunzipSync(first).toString('latin1').replace(from, to), 'latin1'));
  const says =
    'ArchiveDamage: the archive has format 3, this release knows 2: a newer release wrote it';
  t.equal(await wordsAbout(changed('"format":2', '"format":3'), ...others), says);
  for (const format of ['1', '"', '{']) {
    const words = await wordsAbout(changed('"format":2', `"format":${format}`), ...others);
    t.match(words, /^ArchiveDamage: the archive is damaged at byte 0: /, format);
  }
});

t.test(
  'archive: of the first format no changed byte passes, and no frame that is too long',
  async (t) => {
    const old = Buffer.from(GOLDEN_ARCHIVE, 'hex');
    t.equal(await wordsAbout(old), 'Error: none');
    for (let place = 0; place < old.length; place += 1) {
      const changed = Buffer.from(old);
      changed[place]! ^= 1;
      const words = await wordsAbout(changed);
      if (!/^(?:Archive|Snapshot)Damage: /.test(words)) t.fail(`byte ${place}: ${words}`);
    }
    const long = Buffer.from(old);
    const MAGIC_BYTES = 19;
    long.writeUInt32BE(1 << 20, MAGIC_BYTES);
    t.match(await wordsAbout(long), /damaged at byte 19: a frame of 1048576 bytes/);
  },
);

t.test('archive: what is well packed, and is none, is refused', async (t) => {
  const { members } = await written();
  const [first, header, rows] = members as [Buffer, Buffer, Buffer];
  const last = members.at(-1)!;
  const blocks = gunzipSync(rows);
  const elsewhere = Buffer.from(blocks);
  elsewhere[513] = elsewhere[513]! ^ 1;
  const named = Buffer.from(blocks);
  named.write('other.bin', 0);
  const stained = Buffer.from(gunzipSync(header));
  stained[stained.length - 1] = 1;
  const tooLong = Buffer.from(header);
  tooLong.writeUInt32LE(2 ** 31, 16);
  const tooShort = Buffer.from(header);
  tooShort.writeUInt32LE(20, 16);
  const at = first.length;
  const summed = Buffer.from(header);
  summed[header.length - 8] = summed[header.length - 8]! ^ 1;
  const counted = Buffer.from(header);
  counted[header.length - 3] = counted[header.length - 3]! ^ 1;
  const rest = members.slice(3);
  const cases: readonly (readonly [string, readonly Buffer[], string])[] = [
    ['other rows', [first, header, memberWith(elsewhere), ...rest], 'the snapshot is damaged'],
    [
      'packed otherwise',
      [first, memberWith(gunzipSync(header), 9), rows, ...rest],
      'is not what was written',
    ],
    ['a name', [first, header, memberWith(named), ...rest], 'something else in place of state.bin'],
    [
      'padding',
      [first, memberWith(stained), rows, ...rest],
      'something else in place of state.bin',
    ],
    [
      'two at once',
      [first, memberWith(Buffer.concat([blocks, blocks])), last],
      'something else|cannot be read',
    ],
    [
      'much of nothing',
      [first, memberWith(Buffer.alloc(2 ** 24)), last],
      'a member cannot be read',
    ],
    ['another CRC-32', [first, summed, last], `at byte ${at}: its content is not what its CRC-32`],
    ['another length', [first, counted, last], `at byte ${at}: its content is not what its CRC-32`],
    ['too long', [first, tooLong, last], `at byte ${at}: a member of 2147483648 bytes`],
    ['too short', [first, tooShort, last], `at byte ${at}: a member of 20 bytes`],
    ['no beginning', [header, rows, ...rest], 'at byte 0: a member cannot be read'],
    ['only an end', [last], 'it ends before it begins'],
    ['an order', [first, rows, header, ...rest], 'the snapshot is damaged'],
    ['one too few', [first, header, ...rest], 'the snapshot is damaged|is not what was written'],
    [
      'something between',
      [first, Buffer.from('something'), header],
      `at byte ${at}: no member of it`,
    ],
  ];
  for (const [name, bytes, says] of cases) {
    t.match(await wordsAbout(...bytes), new RegExp(`^(Archive|Snapshot)Damage: .*(${says})`), name);
  }
});

t.test(
  'running SHA-256: the platform gives what portable code gives, or is not taken',
  async (t) => {
    const hex = (hash: { digest(): Uint8Array }): string =>
      Buffer.from(hash.digest()).toString('hex');
    const fed = <T extends { update(bytes: Uint8Array): unknown }>(hash: T): T => {
      for (const length of [1, 63, 64, 65, 1000]) hash.update(Buffer.alloc(length, length));
      return hash;
    };
    const expected = hex(fed(portable.create()));
    t.equal(hex(fed(beginSha256())), expected);
    const forgetful = () => {
      let last: Uint8Array = new Uint8Array();
      return {
        update: (bytes: Uint8Array) => {
          last = bytes;
        },
        digest: () => portable(last),
      };
    };
    t.throws(() => adoptRunningSha256(forgetful), /SHA-256/);
    t.equal(hex(fed(beginSha256())), expected, 'the one before stays in use');
    let calls = 0;
    adoptRunningSha256(() => {
      calls += 1;
      return systemRunningSha256();
    });
    const before = calls;
    t.equal(hex(fed(beginSha256())), expected);
    t.equal(calls, before + 1);
  },
);
