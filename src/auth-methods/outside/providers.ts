// Identity providers on the network: their discovery documents and their key sets, cached for as long as the auth
// method stays as it is: whoever writes it has them asked for anew, in all datacenters. A document is believed
// only when it names as issuer the very URL it was asked for under, and it may not lead from https to http.

import type { AuthMethod } from '../../acl/auth-method.ts';
import type { KeySource } from '../jwt/jws.ts';
import {
  keysOfJwks,
  type PublicKey,
  type SignatureAlgorithm,
  signatureAlgorithmOf,
} from '../jwt/signing-keys.ts';
import { askForJson, parseHttpUrl, RemoteFailure } from './remote.ts';
import { RemoteCache } from './remote-cache.ts';
import type { Surroundings } from './surroundings.ts';

export interface Location {
  readonly url: string;
  /** PEM; empty trusts the system's roots. */
  readonly caPem: string;
}

/** The auth method as it stands. */
type Version = Pick<AuthMethod, 'modifyIndex'>;
const UNWRITTEN: Version = { modifyIndex: 0 };

export interface ProviderMetadata {
  readonly issuer: string;
  readonly jwksUri: string;
  readonly authorizationEndpoint: string | undefined;
  readonly tokenEndpoint: string | undefined;
  readonly userinfoEndpoint: string | undefined;
  /** Those that the provider says it signs with and that are accepted here. */
  readonly algorithms: readonly SignatureAlgorithm[];
  /** How a client may prove itself at the token endpoint. */
  readonly clientAuthentication: readonly string[];
}

export class Providers {
  readonly #surroundings: Surroundings;
  readonly #keys: RemoteCache<readonly PublicKey[]>;
  readonly #metadata: RemoteCache<ProviderMetadata>;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
    this.#keys = new RemoteCache(surroundings.clock);
    this.#metadata = new RemoteCache(surroundings.clock);
  }

  /** The key set behind a JWKS URL. Its methods reject with RemoteFailure. */
  keySource(location: Location, method: Version): KeySource {
    const key = cacheKeyOf(location, method);
    const load = () => this.#loadKeys(location);
    return {
      current: () => this.#keys.get(key, load),
      renewed: () => this.#keys.reload(key, load),
    };
  }

  /** The discovery document of the issuer `location.url`; rejects with RemoteFailure. */
  metadata(location: Location, method: Version): Promise<ProviderMetadata> {
    return this.#metadata.get(cacheKeyOf(location, method), () => this.#loadMetadata(location));
  }

  /** Asks for the key set now, of a method that is not written yet; rejects with RemoteFailure. */
  async checkJwks(location: Location): Promise<void> {
    await this.#keys.load(cacheKeyOf(location, UNWRITTEN), () => this.#loadKeys(location));
  }

  /** Asks for the discovery document and the keys it leads to; rejects with RemoteFailure. */
  async checkDiscovery(location: Location): Promise<void> {
    const load = () => this.#loadMetadata(location);
    const { jwksUri } = await this.#metadata.load(cacheKeyOf(location, UNWRITTEN), load);
    await this.checkJwks({ url: jwksUri, caPem: location.caPem });
  }

  async #loadKeys(location: Location): Promise<readonly PublicKey[]> {
    parseHttpUrl(location.url);
    return keysOfJwks(await askForJson(this.#surroundings, location));
  }

  async #loadMetadata({ url: issuer, caPem }: Location): Promise<ProviderMetadata> {
    const { protocol } = parseHttpUrl(issuer);
    const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const document = await askForJson(this.#surroundings, { url, caPem });
    if (document.issuer !== issuer) {
      throw new RemoteFailure('the issuer in the discovery document is not the configured one');
    }
    return metadataOf(document, { issuer, protocol });
  }
}

/** No two writes of auth methods have one index. */
function cacheKeyOf({ url, caPem }: Location, { modifyIndex }: Version): string {
  return `${modifyIndex} ${url}\n${caPem}`;
}

function metadataOf(
  document: Readonly<Record<string, unknown>>,
  { issuer, protocol }: { readonly issuer: string; readonly protocol: string },
): ProviderMetadata {
  const endpoint = (name: string): string | undefined => {
    const value = document[name];
    if (typeof value !== 'string') return undefined;
    const url = parseHttpUrl(value);
    if (protocol === 'https:' && url.protocol !== 'https:') {
      throw new RemoteFailure(`${name} of the discovery document is not an https URL`);
    }
    return value;
  };
  const jwksUri = endpoint('jwks_uri');
  if (jwksUri === undefined) throw new RemoteFailure('the discovery document has no jwks_uri');
  return {
    issuer,
    jwksUri,
    authorizationEndpoint: endpoint('authorization_endpoint'),
    tokenEndpoint: endpoint('token_endpoint'),
    userinfoEndpoint: endpoint('userinfo_endpoint'),
    algorithms: textsOf(document.id_token_signing_alg_values_supported).flatMap(
      (name) => signatureAlgorithmOf(name) ?? [],
    ),
    clientAuthentication: textsOf(document.token_endpoint_auth_methods_supported),
  };
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
