// The cluster that auth methods of type `kubernetes` ask, played: it knows every service account whose token it
// is shown. Answers take virtual time. Other types check signatures in threads of the real world.

import type {
  HttpsClient,
  HttpsResponse,
} from '../../../../src/auth-methods/outside/https-client.ts';
import type { World } from '../../world/world.ts';

const ACCOUNT = 'worker';

/** A certificate by its outline: nobody here speaks TLS. */
const CERTIFICATE = Buffer.concat([Buffer.from([0x30, 0x82, 0x01, 0x00]), Buffer.alloc(256)]);

/** What presents itself at a login. */
export const BEARER = [{ alg: 'none' }, { sub: ACCOUNT }, 'signature']
  .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  .join('.');

/** The Config of an auth method that asks the cluster. */
export const IDENTITY_CONFIG = {
  Host: 'https://identity.test',
  CACert: `-----BEGIN CERTIFICATE-----\n${CERTIFICATE.toString('base64')}\n-----END CERTIFICATE-----\n`,
  ServiceAccountJWT: BEARER,
};

const USER = { username: `system:serviceaccount:default:${ACCOUNT}`, uid: 'one' };

export function identityCluster({ time, stream }: World): HttpsClient {
  const delays = stream.fork('identity cluster');
  return {
    request: ({ method }) =>
      new Promise((resolve) => {
        const body = method === 'POST' ? { status: { authenticated: true, user: USER } } : {};
        time.after(delays.exponential(0.5, 2), () => resolve(answerOf(body)));
      }),
  };
}

function answerOf(body: unknown): HttpsResponse {
  return { status: 200, headers: {}, body: Buffer.from(JSON.stringify(body)) };
}
