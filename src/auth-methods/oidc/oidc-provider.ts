// What an OIDC login asks the provider after the redirect: tokens for a code, and more claims about the
// subject. The client proves itself by its secret or by an assertion that it signs.

import { importPKCS8, SignJWT } from 'jose';
import { messageOf } from '../../../cluster/base/message-of.ts';
import type { AuthMethod } from '../../acl/auth-method.ts';
import { claimOf } from '../jwt/claims.ts';
import type { Claims } from '../jwt/jws.ts';
import type { OidcConfig } from '../jwt/jwt-config.ts';
import type { InTurn } from '../jwt/signature-checks.ts';
import type { Outside } from '../outside/outside.ts';
import type { ProviderMetadata } from '../outside/providers.ts';
import { ask, type BoundedRequest, jsonObjectOf, RemoteFailure } from '../outside/remote.ts';
import { refused } from '../refused.ts';

const CLIENT_ASSERTION_S = 300;

/** One half of a login at the provider of one method. */
export interface OidcSession {
  readonly outside: Outside;
  readonly method: AuthMethod;
  readonly config: OidcConfig;
  readonly metadata: ProviderMetadata;
  /** To sign takes the threads that check signatures, and longer. */
  readonly inTurn: InTurn;
}

/**
 * Redeems the code of a finished login. Rejects with AclError('login-refused') when the provider does
 * not accept it, with RemoteFailure when it gives no answer.
 */
export async function exchangeCode(
  session: OidcSession,
  login: { readonly code: string; readonly redirectUri: string; readonly pkceVerifier: string },
): Promise<{ readonly idToken: string; readonly accessToken: string }> {
  const url = session.metadata.tokenEndpoint;
  if (url === undefined) throw new RemoteFailure('the discovery document has no token_endpoint');
  const form = new URLSearchParams({
    grant_type: 'authorization_code',
    code: login.code,
    redirect_uri: login.redirectUri,
  });
  if (login.pkceVerifier !== '') form.set('code_verifier', login.pkceVerifier);
  const headers = await authenticateClient(session, form);
  const body = form.toString();
  const response = await ask(session.outside, {
    ...toProvider(session, url),
    method: 'POST',
    headers: {
      ...headers,
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded',
    },
    body,
  });
  if (response.status === 400 || response.status === 401) {
    throw refused('the OIDC provider did not accept the code');
  }
  if (response.status !== 200) throw new RemoteFailure(`unexpected status ${response.status}`);
  const answer = jsonObjectOf(response.body);
  const { id_token: idToken, access_token: accessToken } = answer;
  if (typeof idToken !== 'string') throw refused('the OIDC provider sent no ID token');
  return { idToken, accessToken: typeof accessToken === 'string' ? accessToken : '' };
}

function toProvider({ config }: OidcSession, url: string): Pick<BoundedRequest, 'url' | 'caPem'> {
  return { url, caPem: config.discovery.caPem || undefined };
}

/** Proves who the client is: fills `form`, or returns the header that does it. */
async function authenticateClient(
  session: OidcSession,
  form: URLSearchParams,
): Promise<Readonly<Record<string, string>>> {
  const { config, metadata } = session;
  const { client, clientId } = config;
  if (client.kind === 'assertion') {
    // RFC 7521, 4.2: it may be left out. There are providers that look for it.
    form.set('client_id', clientId);
    form.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer');
    form.set('client_assertion', await clientAssertion(session, client));
    return {};
  }
  const offered = metadata.clientAuthentication;
  if (offered.includes('client_secret_post') && !offered.includes('client_secret_basic')) {
    form.set('client_id', clientId);
    form.set('client_secret', client.secret);
    return {};
  }
  const pair = `${formEncoded(clientId)}:${formEncoded(client.secret)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

async function clientAssertion(
  { outside, config: { clientId }, inTurn }: OidcSession,
  client: Extract<OidcConfig['client'], { kind: 'assertion' }>,
): Promise<string> {
  const nowS = Math.floor(outside.clock.wallMs() / 1000);
  const key = await importPKCS8(client.privateKeyPem, client.algorithm);
  const unsigned = new SignJWT({ jti: outside.random.uuid() })
    .setProtectedHeader({ alg: client.algorithm, typ: 'JWT' })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience([...client.audience])
    .setIssuedAt(nowS)
    .setExpirationTime(nowS + CLIENT_ASSERTION_S);
  return inTurn(() => unsigned.sign(key));
}

/** RFC 6749, 2.3.1: id and secret are form-encoded before they go into the header. */
function formEncoded(text: string): string {
  return new URLSearchParams({ v: text }).toString().slice(2);
}

/** More claims from the userinfo endpoint, if it answers and speaks of the same subject. */
export async function userInfo(
  session: OidcSession,
  accessToken: string,
  claims: Claims,
): Promise<Claims> {
  const url = session.metadata.userinfoEndpoint;
  if (url === undefined || accessToken === '') return {};
  try {
    const response = await ask(session.outside, {
      ...toProvider(session, url),
      method: 'GET',
      headers: { accept: 'application/json', authorization: `Bearer ${accessToken}` },
    });
    const info = response.status === 200 ? jsonObjectOf(response.body) : {};
    const subject = claimOf(info, 'sub');
    return subject !== undefined && subject === claimOf(claims, 'sub') ? info : {};
  } catch (error) {
    if (!(error instanceof RemoteFailure)) throw error;
    const fields = { authMethod: session.method.name, error: messageOf(error) };
    session.outside.logger.warn(fields, 'OIDC userinfo endpoint gave no answer');
    return {};
  }
}
