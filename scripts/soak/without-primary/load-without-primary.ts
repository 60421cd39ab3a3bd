// Clients who need, or test, what goes on without the primary: logins, waits for news, ends of tokens, refusals of
// what all share, and what is told of the lag. They work before, meanwhile and afterwards.

import { setTimeout as pause } from 'node:timers/promises';
import { exportSPKI, generateKeyPair, SignJWT } from 'jose';
import type { ClusterDescription, NodeDescription } from '../../cluster/cluster-files.ts';
import type { Absence } from './absence.ts';
import { Asker } from './asker.ts';
import { ExpiringTokens } from './expiring-tokens.ts';
import { LagWatch } from './lag-watch.ts';
import { LoginClients } from './login-clients.ts';
import { PolicyWriters } from './policy-writers.ts';

export interface LoadWithoutPrimaryOptions {
  readonly cluster: ClusterDescription;
  readonly primary: string;
  readonly absence: Absence;
  /** Gives numbers from 0 up to 1. */
  readonly random: () => number;
  /** Of each client, between two questions; never less than `REST_MIN_MS`. */
  readonly restMs: number;
  /** From now until it ends, about. */
  readonly lastsMs: number;
}

const AUTH_METHOD = 'soak';
const LOGIN_LIFE = '1m';
const REST_MIN_MS = 100;
const POLICY_EVERY_MS = 5_000;
const LAG_EVERY_MS = 5_000;
/** Without a login for so long, logins do not go on. */
const GAP_MAX_MS = 120_000;
const ISSUED = { iss: 'https://issuer.soak/', aud: 'conclave' };

export class LoadWithoutPrimary {
  readonly lagWatch: LagWatch;
  readonly #options: LoadWithoutPrimaryOptions;
  readonly #asker: Asker;
  readonly #expiring: ExpiringTokens;
  readonly #policies: PolicyWriters;
  #logins: readonly LoginClients[] = [];
  #working: Promise<unknown> = Promise.resolve();
  #isOn = true;

  constructor(options: LoadWithoutPrimaryOptions) {
    const { cluster, absence, primary, random } = options;
    this.#options = options;
    this.#asker = new Asker(cluster);
    this.#expiring = new ExpiringTokens({ asker: this.#asker, absence, random });
    this.#policies = new PolicyWriters({ asker: this.#asker, absence });
    this.lagWatch = new LagWatch({ asker: this.#asker, absence, primary });
  }

  /** Makes what logins need and the tokens that will expire, waits until all have them, and begins. */
  async start(): Promise<void> {
    const { random, lastsMs, restMs, cluster } = this.#options;
    const bearer = await this.#makeAuthMethod();
    await this.#expiring.make(this.#primaryNode, lastsMs);
    for (const node of cluster.nodes) await this.#awaitAll(node);
    const rest = Math.max(REST_MIN_MS, restMs);
    const common = { asker: this.#asker, authMethod: AUTH_METHOD, bearer, random, restMs: rest };
    this.#logins = this.#secondaries.map((node) => new LoginClients({ ...common, node }));
    this.#working = Promise.all([
      ...this.#logins.map((each) => each.run()),
      ...this.#secondaries.flatMap((node) => [
        this.#every(rest, () => this.#expiring.useOne(node)),
        this.#every(POLICY_EVERY_MS, () => this.#policies.writeOne(node)),
      ]),
      ...cluster.nodes.map((node) => this.#every(LAG_EVERY_MS, () => this.lagWatch.look(node))),
    ]);
    // Whoever stops it learns of it.
    this.#working.catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.#isOn = false;
    for (const each of this.#logins) each.stop();
    await this.#working;
  }

  /** When all is quiet and even again; whatever was wrong until then. */
  async reckoning(): Promise<readonly string[]> {
    for (const node of this.#options.cluster.nodes) await this.#policies.holdAgainst(node);
    for (const { longestGapMs } of this.#logins)
      if (longestGapMs > GAP_MAX_MS)
        this.#asker.fault(`nobody was let in for ${Math.round(longestGapMs / 1_000)} s`);
    this.#asker.close();
    return this.#asker.faults;
  }

  figures(): readonly (readonly [string, string])[] {
    const sum = (pick: (each: LoginClients) => number): string =>
      String(this.#logins.reduce((total, each) => total + pick(each), 0));
    const gapMs = Math.max(...this.#logins.map(({ longestGapMs }) => longestGapMs));
    return [
      ['logins let in, in secondaries', sum(({ loginCount }) => loginCount)],
      ['of those given back, and then refused', sum(({ givenBackCount }) => givenBackCount)],
      ['of those expired, and then refused', sum(({ expiredCount }) => expiredCount)],
      ['longest time from one login to the next one', `${Math.round(gapMs)} ms`],
      ['blocking queries woken by a change', sum(({ wakeCount }) => wakeCount)],
      ['blocking queries ended by their time', sum(({ idleCount }) => idleCount)],
      ['logins and blocking queries without an answer', sum(({ failedCount }) => failedCount)],
      ['uses of global tokens before their end', String(this.#expiring.goodCount)],
      [
        'uses after their end refused, while nobody could delete them',
        String(this.#expiring.voidCount),
      ],
      ['policies written in secondaries', String(this.#policies.acknowledgedCount)],
      ['policies refused while the primary was away', String(this.#policies.refusedAwayCount)],
      ['policies of which nothing is known', String(this.#policies.unknownCount)],
      ['slowest refusal of those', `${Math.round(this.#policies.slowestRefusalMs)} ms`],
      ['looks at what is told of the lag', String(this.lagWatch.lookCount)],
      ...this.lagWatch.figures(),
    ];
  }

  get #primaryNode(): NodeDescription {
    const { cluster, primary } = this.#options;
    return cluster.nodes.find(({ datacenter }) => datacenter === primary)!;
  }

  get #secondaries(): readonly NodeDescription[] {
    const { cluster, primary } = this.#options;
    return cluster.nodes.filter(({ datacenter }) => datacenter !== primary);
  }

  /** Gives what makes bearers that it takes. */
  async #makeAuthMethod(): Promise<() => Promise<string>> {
    const { http } = this.#primaryNode;
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
    const config = {
      JWTValidationPubKeys: [await exportSPKI(publicKey)],
      BoundIssuer: ISSUED.iss,
      BoundAudiences: [ISSUED.aud],
      ClaimMappings: { name: 'name' },
    };
    const method = { Name: AUTH_METHOD, Type: 'jwt', MaxTokenTTL: LOGIN_LIFE, Config: config };
    const rule = { AuthMethod: AUTH_METHOD, BindType: 'service', BindName: 'web' };
    const put = (path: string, body: object): Promise<unknown> =>
      this.#asker.mustDo({ http, path, method: 'PUT', body });
    await put('/v1/acl/auth-method', method);
    await put('/v1/acl/binding-rule', rule);
    return () =>
      new SignJWT({ ...ISSUED, name: 'jane' })
        .setProtectedHeader({ alg: 'ES256' })
        .setIssuedAt()
        .setExpirationTime('5m')
        .sign(privateKey);
  }

  /** This server has what the primary wrote until now. */
  async #awaitAll({ http }: NodeDescription): Promise<void> {
    const path = '/v1/status/leader';
    const { headers } = await this.#asker.mustDo({ http: this.#primaryNode.http, path });
    const position = String(headers['x-service-position']);
    await this.#asker.mustDo({ http, path: `/v1/acl/policies?min-position=${position}` });
  }

  async #every(everyMs: number, act: () => Promise<void>): Promise<void> {
    while (this.#isOn) {
      await act();
      await pause(everyMs);
    }
  }
}
