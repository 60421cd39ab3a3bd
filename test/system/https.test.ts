// The HTTPS interface of a real server, asked by the command line, by clients with and without certificates of
// their own, and what becomes of it when its certificates are renewed while it runs.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import t, { type Test } from 'tap';
import { MANAGEMENT } from '../hard/asking.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../hard/server-process.ts';
import { type Authority, type Certified, certify, makeAuthority } from '../support/certificates.ts';
import { until } from '../support/running/running-group.ts';

t.setTimeout(120_000);

const CONCLAVE = join(import.meta.dirname, '..', '..', 'src', 'main.js');
const METRICS = '/v1/agent/metrics?format=prometheus';

/** A server of HTTPS, and the files that its settings name. */
class Secured {
  readonly folder: string;
  server!: ServerProcess;

  constructor(test: Test) {
    this.folder = temporaryFolder(test);
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  write({ key, cert }: Certified, { cert: ca }: Authority): void {
    const texts = { key, cert, ca };
    for (const [name, text] of Object.entries(texts)) writeFileSync(this.path(name), text);
  }

  async start(test: Test, flags: Readonly<Record<string, string>> = {}): Promise<void> {
    this.server = await startServer(test, {
      dataFolder: this.path('data'),
      flags: {
        'ports-http': '-1',
        'ports-https': '0',
        'tls-key-file': this.path('key'),
        'tls-cert-file': this.path('cert'),
        'tls-ca-file': this.path('ca'),
        ...flags,
      },
    });
  }

  /** What the server says to whoever trusts `ca`. Rejects where it says nothing. */
  async ask(path: string, { ca, own }: { readonly ca: Authority; readonly own?: Certified }) {
    const line = await this.connection({ ca: ca.cert, ...own });
    return this.askOn(line, path);
  }

  async connection(options: ConnectionOptions): Promise<TLSSocket> {
    const line = connect({ host: '127.0.0.1', port: this.server.port, ...options });
    await once(line, 'secureConnect');
    return line;
  }

  async askOn(line: TLSSocket, path: string): Promise<string> {
    line.write(
      `GET ${path} HTTP/1.1\r\nHost: x\r\nX-Service-Token: ${MANAGEMENT}\r\nConnection: close\r\n\r\n`,
    );
    let heard = '';
    for await (const piece of line) heard += String(piece);
    if (heard === '') throw new Error('the line was closed without an answer');
    return heard;
  }
}

function conclave(words: readonly string[], environment: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [CONCLAVE, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, CONCLAVE_TOKEN: MANAGEMENT, ...environment },
  });
  let out = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (piece: string) => {
      out += piece;
    });
  return new Promise<{ readonly status: number | null; readonly out: string }>((resolve) => {
    child.once('close', (status) => resolve({ status, out }));
  });
}

t.test('https: the command line asks over it, and says what does not fit', async (t) => {
  const [authority, other] = [makeAuthority('ours'), makeAuthority('not ours')];
  const secured = new Secured(t);
  secured.write(certify(authority, 'node', ['127.0.0.1']), authority);
  writeFileSync(secured.path('other'), other.cert);
  await secured.start(t);
  const words = ['acl', 'token', 'read', '--self'];
  const at = { CONCLAVE_HTTP_ADDR: `https://127.0.0.1:${secured.server.port}` };
  const good = await conclave(words, { ...at, CONCLAVE_CACERT: secured.path('ca') });
  t.equal(good.status, 0, good.out);
  t.match(good.out, /SecretID/);
  const strange = await conclave(words, { ...at, CONCLAVE_CACERT: secured.path('other') });
  t.match(strange, {
    status: 1,
    out: /no answer from https:.*[\s\S]*--ca-file or CONCLAVE_CACERT/,
  });
  const plain = { CONCLAVE_HTTP_ADDR: `http://127.0.0.1:${secured.server.port}` };
  t.match(await conclave(words, plain), { status: 1, out: /check http:\/\/ or https:\/\// });
});

t.test('https: with tls.verify_incoming nobody is answered without a certificate', async (t) => {
  const [authority, other] = [makeAuthority('ours'), makeAuthority('not ours')];
  const secured = new Secured(t);
  secured.write(certify(authority, 'node', ['127.0.0.1']), authority);
  await secured.start(t, { 'tls-verify-incoming': 'true' });
  const own = certify(authority, 'client');
  t.match(await secured.ask('/livez', { ca: authority, own }), /^HTTP\/1\.1 200 /);
  for (const stranger of [undefined, certify(other, 'client')]) {
    const asked = secured.ask('/livez', { ca: authority, ...(stranger && { own: stranger }) });
    await t.rejects(asked, /alert|ECONNRESET|EPIPE|without an answer/);
  }
  const refusals = (): readonly string[] =>
    secured.server
      .output()
      .split('\n')
      .filter((line) => line.includes('a connection was refused'));
  await until('both are in the log', () => refusals().length === 2);
  const [without, strange] = refusals();
  t.match(without, /"warn".*"remote":"127\.0\.0\.1:\d+".*it shows no certificate/);
  t.match(
    strange,
    /"warn".*"remote":"127\.0\.0\.1:\d+".*not from an authority of tls\.ca_file: UNABLE/,
  );
});

t.test('https: with tls.verify_incoming no session stands in for a certificate', async (t) => {
  const authority = makeAuthority('ours');
  const secured = new Secured(t);
  secured.write(certify(authority, 'node', ['127.0.0.1']), authority);
  await secured.start(t, { 'tls-verify-incoming': 'true' });
  const own = certify(authority, 'client');
  const sessionWith = async (options: ConnectionOptions): Promise<Buffer> => {
    const line = await secured.connection({ ...options, ...own });
    let session: Buffer | undefined = line.getSession();
    line.on('session', (given: Buffer) => {
      session = given;
    });
    t.match(await secured.askOn(line, '/livez'), /^HTTP\/1\.1 200 /);
    return session ?? Buffer.alloc(0);
  };
  const check = async (): Promise<void> => {
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      const options = { ca: authority.cert, maxVersion };
      const session = await sessionWith(options);
      const later = secured.connection({ ...options, session });
      const asked = later.then((line) => secured.askOn(line, '/livez'));
      await t.rejects(asked, /alert|ECONNRESET|EPIPE|without an answer/, maxVersion);
    }
  };
  await check();
  const before = secured.server.output().length;
  process.kill(secured.server.pid, 'SIGHUP');
  const isReadAnew = () => secured.server.output().slice(before).includes('were read anew');
  await until('it has read them', isReadAnew);
  await check();
});

t.test('https: certificates are renewed by a signal, and bad ones change nothing', async (t) => {
  const [first, second] = [makeAuthority('first'), makeAuthority('second')];
  const secured = new Secured(t);
  secured.write(certify(first, 'node', ['127.0.0.1']), first);
  await secured.start(t);
  const { server } = secured;
  const stands = await secured.connection({ ca: first.cert });
  const renewal = async (word: RegExp): Promise<void> => {
    const before = server.output().length;
    process.kill(server.pid, 'SIGHUP');
    await until('it has read them', () => word.test(server.output().slice(before)));
  };

  secured.write(certify(second, 'node', ['127.0.0.1']), second);
  await renewal(/the certificates were read anew/);
  t.match(await secured.ask('/livez', { ca: second }), /^HTTP\/1\.1 200 /);
  await t.rejects(secured.ask('/livez', { ca: first }), /signature|certificate|issuer/);
  t.match(await secured.askOn(stands, '/livez'), /^HTTP\/1\.1 200 /, 'what stands is left alone');

  writeFileSync(secured.path('key'), certify(second, 'node').key);
  await renewal(/not read anew: those in use stay/);
  t.match(server.output(), /tls\.key_file: .*does not hold the key of the certificate/);
  t.match(await secured.ask('/livez', { ca: second }), /^HTTP\/1\.1 200 /);

  const figures = await secured.ask(METRICS, { ca: second });
  const left = /^conclave_tls_certificate_seconds_left\{setting="tls\.cert_file"\} (\d+)$/m.exec(
    figures,
  );
  t.ok(Number(left?.[1]) > 366 * 24 * 3_600, `it is good for ${left?.[1]} s`);
  t.match(figures, 'setting="tls.ca_file"');
  t.same(await server.end('SIGTERM'), { code: 0, signal: null });
});

t.test('https: certificates that are renewed while a server starts are read anew', async (t) => {
  const [first, second] = [makeAuthority('first'), makeAuthority('second')];
  const secured = new Secured(t);
  secured.write(certify(first, 'node', ['127.0.0.1']), first);
  const flags = {
    'data-dir': secured.path('data'),
    'ports-http': '-1',
    'ports-https': '0',
    'ports-cluster': '-1',
    'tls-key-file': secured.path('key'),
    'tls-cert-file': secured.path('cert'),
  };
  const words = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const stdio = ['ignore', 'ignore', 'pipe'] as const;
  const child = spawn(process.execPath, [CONCLAVE, 'agent', ...words], { stdio: [...stdio] });
  t.teardown(() => child.kill('SIGKILL'));
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (piece: string) => {
    const isFirst = said === '';
    said += piece;
    if (!isFirst) return;
    secured.write(certify(second, 'node', ['127.0.0.1']), second);
    child.kill('SIGHUP');
  });
  await until('it has read them', () => said.includes('the certificates were read anew'));
  t.match(said, /"msg":"starting"[\s\S]*"msg":"listening"/);
});
