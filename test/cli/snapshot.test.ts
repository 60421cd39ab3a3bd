// `conclave snapshot …`: what becomes of archives on this side. They are checked before anything comes of
// them, encrypted and opened again, and written to files that are there whole or not at all.

import { createDecipheriv, hkdfSync } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { ARCHIVE_TYPE } from '../../src/api/bodies/schema.ts';
import type { StreamRequest, StreamResponse } from '../../src/client/transport.ts';
import { TransportError } from '../../src/client/transport.ts';
import { isSealed, sealed, unsealed } from '../../src/platform-node/disk/sealed-archive.ts';
import { createWholeFile, readChunks } from '../../src/platform-node/disk/whole-file.ts';
import { writeArchive } from '../../src/state/archive/archive-writer.ts';
import { createHarness, newPolicy, newToken } from '../service/harness.ts';
import { run, type Script } from './harness.ts';

const KEY = Buffer.alloc(32, 1);
const SALT = Buffer.alloc(32, 2);
const CHUNK_BYTES = 64 * 1024;
const HEADER_BYTES = 18 + 32;

async function* inPieces(bytes: Uint8Array, pieceBytes = 10_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

async function allOf(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of chunks) parts.push(part);
  return Buffer.concat(parts);
}

const seal = (content: Uint8Array, salt: Uint8Array = SALT) =>
  allOf(sealed(KEY, inPieces(content), salt));
const open = (file: Uint8Array, key: Uint8Array = KEY) => allOf(unsealed(key, inPieces(file)));

t.test('encrypted archives: come back as they were, whatever their size and pieces', async (t) => {
  for (const size of [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES]) {
    const content = Buffer.alloc(size, 'x');
    const file = await seal(content);
    t.ok(isSealed(file));
    t.ok((await open(file)).equals(content), `${size} bytes`);
    const chunkCount = Math.max(1, Math.ceil(size / CHUNK_BYTES));
    t.equal(file.length, HEADER_BYTES + size + 16 * chunkCount, 'no chunk is there for nothing');
  }
  const property = fc.asyncProperty(
    fc.integer({ min: 0, max: 200_000 }),
    fc.integer({ min: 1, max: 100_000 }),
    fc.integer({ min: 1, max: 100_000 }),
    async (size, pieceBytes, againBytes) => {
      const content = Buffer.alloc(size, 'some content');
      const file = await allOf(sealed(KEY, inPieces(content, pieceBytes)));
      const back = await allOf(unsealed(KEY, inPieces(file, againBytes)));
      return back.equals(content);
    },
  );
  await fc.assert(property, { numRuns: 10 });
});

/** Bytes of the first release. Never edited: files are kept for years. */
const GOLDEN =
  '636f6e636c617665207365616c656420310a' +
  '0202020202020202020202020202020202020202020202020202020202020202' +
  'd7b61a67faad343bb12c063406b3508f5af8bba2c1421d7fb54e';

t.test('encrypted archives: the bytes of the first release are read, and written', async (t) => {
  const content = Buffer.from('an archive');
  t.equal((await seal(content)).toString('hex'), GOLDEN);
  t.equal((await open(Buffer.from(GOLDEN, 'hex'))).toString(), 'an archive');
});

t.test('encrypted archives: the layout is the one that docs/DATA.md gives', async (t) => {
  const content = Buffer.alloc(CHUNK_BYTES + 5, 'y');
  const file = await seal(content);
  const magic = Buffer.from('conclave sealed 1\n');
  t.ok(file.subarray(0, 18).equals(magic));
  const key = Buffer.from(hkdfSync('sha256', KEY, file.subarray(18, HEADER_BYTES), magic, 32));
  const parts = [
    { nonce: '000000000000000000000000', from: HEADER_BYTES, to: HEADER_BYTES + CHUNK_BYTES + 16 },
    { nonce: '000000000000000000000101', from: HEADER_BYTES + CHUNK_BYTES + 16, to: file.length },
  ];
  const opened = parts.map(({ nonce, from, to }) => {
    const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'hex'));
    decipher.setAuthTag(file.subarray(to - 16, to));
    return Buffer.concat([decipher.update(file.subarray(from, to - 16)), decipher.final()]);
  });
  t.ok(Buffer.concat(opened).equals(content));
  const fresh = await allOf(sealed(KEY, inPieces(content)));
  t.notOk(fresh.subarray(18, HEADER_BYTES).equals(SALT), 'each file has its own salt');
  t.notOk(fresh.includes('yyyyyyyy'), 'nothing of the content can be seen');
});

t.test('encrypted archives: every change is seen, and said where', async (t) => {
  const file = await seal(Buffer.alloc(2 * CHUNK_BYTES + 100, 'z'));
  const sealedChunk = CHUNK_BYTES + 16;
  const changed = (at: number) => {
    const copy = Buffer.from(file);
    copy[at] = copy[at]! ^ 1;
    return copy;
  };
  const first = file.subarray(HEADER_BYTES, HEADER_BYTES + sealedChunk);
  const second = file.subarray(HEADER_BYTES + sealedChunk, HEADER_BYTES + 2 * sealedChunk);
  const head = file.subarray(0, HEADER_BYTES);
  const last = file.subarray(HEADER_BYTES + 2 * sealedChunk);
  const cases: readonly (readonly [name: string, bytes: Buffer, says: RegExp])[] = [
    ['salt', changed(20), /the key is not the one of this archive, or .* from byte 50 on/],
    ['first chunk', changed(60), /the key is not the one of this archive/],
    [
      'second chunk',
      changed(HEADER_BYTES + sealedChunk + 5),
      /changed or cut off .* byte 65602 on/,
    ],
    ['last byte', changed(file.length - 1), /changed or cut off/],
    ['cut in the last chunk', file.subarray(0, -1), /changed or cut off/],
    ['cut between chunks', file.subarray(0, -last.length), /changed or cut off/],
    ['cut behind the header', head, /the key is not the one/],
    ['cut in the header', file.subarray(0, 30), /ends in its header/],
    ['more at the end', Buffer.concat([file, Buffer.from('x')]), /changed or cut off/],
    ['chunks swapped', Buffer.concat([head, second, first, last]), /the key is not the one/],
    ['a chunk twice', Buffer.concat([head, first, first, second, last]), /changed or cut off/],
    ['no magic', Buffer.from('something else entirely'), /not encrypted/],
    ['nothing', Buffer.alloc(0), /not encrypted/],
  ];
  for (const [name, bytes, says] of cases) await t.rejects(open(bytes), says, name);
  await t.rejects(open(file, Buffer.alloc(32, 9)), /the key is not the one of this archive/);
});

t.test('files: take their place whole, for their owner alone', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'conclave-files-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'backup.archive');
  writeFileSync(path, 'the one from before', { mode: 0o644 });
  const file = await createWholeFile(path);
  await file.write(Buffer.from('half '));
  t.equal(readFileSync(path, 'utf8'), 'the one from before', 'nothing shows before the end');
  await file.write(Buffer.alloc(300_000, 'w'));
  t.equal((await allOf(file.readBack())).length, 300_005);
  await file.commit();
  await file.discard();
  t.equal(readFileSync(path).length, 300_005);
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.same(readdirSync(folder), ['backup.archive']);

  const given = await createWholeFile(path);
  await given.write(Buffer.from('never'));
  await given.discard();
  await given.discard();
  t.equal(readFileSync(path).length, 300_005);
  t.same(readdirSync(folder), ['backup.archive'], 'no trace is left');
  await t.rejects(createWholeFile(join(folder, 'none', 'x')), { code: 'ENOENT' });
  t.equal((await allOf(readChunks(path))).length, 300_005);
  await t.rejects(allOf(readChunks(join(folder, 'gone'))), { code: 'ENOENT' });
});

/** An archive with a few objects in it. */
async function anArchive(): Promise<Buffer> {
  const harness = await createHarness();
  const id = await newPolicy(harness, 'ops', 'acl = "read"');
  await newToken(harness, { policies: [{ id }], local: true });
  const snapshot = harness.machine.snapshot();
  const origin = {
    release: '1.2.3',
    datacenter: 'dc1',
    cluster: 'a-cluster',
    createdMs: Date.parse('2026-11-21T06:00:00Z'),
  };
  const archive = await allOf(writeArchive(snapshot, origin));
  await snapshot.close();
  return archive;
}

const ARCHIVE = await anArchive();
const KEY_TEXT = KEY.toString('base64');
const FILES = { key: `${KEY_TEXT}\n`, 'other-key': Buffer.alloc(32, 9).toString('base64') };

/** A server that gives the archive, and takes one in. */
function server(given: Uint8Array = ARCHIVE): Script & { readonly received: Buffer[] } {
  const received: Buffer[] = [];
  return {
    received,
    files: FILES,
    stream: async ({ method, body }: StreamRequest): Promise<StreamResponse> => {
      const headers = { 'x-service-index': '9' };
      if (method === 'GET') {
        const ofArchive = { ...headers, 'content-type': ARCHIVE_TYPE };
        return { status: 200, headers: ofArchive, body: inPieces(given, 1_000) };
      }
      received.push(await allOf(body ?? inPieces(Buffer.alloc(0))));
      return { status: 200, headers, body: inPieces(Buffer.from('{"Index":42}')) };
    },
  };
}

const conclave = (line: string, script: Script) => run(line.split(' '), script);

t.test('save: writes what it has checked, under its name or not at all', async (t) => {
  const { status, out, err, asked, written, discarded } = await conclave(
    'snapshot save backup -stale',
    server(),
  );
  t.same([status, err, asked], [0, '', ['GET /v1/snapshot?stale']]);
  t.match(out, /^Saved and verified a snapshot of index \d+ in backup \([\d.]+ k?B\)\.\n$/);
  t.ok(written.backup?.equals(ARCHIVE));
  t.same(discarded, []);
  for (const [name, given, says] of [
    ['cut off', ARCHIVE.subarray(0, -1), /no whole archive: the archive is cut off/],
    ['empty', Buffer.alloc(0), /no whole archive/],
    ['something else', Buffer.from('<html>'), /this is no archive of a state/],
  ] as const) {
    const failed = await conclave('snapshot save backup', server(given));
    t.equal(failed.status, 1, name);
    t.match(failed.err, says);
    t.same([failed.written, failed.discarded], [{}, ['backup']], name);
  }
});

t.test('save: a connection that breaks leaves nothing', async (t) => {
  const breaking: Script = {
    stream: async () => ({
      status: 200,
      headers: { 'content-type': ARCHIVE_TYPE },
      body: (async function* () {
        yield ARCHIVE.subarray(0, 100);
        throw new TransportError('broken', 'socket hang up');
      })(),
    }),
  };
  const { status, err, written, discarded } = await conclave('snapshot save backup', breaking);
  t.equal(status, 1);
  t.match(err, /no answer from .*: socket hang up\nNext: /);
  t.same([written, discarded], [{}, ['backup']]);
});

t.test('save: with a key, what is written is encrypted and was opened again', async (t) => {
  const { status, out, written, requests } = await conclave(
    'snapshot save --key-file key backup',
    server(),
  );
  t.equal(status, 0);
  t.match(out, ', encrypted).');
  const file = written.backup ?? Buffer.alloc(0);
  t.ok(isSealed(file));
  t.ok((await open(file)).equals(ARCHIVE));
  t.notMatch(JSON.stringify(requests), KEY_TEXT, 'the key is in no request');
  const json = await conclave('snapshot save --key-file key backup --format json', server());
  t.match(JSON.parse(json.out), {
    Datacenter: 'dc1',
    Encrypted: true,
    SizeBytes: json.written.backup?.length,
    Counts: { LocalTokens: 1 },
  });
});

t.test('save: to standard output, unless that is a terminal', async (t) => {
  const plain = await conclave('snapshot save -', server());
  t.ok(plain.outBytes.equals(ARCHIVE));
  const encrypted = await conclave('snapshot save --key-file=key -', server());
  t.ok((await open(encrypted.outBytes)).equals(ARCHIVE));
  const seen = await conclave('snapshot save -', { ...server(), isTerminal: true });
  t.equal(seen.status, 2);
  t.match(seen.err, /an archive is nothing for a terminal/);
  t.equal(seen.outBytes.length, 0);
});

t.test('restore: sends what was found whole, opened where it is encrypted', async (t) => {
  const encrypted = await seal(ARCHIVE);
  for (const [line, bytes] of [
    ['snapshot restore backup', { backup: ARCHIVE }],
    ['snapshot restore -', { '-': ARCHIVE }],
    ['snapshot restore backup --key-file key', { backup: encrypted }],
    ['snapshot restore - --key-file key', { '-': encrypted }],
  ] as const) {
    const script = server();
    const { status, out, err, asked } = await conclave(line, { ...script, bytes });
    t.equal(status, 0, line);
    t.same(asked, ['PUT /v1/snapshot']);
    t.ok(script.received[0]?.equals(ARCHIVE), line);
    t.match(out, /^Restored (backup|standard input): .* from index 42 on\.\n$/);
    t.match(err, 'Tokens are those of the archive now');
  }
  const { out } = await conclave('snapshot restore backup --format json', {
    ...server(),
    bytes: { backup: ARCHIVE },
  });
  t.same(JSON.parse(out), { Index: 42 });
});

t.test(
  'restore: who asks a datacenter that is not the primary is sent to the one that is',
  async (t) => {
    const says = 'Nothing was written: datacenter dc2 is not the primary (the primary is dc1)';
    const stream = async (): Promise<StreamResponse> => ({
      status: 503,
      headers: { 'content-type': 'application/problem+json' },
      body: inPieces(Buffer.from(JSON.stringify({ code: 'not-primary', detail: says }))),
    });
    const bytes = { backup: ARCHIVE };
    const { status, err } = await conclave('snapshot restore backup', {
      ...server(),
      stream,
      bytes,
    });
    t.equal(status, 1);
    t.match(err, /the primary is dc1\)\nNext: restore at the primary, with an archive /);
  },
);

/** Files that are not sent: what is wrong with them, and the exit status. */
t.test(
  'restore and inspect: what is damaged or does not fit the key is told, and not sent',
  async (t) => {
    const encrypted = await seal(ARCHIVE);
    const changed = Buffer.from(ARCHIVE);
    changed[ARCHIVE.length - 40] = changed[ARCHIVE.length - 40]! ^ 1;
    const cases: readonly (readonly [
      flags: string,
      file: Buffer | undefined,
      status: number,
      says: RegExp,
    ])[] = [
      ['', changed, 1, /backup (was not sent|is of no use): .* is damaged/],
      ['', ARCHIVE.subarray(0, 200), 1, /cut off/],
      ['', Buffer.from('no archive'), 1, /this is no archive of a state/],
      ['', Buffer.alloc(0), 1, /cut off/],
      ['', encrypted, 2, /backup is encrypted: name its key with --key-file/],
      ['', undefined, 2, /cannot read backup: ENOENT/],
      [' --key-file key', ARCHIVE, 2, /backup is not encrypted: leave --key-file out/],
      [' --key-file other-key', encrypted, 1, /the key is not the one of this archive/],
      [' --key-file key', encrypted.subarray(0, -1), 1, /changed or cut off/],
      [' --key-file none', encrypted, 2, /cannot read the file none/],
      [' --key-file rules', encrypted, 2, /holds no key: expected 32 bytes as base64/],
      [' --key-file short', encrypted, 2, /holds no key: expected 32 bytes as base64/],
    ];
    for (const [flags, file, status, says] of cases) {
      for (const command of ['restore', 'inspect']) {
        const script = {
          ...server(),
          bytes: file === undefined ? {} : { backup: file },
          files: { ...FILES, rules: 'a-secret-of-another-kind', short: 'AAAAAAAAAAAAAAAAAAAAAA==' },
        };
        const outcome = await conclave(`snapshot ${command} backup${flags}`, script);
        t.equal(outcome.status, status, `${command}${flags}: ${outcome.err}`);
        t.match(outcome.err, says);
        t.same([outcome.asked, outcome.out], [[], '']);
        t.notMatch(outcome.err, 'a-secret-of-another-kind');
      }
    }
  },
);

t.test(
  'restore: from standard input, damage on the way is told and no answer is waited for',
  async (t) => {
    const encrypted = await seal(ARCHIVE);
    const script: Script = {
      files: FILES,
      bytes: { '-': encrypted.subarray(0, -1) },
      stream: async ({ body }) => {
        await allOf(body ?? inPieces(Buffer.alloc(0)));
        throw new Error('the body did not fail');
      },
    };
    const { status, err } = await conclave('snapshot restore - --key-file key', script);
    t.equal(status, 1);
    t.match(err, /changed or cut off/);
  },
);

t.test('inspect: shows what is in an archive, and asks nobody', async (t) => {
  const script = { bytes: { backup: ARCHIVE } };
  const { status, out, asked, transports } = await conclave('snapshot inspect backup', script);
  t.same([status, asked, transports], [0, [], []]);
  t.match(
    out,
    /^Datacenter: {5}dc1\nCluster: {8}a-cluster\nWritten: {8}2026-11-21 06:00:00 UTC\nBy Release: {5}1.2.3\nIndex: {10}\d+\n/,
  );
  t.match(out, /^Tokens: {9}3 \(1 local\)$/m);
  t.match(out, /^Encrypted: {6}false$/m);
  const json = await conclave('snapshot inspect - --format json --key-file key', {
    files: FILES,
    bytes: { '-': await seal(ARCHIVE) },
  });
  t.match(JSON.parse(json.out), {
    Datacenter: 'dc1',
    CreateTime: '2026-11-21T06:00:00.000Z',
    Counts: { Tokens: 3, LocalTokens: 1 },
    Encrypted: true,
    SizeBytes: (await seal(ARCHIVE)).length,
  });
});

t.test('snapshot: which file is always said', async (t) => {
  for (const command of ['save', 'restore', 'inspect']) {
    const { status, err } = await conclave(`snapshot ${command}`, server());
    t.equal(status, 2);
    t.match(err, /say which one: a file/);
  }
});
