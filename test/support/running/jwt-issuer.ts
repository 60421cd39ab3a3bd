// An issuer of signed identities, and the Config of a `jwt` auth method that trusts it.

import { exportJWK, exportSPKI, generateKeyPair, type JWK, SignJWT } from 'jose';
import type { Fields } from './running-node.ts';

export interface JwtIssuer {
  /** A bearer that is valid for five minutes, with `iss` and `aud` unless the claims say other ones. */
  sign(claims?: Fields): Promise<string>;
  readonly jwk: JWK;
  /** For methods of type `jwt`: static key, bound issuer and audience, and mappings. */
  readonly config: Fields;
}

/** A new issuer with a key of its own. */
export async function jwtIssuer(): Promise<JwtIssuer> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const nowS = Math.floor(Date.now() / 1000);
  const issued = { iss: 'https://issuer.test/', aud: 'conclave', iat: nowS, exp: nowS + 300 };
  return {
    sign: (claims) =>
      new SignJWT({ ...issued, ...claims })
        .setProtectedHeader({ alg: 'ES256', kid: 'one' })
        .sign(privateKey),
    jwk: { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256', use: 'sig' },
    config: {
      JWTValidationPubKeys: [await exportSPKI(publicKey)],
      BoundIssuer: issued.iss,
      BoundAudiences: [issued.aud],
      ClaimMappings: { first_name: 'name', '/org/primary': 'primary_org' },
      ListClaimMappings: { 'https://groups.test/groups': 'groups' },
    },
  };
}
