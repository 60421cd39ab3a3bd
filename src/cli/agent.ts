// `conclave agent`: runs one server until it is told to stop. Settings come from flags, files and the
// environment; what a person needs to know is printed on standard output, log lines go to standard
// error as JSON.

import { extname, resolve } from 'node:path';
import { Command, Option } from 'commander';
import type { RunningNode } from '../node/node.ts';
import { readSettings, type Settings, SettingsError, shownSettings } from '../node/settings.ts';
import { flagOf, SETTING_KEYS, type SettingKey, variableOf } from '../node/settings-keys.ts';
import { readTextFile, shortHostName } from '../platform-node/files.ts';
import { CommandFailed } from './failed.ts';
import { parseJsonSettings, parseYamlSettings } from './settings-text.ts';
import { UsageError } from './usage-error.ts';

/** The command, with a flag for every setting. `version` is the program's. */
export function agentCommand(version: string): Command {
  const command = new Command('agent')
    .description('run a server')
    .option(
      '--config-file <path>',
      'JSON or YAML file with settings; may be given several times, later ones win',
      (path: string, before: readonly string[]) => [...before, path],
      [] as readonly string[],
    );
  for (const key of SETTING_KEYS) command.addOption(optionOf(key));
  return command.action(async (options: Readonly<Record<string, unknown>>) => {
    await runAgent(settingsOf(command, options), version);
  });
}

function optionOf(key: SettingKey): Option {
  const value = key.type.kind === 'flag' ? '[true|false]' : `<${key.type.kind}>`;
  const fallback = key.default === '' ? '' : ` (default: ${key.default})`;
  const says = `${key.says}${fallback} [${variableOf(key.name)}]`;
  const option = new Option(`--${flagOf(key.name)} ${value}`, says);
  return key.type.kind === 'flag' ? option.preset('true') : option;
}

function settingsOf(command: Command, options: Readonly<Record<string, unknown>>): Settings {
  const paths = options.configFile as readonly string[];
  const flags: Record<string, string> = {};
  for (const key of SETTING_KEYS) {
    const option = command.options.find(({ long }) => long === `--${flagOf(key.name)}`);
    const value = option === undefined ? undefined : options[option.attributeName()];
    if (value !== undefined) flags[flagOf(key.name)] = String(value);
  }
  try {
    const settings = readSettings({
      flags,
      files: paths.map(readSettingsFile),
      environment: process.env,
    });
    return settings.node_name === '' ? { ...settings, node_name: shortHostName() } : settings;
  } catch (error) {
    if (error instanceof SettingsError) throw new UsageError(error.message);
    throw error;
  }
}

function readSettingsFile(path: string): { readonly path: string; readonly value: unknown } {
  const text = readConfigText(path);
  try {
    // YAML reads JSON too, but says less well what is wrong with it.
    const parse = extname(path) === '.json' ? parseJsonSettings : parseYamlSettings;
    return { path, value: parse(text) };
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
  const stopped = nextStopSignal();
  const node = await openOrExplain(settings, version);
  node.logger.info({ urls: node.addresses.map(({ url }) => url) }, 'listening');
  if (settings['acl.default_policy'] === 'allow') {
    node.logger.warn({}, 'acl.default_policy is allow: whatever no rule speaks of is allowed');
  }
  process.stdout.write(banner(settings, version, node));
  const signal = await stopped;
  node.logger.info({ signal }, 'stopping');
  await node.close();
  node.logger.info({}, 'stopped');
}

/** SIGINT or SIGTERM, whichever comes first. A second one ends the process at once. */
function nextStopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolveSignal) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => resolveSignal(signal));
    }
  });
}

async function openOrExplain(settings: Settings, version: string): Promise<RunningNode> {
  try {
    // Loaded here, because no other command needs a server's worth of code.
    const { openSystemPlatform } = await import('../platform-node/system-platform.ts');
    const { openNode } = await import('../node/node.ts');
    const platform = openSystemPlatform(settings);
    platform.logger.info({ version, settings: shownSettings(settings) }, 'starting');
    return await openNode({ settings, platform, version });
  } catch (error) {
    throw new CommandFailed(`the server did not start: ${messageOf(error)}${nextStepOf(error)}`);
  }
}

function nextStepOf(error: unknown): string {
  const code = (error as { readonly code?: unknown }).code;
  if (code === 'EADDRINUSE')
    return '\nNext: choose another port with --ports-http, or stop what listens there.';
  if (code === 'EACCES')
    return '\nNext: choose a folder and a port that this user may use (--data-dir, --ports-http).';
  if (code === 'EEXIST' || code === 'ENOTDIR')
    return '\nNext: choose another folder with --data-dir; what stands there is no folder.';
  return '';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What a person who just started the server wants to know, ending with the next thing to type. */
function banner(settings: Settings, version: string, node: RunningNode): string {
  const [address] = node.addresses;
  const lines = [
    `Conclave ${version}: node ${settings.node_name} of datacenter ${settings.datacenter} is ready.`,
    ...node.addresses.map((each) => `  listening   ${each.url}`),
    `  data        ${resolve(settings.data_dir)}`,
    `  default     ${settings['acl.default_policy']} (what no rule allows is ${settings['acl.default_policy'] === 'deny' ? 'denied' : 'allowed'})`,
  ];
  const atOtherAddress = address === undefined || address.url === 'http://127.0.0.1:8500';
  const environment = atOtherAddress ? '' : `CONCLAVE_HTTP_ADDR=${address.url} `;
  const next = node.isBootstrapped()
    ? [`Next, with a token in CONCLAVE_TOKEN:`, `  ${environment}npx conclave acl token list`]
    : [
        'Next, in another terminal (once; keep the SecretID it prints):',
        `  ${environment}npx conclave acl bootstrap`,
      ];
  return `${[...lines, '', ...next, ''].join('\n')}\n`;
}
