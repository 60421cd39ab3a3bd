// Certificates that settings name: what is wrong with one is said by its setting, before anybody connects.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { readSettings, SettingsError } from '../../src/node/settings/settings.ts';
import { NodeCertificates } from '../../src/platform-node/net/certificates.ts';
import { httpTransport } from '../../src/platform-node/net/http-transport.ts';
import {
  certificatesIn,
  isInTime,
  type TlsFiles,
  tlsTextsIn,
} from '../../src/platform-node/net/tls-files.ts';
import { FakeLogger } from '../http/support.ts';
import { type Certified, certify, makeAuthority } from '../support/certificates.ts';

function refusalOf(files: TlsFiles): string {
  try {
    tlsTextsIn(files);
  } catch (error) {
    if (error instanceof SettingsError) return error.message;
    throw error;
  }
  return 'accepted';
}

t.test('certificates: each file is what its setting says, or is refused by that name', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'conclave-tls-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const written = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const authority = makeAuthority('all');
  const [one, other] = [certify(authority, 'one'), certify(authority, 'other')];
  const files = {
    settings: 'tls.cluster.',
    key: written('key.pem', one.key),
    cert: written('cert.pem', one.cert),
    ca: written('ca.pem', authority.cert),
  };
  t.same(tlsTextsIn(files), { ...one, ca: authority.cert });
  t.same(tlsTextsIn({ ...files, ca: '' }), { ...one, ca: undefined });
  const words = written('words.pem', 'no certificate');
  const both = authority.cert + makeAuthority('next').cert;
  const two = written('two.pem', both);
  t.same(tlsTextsIn({ ...files, ca: two }).ca, both, 'an old authority and a new one');
  const cases = [
    [{ cert: join(folder, 'none') }, /^tls\.cluster\.cert_file: cannot read .*none: ENOENT/],
    [{ key: folder }, /^tls\.cluster\.key_file: cannot read .*: EISDIR/],
    [{ cert: files.key }, /^tls\.cluster\.cert_file: .*key\.pem holds no certificate as PEM$/],
    [{ ca: words }, /^tls\.cluster\.ca_file: .*words\.pem holds no certificate as PEM$/],
    [{ ca: files.key }, /^tls\.cluster\.ca_file: .*key\.pem holds no certificate as PEM$/],
    [
      { ca: written('cut.pem', both.slice(0, -100)) },
      /^tls\.cluster\.ca_file: .*cut\.pem holds a certificate as PEM .* read, number 2 of 2$/,
    ],
    [{ key: words }, /^tls\.cluster\.key_file: .*words\.pem does not hold the key of .*cert\.pem/],
    [
      { key: written('other.pem', other.key) },
      /^tls\.cluster\.key_file: .*other\.pem does not hold the key of .*cert\.pem/,
    ],
  ] as const;
  for (const [wrong, message] of cases) {
    const says = refusalOf({ ...files, ...wrong });
    t.match(says, message);
    t.notMatch(says, one.key.slice(40, 80), 'no key is repeated');
  }
  t.end();
});

t.test('certificates: each says by its setting when it counts', (t) => {
  const authority = makeAuthority('all');
  const texts = { ...certify(authority, 'one'), ca: authority.cert };
  const files = { settings: 'tls.', key: 'key.pem', cert: 'cert.pem', ca: 'ca.pem' };
  const all = certificatesIn(files, texts);
  t.match(all, [
    { setting: 'tls.cert_file', path: 'cert.pem', validFrom: / GMT$/, validTo: / GMT$/ },
    { setting: 'tls.ca_file', path: 'ca.pem' },
  ]);
  t.same(certificatesIn(files, { ...texts, ca: undefined }), all.slice(0, 1));
  const yearsMs = 20 * 366 * 24 * 3_600_000;
  for (const [nowMs, expected] of [
    [0, false],
    [Date.now(), true],
    [Date.now() + yearsMs, false],
  ] as const)
    t.same(
      all.map((each) => isInTime(each, nowMs)),
      [expected, expected],
    );
  t.end();
});

t.test(
  'certificates: an own one of another key is named as that, before anything is sent',
  async (t) => {
    const authority = makeAuthority('all');
    const [one, other] = [certify(authority, 'one'), certify(authority, 'other')];
    const tls = { cert: one.cert, key: other.key };
    const transport = httpTransport({ tls, timeoutMs: 1_000 });
    await t.rejects(
      transport.send({ method: 'GET', url: 'https://127.0.0.1:1/', headers: {}, body: undefined }),
      {
        name: 'TransportError',
        failure: 'tls',
        message: /^the own certificate and its key cannot be/,
      },
    );
  },
);

t.test('certificates: where one cannot be read anew, those of all ports stay', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'conclave-tls-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const authority = makeAuthority('all');
  const [one, other] = [certify(authority, 'one'), certify(authority, 'other')];
  const placed = (port: string, { cert, key }: Certified) => {
    const files = { cert_file: join(folder, `${port}.pem`), key_file: join(folder, `${port}-key`) };
    writeFileSync(files.cert_file, cert);
    writeFileSync(files.key_file, key);
    return files;
  };
  const tls = { ...placed('https', one), cluster: placed('cluster', one) };
  const value = { data_dir: folder, ports: { https: 0 }, tls };
  const settings = readSettings({ flags: {}, files: [{ path: 'f', value }], environment: {} });
  const logger = new FakeLogger();
  const certificates = new NodeCertificates(settings, logger);
  const shown = () =>
    [certificates.https, certificates.cluster].map((port) => port?.texts.cert === other.cert);
  const told = () => logger.lines.splice(0).map(({ message }) => message);
  placed('https', other);
  placed('cluster', { ...other, cert: 'none' });
  certificates.renew();
  t.same(shown(), [false, false]);
  t.same(told(), ['the certificates were not read anew: those in use stay']);
  placed('cluster', other);
  certificates.renew();
  t.same(shown(), [true, true]);
  t.same(told(), ['the certificates were read anew']);
  t.end();
});

t.test('a start without a certificate may go better the next time', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'conclave-start-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const missing = join(folder, 'missing', 'file');
  const started = (...words: string[]) => {
    const program = join(import.meta.dirname, '..', '..', 'src', 'program.js');
    const settings = ['--data-dir', join(folder, 'data'), '--ports-http', '0'];
    const none = ['--ports-cluster', '-1', ...words];
    return spawnSync(process.execPath, [program, 'agent', ...settings, ...none], {
      encoding: 'utf8',
      timeout: 20_000,
    });
  };
  const tls = started('--ports-https', '0', '--tls-cert-file', missing, '--tls-key-file', missing);
  t.equal(tls.status, 1);
  t.match(tls.stderr, `Error: the server did not start: tls.key_file: cannot read ${missing}`);
  t.equal(started('--tls-cert-file', missing).status, 2, 'a wrong setting stays one');
  t.end();
});
