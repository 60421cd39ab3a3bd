// So many requests to providers may be under way, of one method and of all.

import t from 'tap';
import { createAuthMethods } from '../../src/auth-methods/auth-method-types.ts';
import { type HttpsClient, HttpsFailure } from '../../src/auth-methods/outside/https-client.ts';
import {
  LOAD_REQUESTS_MAX,
  LOGIN_REQUESTS_MAX,
  METHOD_REQUESTS_MAX,
} from '../../src/auth-methods/outside/requests-under-way.ts';
import { selfSigned } from '../support/certificates.ts';
import { jwt } from './check-table.ts';
import { authMethod, testSurroundings } from './loopback.ts';

const { cert } = selfSigned();

t.test('logins: requests to providers are bounded by method and in all', async (t) => {
  const waiting: ((error: Error) => void)[] = [];
  const http: HttpsClient = {
    request: () => new Promise((_resolve, reject) => waiting.push(reject)),
  };
  const surroundings = testSurroundings();
  const { types } = createAuthMethods({ ...surroundings, http });
  const config = { Host: 'https://k8s.test', CACert: cert, ServiceAccountJWT: jwt('reviewer') };
  const login = (name: string) =>
    types.kubernetes.validate({ ...authMethod('kubernetes', config), name }, jwt('demo'));
  const logins = (name: string, count: number) => Array.from({ length: count }, () => login(name));
  const busy = { code: 'unavailable', message: /^error asking for .*: too many requests are/ };

  const first = Promise.allSettled(logins('a', METHOD_REQUESTS_MAX));
  t.equal(waiting.length, METHOD_REQUESTS_MAX);
  for (const refused of logins('a', 3)) await t.rejects(refused, busy, 'of one method');
  const others = Promise.allSettled(logins('b', LOGIN_REQUESTS_MAX - METHOD_REQUESTS_MAX));
  t.equal(waiting.length, LOGIN_REQUESTS_MAX);
  await t.rejects(login('c'), busy, 'of all');
  const { jwt: signed } = types;
  const check = signed.checkConfig(authMethod('jwt', { JWKSURL: 'https://keys.test/' }));
  t.equal(waiting.length, LOGIN_REQUESTS_MAX + 1, 'keys that logins share have room of their own');
  t.same(
    surroundings.lines.map((line) => (JSON.parse(line) as { readonly error: string }).error),
    [
      '256 requests for auth method default/a are under way already',
      '512 requests for all logins are under way already',
    ],
    'one line for each reason',
  );

  waiting.shift()!(new HttpsFailure('timeout', 'no answer'));
  await new Promise((resolve) => setImmediate(resolve));
  const inItsPlace = Promise.allSettled(logins('a', 1));
  t.equal(waiting.length, LOGIN_REQUESTS_MAX + 1);
  await t.rejects(login('a'), busy, 'one went, and one came');

  for (const reject of waiting.splice(0)) reject(new HttpsFailure('timeout', 'no answer'));
  await Promise.all([first, others, inItsPlace, check.catch(() => undefined)]);
  const again = login('a');
  t.equal(waiting.length, 1, 'the room is free again');
  for (const reject of waiting) reject(new HttpsFailure('timeout', 'no answer'));
  await t.rejects(again, { code: 'unavailable' });
  t.equal(surroundings.lines.length, 4, 'a line for each method, not for each login');
  surroundings.advance(60_000);
  const later = login('a');
  waiting.at(-1)!(new HttpsFailure('timeout', 'no answer'));
  await t.rejects(later, { code: 'unavailable' });
  t.equal(surroundings.lines.length, 5, 'and once a minute');
});

t.test('jwt: what logins share is bounded, too', async (t) => {
  let count = 0;
  const http: HttpsClient = {
    request: () => {
      count += 1;
      return new Promise(() => undefined);
    },
  };
  const { types } = createAuthMethods({ ...testSurroundings(), http });
  const check = (place: number) =>
    types.jwt.checkConfig(authMethod('jwt', { JWKSURL: `https://keys.test/${place}` }));
  for (let place = 0; place < LOAD_REQUESTS_MAX; place += 1) void check(place);
  await t.rejects(check(LOAD_REQUESTS_MAX), { message: /128 requests for keys and discovery/ });
  t.equal(count, LOAD_REQUESTS_MAX);
});
