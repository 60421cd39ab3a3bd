// Where an HTTP application listens.

import dns from 'node:dns';
import dnsPromises from 'node:dns/promises';
import { once } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import { connect } from 'node:net';
import t from 'tap';
import { ConnectionRoom } from '../../src/platform-node/net/connection-room.ts';
import { serveHttp } from '../../src/platform-node/net/http-serving.ts';
import { systemClock } from '../../src/platform-node/system-clock.ts';
import { server } from '../http/support.ts';

t.test('serving: a name with several addresses is one listener, within its bounds', async (t) => {
  const other = '127.0.0.2';
  const { lookup } = dns;
  // As where it is an address of IPv6, too.
  const withOther = (
    name: string,
    options: dns.LookupAllOptions,
    done: (...all: never[]) => void,
  ) =>
    lookup(name, options, (error, found: dns.LookupAddress[] | string) => {
      const all = Array.isArray(found) ? [...found, { address: other, family: 4 }] : found;
      done(...([error, all, 4] as never[]));
    });
  dns.lookup = withOther as never;
  t.teardown(() => {
    dns.lookup = lookup;
  });
  const { app, logger } = server({});
  const room = new ConnectionRoom({ max: 100, clock: systemClock, logger });
  const at = { host: 'localhost', port: 0, tls: undefined };
  const { address, close } = await serveHttp(app, at, { clock: systemClock, logger, room });
  t.teardown(() => close());
  const answers = async (host: string): Promise<boolean> => {
    const socket = connect(address.port, host);
    t.teardown(() => socket.destroy());
    return await once(socket, 'connect').then(
      () => true,
      () => false,
    );
  };
  t.equal(await answers(address.host), true);
  t.equal(await answers(other), false);
});

t.test('serving: localhost is the address that clients ask at by themselves', async (t) => {
  const { lookup } = dnsPromises;
  // As most systems put them.
  const found = [
    { address: '::1', family: 6 },
    { address: '127.0.0.1', family: 4 },
  ];
  const use = (as: unknown): void => {
    dnsPromises.lookup = as as typeof lookup;
    syncBuiltinESMExports();
  };
  use(async (_name: string, options: dns.LookupOptions = {}) =>
    options.order === 'ipv4first' ? found[1] : found[0],
  );
  t.teardown(() => use(lookup));
  const { app, logger } = server({});
  const room = new ConnectionRoom({ max: 100, clock: systemClock, logger });
  const at = { host: 'localhost', port: 0, tls: undefined };
  const { address, close } = await serveHttp(app, at, { clock: systemClock, logger, room });
  t.teardown(() => close());
  t.equal(address.host, '127.0.0.1');
});

t.test(
  'serving: its connections take the room of the process, and keep nothing open',
  async (t) => {
    const { app, logger } = server({});
    const room = new ConnectionRoom({ max: 1, clock: systemClock, logger });
    const graces: number[] = [];
    /** What is left when the grace is over is cut off; here it is over at once. */
    const clock = {
      ...systemClock,
      after: (delayMs: number, action: () => void) => {
        graces.push(delayMs);
        const timer = setImmediate(action);
        return { cancel: () => clearImmediate(timer) };
      },
    };
    const at = { host: '127.0.0.1', port: 0, tls: undefined };
    const { address, close } = await serveHttp(app, at, { clock, logger, room });
    const halfAsked = connect(address.port, address.host, () =>
      halfAsked.write('GET / HTTP/1.1\r\n'),
    );
    await once(app.server, 'connection');
    const next = connect(address.port, address.host);
    await once(next, 'close');
    t.match(logger.lines, [{ level: 'warn', message: 'a connection was refused' }]);
    t.notOk(halfAsked.destroyed);
    const ended = once(halfAsked, 'close');
    await close();
    await ended;
    t.same(graces, [5_000]);
  },
);
