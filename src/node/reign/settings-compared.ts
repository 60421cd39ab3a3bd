// Whether the servers of a datacenter are set alike where all should decide alike: with other settings on one of
// them, rights and waits change with who leads, or with who is asked. The leader asks the others now and then, and
// says what differs; nothing is changed by it.

import type { Member } from '../../../cluster/member/group-member.ts';
import type { Clock, Timer } from '../../../cluster/platform/clock.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';
import type { Random } from '../../../cluster/platform/random.ts';
import { hmacSha256 } from '../../../cluster/wire/hmac.ts';
import { formatDuration } from '../../acl/values/duration.ts';
import type { Settings } from '../settings/settings.ts';
import type { SettingName } from '../settings/settings-keys.ts';

/** The method by which every server tells the leader how it is set: never its secrets. */
export const SETTINGS_METHOD = 'service.settings';

/** The same on all servers of a datacenter. Names that another release does not know are not compared. */
const ALIKE = [
  'primary_datacenter',
  'raft.heartbeat_interval',
  'raft.election_timeout',
  'federation.log_max_bytes',
  'federation.log_max_age',
  'federation.default_ack',
  'federation.ack_timeout',
  'federation.witness',
  'federation.primary_lease',
  'acl.enabled',
  'acl.default_policy',
  'acl.token_min_ttl',
  'acl.token_max_ttl',
  'namespaces.enabled',
  'audit.required',
] as const satisfies readonly SettingName[];

/** Compared by a keyed hash, under a key that is used once. */
const SECRETS_ALIKE = ['acl.tokens.initial_management'] as const satisfies readonly SettingName[];

/** A reign is this old before the first look: servers are restarted one after the other with other settings. */
const LOOK_EVERY_MS = 300_000;
const ASK_MS = 5_000;
const KEY_BYTES = 32;

/** By name. */
type Told = Readonly<Record<string, string>>;

export interface SettingsComparedOptions {
  readonly settings: Settings;
  readonly member: Pick<Member<unknown>, 'members' | 'call'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export class SettingsCompared {
  readonly #options: SettingsComparedOptions;
  #timer: Timer | undefined;
  #look: Promise<void> | undefined;
  #isOn = false;
  /** What was told, while it is so. */
  #told: ReadonlySet<string> = new Set();

  constructor(options: SettingsComparedOptions) {
    this.#options = options;
  }

  /** This server leads now. */
  start(): void {
    this.#isOn = true;
    this.#awaitLook();
  }

  stop(): void {
    this.#isOn = false;
    this.#timer?.cancel();
  }

  /** Stops, and waits for the look under way. */
  async close(): Promise<void> {
    this.stop();
    await this.#look;
  }

  /** The answer to another server that leads, whose question is a key. */
  answer(key: Uint8Array): Uint8Array {
    return new TextEncoder().encode(JSON.stringify(toldOf(this.#options.settings, key)));
  }

  #awaitLook(): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.after(LOOK_EVERY_MS, () => {
      this.#look = this.#compareAll().finally(() => {
        if (this.#isOn) this.#awaitLook();
      });
    });
  }

  /** Never rejects. */
  async #compareAll(): Promise<void> {
    const { settings, member, random } = this.#options;
    const key = random.bytes(KEY_BYTES);
    const own = toldOf(settings, key);
    const others = member.members().filter(({ isSelf, isAlive }) => !isSelf && isAlive);
    const all = await Promise.all(
      others.map(async ({ node, name }) => {
        const theirs = await this.#ask(node, key);
        const differing = Object.keys(own).filter(
          (each) => theirs[each] !== undefined && theirs[each] !== own[each],
        );
        return differing.map((setting) => ({ setting, server: name, theirs: theirs[setting] }));
      }),
    );
    this.#tell(all.flat(), own);
  }

  #tell(
    all: readonly { setting: string; server: string; theirs: string | undefined }[],
    own: Told,
  ): void {
    const found = new Set<string>();
    for (const { setting, server, theirs } of all) {
      const what = `${server} ${setting}`;
      found.add(what);
      if (this.#told.has(what)) continue;
      const isSecret = SECRETS_ALIKE.some((each) => each === setting);
      const values = isSecret ? {} : { here: own[setting], there: theirs };
      const fields = { setting, server, ...values };
      this.#options.logger.error(fields, 'servers of this datacenter are set differently');
    }
    this.#told = found;
  }

  /** Nothing of who does not answer, or is of a release that does not know the question. */
  async #ask(node: number, payload: Uint8Array): Promise<Told> {
    const request = { method: SETTINGS_METHOD, payload, deadlineMs: ASK_MS, hops: 0 };
    try {
      const text = new TextDecoder().decode(await this.#options.member.call(node, request));
      return (JSON.parse(text) ?? {}) as Told;
    } catch {
      return {};
    }
  }
}

function toldOf(settings: Settings, key: Uint8Array): Told {
  const told = ALIKE.map((name) => [name, textOf(settings[name])]);
  const hashed = SECRETS_ALIKE.map((name) => {
    const hash = hmacSha256(key, new TextEncoder().encode(settings[name]));
    return [name, Buffer.from(hash).toString('hex')];
  });
  return Object.fromEntries([...told, ...hashed]) as Told;
}

function textOf(value: string | number | bigint | boolean): string {
  return typeof value === 'bigint' ? formatDuration(value) : String(value);
}
