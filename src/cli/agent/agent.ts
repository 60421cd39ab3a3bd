// `conclave agent`: runs one server until it is told to stop. Settings come from flags, files and the
// environment; what a person needs to know is printed on standard output, log lines go to standard
// error as JSON.

import { extname } from 'node:path';
import { Command, Option } from 'commander';
import { messageOf } from '../../../cluster/base/message-of.ts';
import type { NodeOptions, RunningNode } from '../../node/node.ts';
import {
  isManagementGuessable,
  NamedFileError,
  readSettings,
  type Settings,
  SettingsError,
  shownSettings,
} from '../../node/settings/settings.ts';
import {
  flagOf,
  SETTING_KEYS,
  type SettingKey,
  takesText,
  variableOf,
} from '../../node/settings/settings-keys.ts';
import { strayVariables } from '../../node/settings/stray-variables.ts';
import { readTextFile, shortHostName } from '../../platform-node/disk/files.ts';
import { TableChecks } from '../../platform-node/disk/table-checks.ts';
import {
  type ServiceNews,
  tellServiceManager,
} from '../../platform-node/process/service-manager.ts';
import { nextStopSignal } from '../../platform-node/process/stop-signal.ts';
import { STOP_MAX_MS, stoppedInTime } from '../../platform-node/process/stopped-in-time.ts';
import { CommandFailed } from '../failed.ts';
import { COMMAND_VARIABLES } from '../flags/variables.ts';
import { UsageError } from '../usage-error.ts';
import { banner, openedText } from './banner.ts';
import { parseJsonSettings } from './settings-text.ts';

/** The command, with a flag for every setting. `version` is the program's. */
export function agentCommand(version: string): Command {
  const command = new Command('agent')
    .description('run a server')
    .option(
      '--config-file <path>',
      'JSON or YAML file with settings; may be given several times, later ones win',
      collected,
      [] as readonly string[],
    );
  for (const key of SETTING_KEYS) command.addOption(optionOf(key));
  return command.action(async (options: Readonly<Record<string, unknown>>) => {
    await runAgent(await settingsOf(command, options), version);
  });
}

function optionOf(key: SettingKey): Option {
  const { kind } = key.type;
  const value = kind === 'flag' ? '[true|false]' : `<${kind}>`;
  const takes = ['choice', 'count'].includes(kind) ? [takesText(key.type)] : [];
  const shown = String(key.default);
  const fallback = shown === '' ? [] : [`default: ${shown}`];
  const known = [...takes, ...fallback].join('; ');
  const says = `${key.says}${known === '' ? '' : ` (${known})`} [${variableOf(key.name)}]`;
  const option = new Option(`--${flagOf(key.name)} ${value}`, says);
  if (kind === 'list') return option.argParser(collected);
  return kind === 'flag' ? option.preset('true') : option;
}

/** Of a flag that may be given several times. */
function collected(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text];
}

async function settingsOf(
  command: Command,
  options: Readonly<Record<string, unknown>>,
): Promise<Settings> {
  const paths = options.configFile as readonly string[];
  const flags: Record<string, string> = {};
  for (const key of SETTING_KEYS) {
    const option = command.options.find(({ long }) => long === `--${flagOf(key.name)}`);
    const value = option === undefined ? undefined : options[option.attributeName()];
    // The texts of a list end up with commas between them.
    if (value !== undefined) flags[flagOf(key.name)] = String(value);
  }
  try {
    const settings = readSettings({
      flags,
      files: await Promise.all(paths.map(readSettingsFile)),
      environment: process.env,
    });
    return settings.node_name === '' ? { ...settings, node_name: shortHostName() } : settings;
  } catch (error) {
    if (error instanceof SettingsError) throw new UsageError(error.message);
    throw error;
  }
}

async function readSettingsFile(
  path: string,
): Promise<{ readonly path: string; readonly value: unknown }> {
  const text = readConfigText(path);
  try {
    // YAML reads JSON too, but says less well what is wrong with it.
    if (extname(path) === '.json') return { path, value: parseJsonSettings(text) };
    const { parseYamlSettings } = await import('./yaml-settings.ts');
    return { path, value: parseYamlSettings(text) };
  } catch (error) {
    throw new UsageError(`${path} cannot be read as settings: ${messageOf(error)}`);
  }
}

function readConfigText(path: string): string {
  try {
    return readTextFile(path);
  } catch (error) {
    throw new UsageError(`cannot read the configuration file ${path}: ${messageOf(error)}`);
  }
}

/** Opens the node, tells where it is, and closes it on the first signal. Resolves when it has closed. */
async function runAgent(settings: Settings, version: string): Promise<void> {
  const stopped = nextStopSignal(hasTerminal());
  const opening = openOrExplain({ settings, version, stopped });
  if (!hasTerminal()) readAnewOnSignal(opening);
  let sayThatItIsLate = sayWithoutLog;
  const onLate = (): void => sayThatItIsLate();
  // A disk may hang already; what opening comes to is told below.
  void stopped.then(() => stoppedInTime(() => opening, onLate)).catch(() => undefined);
  const node = await opening;
  sayThatItIsLate = () => {
    node.logger.error({ afterMs: STOP_MAX_MS }, 'it does not stop: the process kills itself');
  };
  node.logger.info({ urls: node.addresses.map(({ url }) => url) }, 'listening');
  if (!settings['acl.enabled']) {
    node.logger.warn(
      {},
      'acl.enabled is false: whoever asks may save the state with every secret in it, or restore another',
    );
  } else if (settings['acl.default_policy'] === 'allow') {
    node.logger.warn({}, 'acl.default_policy is allow: whatever no rule speaks of is allowed');
  }
  if (isManagementGuessable(settings)) {
    node.logger.warn({}, 'acl.tokens.initial_management is short: whoever tries finds it');
  }
  const started = { settings, node, program: process.argv[1] ?? '' };
  process.stdout.write(banner(started, version));
  const isReady = node.info.notReadyReasons().length === 0;
  // What it may wait for are other servers, for which no service manager should end it.
  await tell(node, { state: 'ready', status: statusOf(node) });
  if (!isReady) {
    void node.opened.then(() => {
      process.stdout.write(openedText(started));
      void tell(node, { status: statusOf(node) });
    });
  }
  const signal = await stopped;
  node.logger.info({ signal }, 'stopping');
  await stoppedInTime(async () => {
    const told = tell(node, { state: 'stopping', status: 'stopping' });
    await node.close();
    await told;
  }, onLate);
  node.logger.info({}, 'stopped');
}

/** A signal that comes while it starts counts when it has started: what it is about may have been read before. */
function readAnewOnSignal(opening: Promise<RunningNode>): void {
  process.on('SIGHUP', () => {
    void opening.then((node) => node.readFilesAnew()).catch(() => undefined);
  });
}

/** Where there is no log yet. */
function sayWithoutLog(): void {
  process.stderr.write('Error: it does not stop: the process kills itself\n');
}

/** A service manager that cannot be told is a matter for the log: the server serves all the same. */
async function tell({ logger }: RunningNode, news: ServiceNews): Promise<void> {
  try {
    await tellServiceManager(news, process.env);
  } catch (cause) {
    logger.warn({ cause }, 'the service manager could not be told');
  }
}

function hasTerminal(): boolean {
  return process.stdin.isTTY || process.stdout.isTTY;
}

async function openOrExplain({
  settings,
  ...options
}: Omit<NodeOptions, 'platform'>): Promise<RunningNode> {
  try {
    // In threads, while this one loads the rest.
    const tableChecks = new TableChecks();
    tableChecks.begin(settings.data_dir, ['log', 'state']);
    // Loaded here, because no other command needs a server's worth of code.
    const { openSystemPlatform } = await import('../../platform-node/system-platform.ts');
    const { openNode } = await import('../../node/node.ts');
    const platform = openSystemPlatform(settings, tableChecks);
    const { version } = options;
    platform.logger.info({ version, settings: shownSettings(settings) }, 'starting');
    for (const stray of strayVariables(process.env, COMMAND_VARIABLES)) {
      platform.logger.warn({ ...stray }, 'an environment variable is no setting: it is ignored');
    }
    return await openNode({ ...options, settings, platform });
  } catch (error) {
    const isWrongSetting = error instanceof SettingsError && !(error instanceof NamedFileError);
    if (isWrongSetting) throw new UsageError(error.message);
    const next = nextStepOf(error, settings);
    throw new CommandFailed(`the server did not start: ${messageOf(error)}${next}`);
  }
}

function nextStepOf(error: unknown, settings: Settings): string {
  const { code, port } = systemErrorIn(error);
  if (code === 'EADDRINUSE' && port === settings['ports.cluster'])
    return (
      '\nNext: another server uses ports.cluster. Choose another port with --ports-cluster; ' +
      '-1 turns it off for a server that stays alone.'
    );
  if (code === 'EADDRINUSE') {
    const flag = port === settings['ports.https'] ? '--ports-https' : '--ports-http';
    return `\nNext: choose another port with ${flag}, or stop what listens there.`;
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return '\nNext: bind_addr and client_addr must be addresses of this machine (--bind-addr, --client-addr).';
  if (code === 'EACCES')
    return '\nNext: choose a folder and a port that this user may use (--data-dir, --ports-http).';
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return '\nNext: make room on the disk of data_dir (--data-dir), and start again.';
  if (code === 'EEXIST' || code === 'ENOTDIR')
    return '\nNext: choose another folder with --data-dir; what stands there is no folder.';
  return '';
}

/** What the system said, however it was put into words on the way. */
function systemErrorIn(error: unknown): { readonly code?: unknown; readonly port?: unknown } {
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown };
  return code === undefined && cause instanceof Error ? systemErrorIn(cause) : (error as object);
}

function statusOf({ info }: RunningNode): string {
  return info.notReadyReasons().join('; ') || 'ready';
}
