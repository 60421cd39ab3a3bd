// Clients of one server who log in with a signed identity, use the token, and either give it back or let its
// time pass; and one who waits for news of the list of tokens. All of it needs the own datacenter alone.

import { setTimeout as pause } from 'node:timers/promises';
import type { NodeDescription } from '../../cluster/cluster-files.ts';
import type { Asker } from './asker.ts';

export interface LoginClientsOptions {
  readonly asker: Asker;
  readonly node: NodeDescription;
  readonly authMethod: string;
  /** A fresh one for each login. */
  readonly bearer: () => Promise<string>;
  /** Gives numbers from 0 up to 1. */
  readonly random: () => number;
  readonly restMs: number;
}

interface Login {
  readonly accessorId: string;
  readonly secret: string;
  readonly expiresAtMs: number;
  isGivenBack: boolean;
}

/** The clocks of this process and of the servers are one; this is for rounding. */
const CLOCK_MS = 1_500;
const WAIT_S = 20;
const WAIT_ANSWER_MAX_MS = 60_000;
const GIVEN_BACK_SHARE = 0.3;

export class LoginClients {
  readonly #options: LoginClientsOptions;
  /** Acknowledged, and not known to be over; the oldest first. */
  readonly #living: Login[] = [];
  #isOn = true;
  #lastInMs = performance.now();
  loginCount = 0;
  givenBackCount = 0;
  expiredCount = 0;
  /** Refused with a word, or not answered. */
  failedCount = 0;
  /** Lists that came because something had changed, and those that came because the time was over. */
  wakeCount = 0;
  idleCount = 0;
  /** From one login that was let in to the next one. */
  longestGapMs = 0;

  constructor(options: LoginClientsOptions) {
    this.#options = options;
  }

  /** Resolves when it has been stopped. */
  async run(): Promise<void> {
    this.#lastInMs = performance.now();
    await Promise.all([this.#goInAndOut(), this.#waitForNews()]);
  }

  stop(): void {
    this.#isOn = false;
  }

  async #goInAndOut(): Promise<void> {
    while (this.#isOn) {
      const login = await this.#logIn();
      if (login !== undefined) {
        await this.#mustWork(login);
        if (this.#options.random() < GIVEN_BACK_SHARE) await this.#giveBack(login);
      }
      await this.#lookAtExpired();
      await pause(this.#options.restMs);
    }
  }

  async #logIn(): Promise<Login | undefined> {
    const { asker, node, authMethod, bearer } = this.#options;
    const body = { AuthMethod: authMethod, BearerToken: await bearer() };
    const { http } = node;
    const answer = await asker.ask({ http, path: '/v1/acl/login', method: 'POST', body });
    if (answer?.status !== 200) {
      this.failedCount += 1;
      return undefined;
    }
    const nowMs = performance.now();
    this.longestGapMs = Math.max(this.longestGapMs, nowMs - this.#lastInMs);
    this.#lastInMs = nowMs;
    this.loginCount += 1;
    const made = JSON.parse(answer.text) as Record<
      'AccessorID' | 'SecretID' | 'ExpirationTime',
      string
    >;
    const login = {
      accessorId: made.AccessorID,
      secret: made.SecretID,
      expiresAtMs: Date.parse(made.ExpirationTime),
      isGivenBack: false,
    };
    this.#living.push(login);
    return login;
  }

  async #mustWork({ accessorId, secret, expiresAtMs }: Login): Promise<void> {
    const { asker, node } = this.#options;
    const answer = await asker.ask({ http: node.http, path: '/v1/acl/token/self', secret });
    if (answer?.status === 403 && Date.now() < expiresAtMs)
      asker.fault(`${node.name}: token ${accessorId} of a login is refused: ${answer.text}`);
  }

  async #giveBack(login: Login): Promise<void> {
    const { asker, node } = this.#options;
    const { secret } = login;
    login.isGivenBack = true;
    const { http } = node;
    const answer = await asker.ask({ http, path: '/v1/acl/logout', method: 'POST', secret });
    if (answer?.status !== 200) return;
    this.givenBackCount += 1;
    await this.#mustBeRefused(login, 'was given back');
  }

  /** Each one once. */
  async #lookAtExpired(): Promise<void> {
    for (;;) {
      const [oldest] = this.#living;
      if (oldest === undefined || Date.now() < oldest.expiresAtMs + CLOCK_MS) return;
      this.#living.shift();
      if (oldest.isGivenBack) continue;
      await this.#mustBeRefused(oldest, 'has expired');
      this.expiredCount += 1;
    }
  }

  async #mustBeRefused({ accessorId, secret }: Login, why: string): Promise<void> {
    const { asker, node } = this.#options;
    const answer = await asker.ask({ http: node.http, path: '/v1/acl/token/self', secret });
    if (answer?.status === 200)
      asker.fault(`${node.name}: token ${accessorId} of a login works though it ${why}`);
  }

  async #waitForNews(): Promise<void> {
    let index = 0;
    while (this.#isOn) {
      const known = this.#living.filter(({ isGivenBack }) => !isGivenBack);
      const { asker, node } = this.#options;
      const answer = await asker.ask({
        http: node.http,
        path: `/v1/acl/tokens?index=${index}&wait=${WAIT_S}s`,
        timeoutMs: WAIT_ANSWER_MAX_MS,
      });
      if (answer?.status !== 200) {
        this.failedCount += 1;
        await pause(this.#options.restMs);
        continue;
      }
      const next = Number(answer.headers['x-service-index']);
      if (next < index) asker.fault(`${node.name}: the index went from ${index} to ${next}`);
      if (next > index) this.wakeCount += 1;
      else this.idleCount += 1;
      index = next;
      this.#mustList(known, answer.text);
    }
  }

  /** Whoever was let in before the list was asked for is in it. */
  #mustList(known: readonly Login[], text: string): void {
    const { asker, node } = this.#options;
    const listed = new Set(
      (JSON.parse(text) as { AccessorID: string }[]).map(({ AccessorID }) => AccessorID),
    );
    for (const { accessorId, isGivenBack, expiresAtMs } of known) {
      const isSure = !isGivenBack && Date.now() < expiresAtMs;
      if (isSure && !listed.has(accessorId))
        asker.fault(`${node.name}: token ${accessorId} of a login is not in the list`);
    }
  }
}
