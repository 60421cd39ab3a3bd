// The network of nodes where they show certificates: who is let in, who is refused, and who is told why.

import { once } from 'node:events';
import { connect as tlsConnect } from 'node:tls';
import t from 'tap';
import type { Net } from '../../cluster/platform/net.ts';
import { certificateFault } from '../../src/platform-node/net/tls-files.ts';
import { certify } from '../support/certificates.ts';
import { RenewableTls } from '../support/renewable-tls.ts';
import { trustWhoever } from '../support/trust-whoever.ts';
import {
  AUTHORITY,
  closed,
  dial,
  listen,
  MUTUAL,
  netWith,
  OTHER_AUTHORITY,
  type Port,
  TIMEOUT_MS,
  until,
} from './nodes-on-sockets.ts';

t.test(
  'ws-net: in TLS with an authority, nodes that it has signed reach each other',
  async (test) => {
    const port = await listen(test, MUTUAL);
    const other = netWith({ ...certify(AUTHORITY, 'node-2'), ca: AUTHORITY.cert });
    const near = await dial(test, port, other);
    near.conn.send(Buffer.from('over TLS'));
    await until(() => port.ends[0]?.frames.length === 1);
    port.ends[0]!.conn.send(new Uint8Array(3_000_000).fill(7));
    await until(() => near.frames.length === 1);
    test.equal(near.frames[0]!.length, 3_000_000);
    near.conn.close('done');
    await until(() => port.ends[0]!.closedWhy !== undefined);
    test.equal(port.ends[0]!.closedWhy, 'done');
  },
);

t.test(
  'ws-net: in TLS with an authority, every stranger is refused and the others go on',
  async (test) => {
    const port = await listen(test, MUTUAL);
    const near = await dial(test, port);
    const strangers: readonly (readonly [string, Net, RegExp])[] = [
      [
        'signed by another',
        netWith({ ...certify(OTHER_AUTHORITY, 'node-2'), ca: AUTHORITY.cert }),
        /it may not take the certificate of this server, which its log tells then; or servers/,
      ],
      ['without TLS', netWith(undefined), /\(it may have gone; or servers/],
    ];
    for (const [title, net, says] of strangers) {
      const dialled = net.dial(port.listening.address, { timeoutMs: TIMEOUT_MS });
      await test.rejects(dialled, says, title);
    }
    const bare = tlsConnect({
      port: port.listening.address.port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
    });
    bare.on('error', () => undefined);
    bare.write('GET / HTTP/1.1\r\n\r\n');
    await closed(bare);
    const old = tlsConnect({
      ...MUTUAL,
      port: port.listening.address.port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      maxVersion: 'TLSv1.2',
    });
    const [error] = (await once(old, 'error')) as [Error];
    test.match(error.message, /version/);
    await until(() => port.log.lines.length >= 4);
    const said = port.log.lines.join('\n');
    const by =
      /127\.0\.0\.1:\d+","why":"its certificate is not from the authority of this cluster: /;
    test.match(said, new RegExp(`${by.source}UNABLE_TO_VERIFY_LEAF_SIGNATURE`));
    test.match(said, by, 'who shows none');
    test.match(said, /what came is no node: unsupported protocol/);
    test.match(said, /what came is not TLS, which is spoken here: .*tls\.cluster/);
    near.conn.send(Buffer.from('all is well'));
    await until(() => port.ends[0]?.frames.length === 1);
    test.equal(port.ends.length, 1);
  },
);

t.test(
  'ws-net: where one of two speaks TLS and the other does not, both are told which setting to look at',
  async (test) => {
    const [plain, secured] = [await listen(test), await listen(test, MUTUAL)];
    const dialled = (net: Net, { listening }: Port) =>
      net.dial(listening.address, { timeoutMs: TIMEOUT_MS });
    await test.rejects(dialled(netWith(undefined), secured), /socket hang up .*tls\.cluster/);
    await test.rejects(dialled(netWith(MUTUAL), plain), /before secure TLS .*tls\.cluster/);
    await until(() => plain.log.lines.length > 0 && secured.log.lines.length > 0);
    test.match(plain.log.lines.join(), /what came is TLS, and none is spoken here/);
    test.match(secured.log.lines.join(), /what came is not TLS, which is spoken here/);
    test.same([...plain.ends, ...secured.ends], [], 'and nothing was taken for a node');
  },
);

t.test(
  'ws-net: in TLS with an authority, a resumed session does not stand for a certificate',
  async (test) => {
    const port = await listen(test, MUTUAL);
    const options = {
      port: port.listening.address.port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
    };
    let session: Buffer | undefined;
    const node = tlsConnect({ ...options, key: MUTUAL.key, cert: MUTUAL.cert });
    node.on('session', (given) => {
      session = given;
    });
    await until(() => session !== undefined);
    node.destroy();
    const heard: string[] = [];
    const second = tlsConnect({ ...options, session: session! }, () => {
      test.ok(second.isSessionReused());
      second.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    });
    second.on('data', (data) => heard.push(data.toString()));
    second.on('error', () => undefined);
    await closed(second);
    test.same(heard, []);
    test.match(port.log.lines.join('\n'), /it resumes a session instead of showing a certificate/);
  },
);

t.test(
  'ws-net: renewed certificates count for those who come later, on both sides of a line',
  async (test) => {
    const tls = new RenewableTls(MUTUAL);
    const port = await listen(test, tls);
    const before = await dial(test, port);
    const renewed = { ...certify(OTHER_AUTHORITY, 'node-1'), ca: OTHER_AUTHORITY.cert };
    tls.renew(renewed);
    await test.rejects(
      netWith(MUTUAL).dial(port.listening.address, { timeoutMs: TIMEOUT_MS }),
      'of the authority of before',
    );
    const after = await dial(test, port);
    const other = await listen(test, renewed);
    await dial(test, port, other.net);
    await dial(test, other, port.net);
    before.conn.send(Buffer.from('a line that stands is left alone'));
    after.conn.send(Buffer.from('and a new one works'));
    await until(() => port.ends.filter(({ frames }) => frames.length === 1).length === 2);
  },
);

t.test('ws-net: a dialled node must show a certificate that is trusted', async (test) => {
  const foreign = await listen(test, { ...certify(OTHER_AUTHORITY, 'node-1'), ca: undefined });
  await test.rejects(
    netWith(MUTUAL).dial(foreign.listening.address, { timeoutMs: TIMEOUT_MS }),
    /unable to verify|certificate/,
  );
  const own = await listen(test, { ...certify(AUTHORITY, 'node-1'), ca: undefined });
  const withoutAuthority = netWith({ ...certify(AUTHORITY, 'node-2'), ca: undefined });
  await test.rejects(
    withoutAuthority.dial(own.listening.address, { timeoutMs: TIMEOUT_MS }),
    /unable to verify|certificate/,
  );
  trustWhoever(test);
  await test.rejects(
    netWith(MUTUAL).dial(foreign.listening.address, { timeoutMs: TIMEOUT_MS }),
    /unable to verify|certificate/,
    'whatever the environment says',
  );
  const plain = await listen(test);
  await test.rejects(
    netWith(MUTUAL).dial(plain.listening.address, { timeoutMs: TIMEOUT_MS }),
    /wrong version|EPROTO|hang up|ECONNRESET|disconnected/,
  );
});

t.test('ws-net: a certificate that has ended is told from one of a stranger', async (test) => {
  const said = (code: string): string => certificateFault(code, 'the authority of this cluster');
  test.equal(
    said('CERT_HAS_EXPIRED'),
    'its certificate is not valid at this time: CERT_HAS_EXPIRED',
  );
  test.match(said('SELF_SIGNED_CERT_IN_CHAIN'), /^its certificate is not from the authority of/);
});
