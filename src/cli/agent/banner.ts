// What a server tells the person who started it, on standard output.

import { basename, dirname, resolve } from 'node:path';
import { addressText } from '../../../cluster/platform/net.ts';
import type { RunningNode } from '../../node/node.ts';
import type { Settings } from '../../node/settings/settings.ts';

/** A server that was started. */
export interface Started {
  readonly settings: Settings;
  readonly node: Pick<RunningNode, 'addresses' | 'clusterAddress' | 'isBootstrapped'> & {
    readonly info: Pick<RunningNode['info'], 'leader' | 'notReadyReasons'>;
  };
  /** As what the program was started: the second word of the process. */
  readonly program: string;
}

/** Where commands ask that are told nothing else. */
const USUAL_URL = 'http://127.0.0.1:8500';

/** What a person who just started the server wants to know, ending with the next thing to type. */
export function banner(started: Started, version: string): string {
  const { node, settings } = started;
  const reasons = node.info.notReadyReasons();
  const standing = reasons.length === 0 ? 'is ready.' : `is not ready yet: ${reasons.join('; ')}.`;
  const { clusterAddress } = node;
  const cluster = clusterAddress === undefined ? [] : [addressText(clusterAddress)];
  const lines = [
    `Conclave ${version}: node ${settings.node_name} of datacenter ${settings.datacenter} ${standing}`,
    ...node.addresses.map((each) => `  listening   ${each.url}`),
    ...cluster.map((address) => `  cluster     ${address}`),
    `  data        ${resolve(settings.data_dir)}`,
    rightsLine(settings),
  ];
  const next = reasons.length === 0 ? ['', ...nextThing(started)] : [];
  return `${[...lines, ...next, ''].join('\n')}\n`;
}

/** For a server that had to wait for others. */
export function openedText(started: Started): string {
  const { node, settings } = started;
  const leader = node.info.leader();
  const led = leader === undefined ? '' : `, led by the server at ${leader}`;
  const reasons = node.info.notReadyReasons();
  const standing = reasons.length === 0 ? `is ready${led}` : `serves${led}: ${reasons.join('; ')}`;
  const line = `Node ${settings.node_name} of datacenter ${settings.datacenter} ${standing}.`;
  return `${[line, '', ...nextThing(started), ''].join('\n')}\n`;
}

/** What those may who have no right. */
function rightsLine(settings: Settings): string {
  if (!settings['acl.enabled']) return '  acl         off (nobody is asked for a token)';
  const policy = settings['acl.default_policy'];
  const outcome = policy === 'deny' ? 'denied' : 'allowed';
  return `  default     ${policy} (what no rule allows is ${outcome})`;
}

function nextThing({ node, program, settings }: Started): readonly string[] {
  if (!settings['acl.enabled'])
    return ['Next, before anybody relies on it: set acl.enabled to true, and start it again.'];
  const [address] = node.addresses;
  const url = address && dialled(address.url);
  const environment = url === undefined || url === USUAL_URL ? '' : `CONCLAVE_HTTP_ADDR=${url} `;
  const command = `${environment}${commandAs(program)}`;
  const secured = url?.startsWith('https:') ? securedBy(settings) : [];
  return node.isBootstrapped()
    ? [`Next, with a token in CONCLAVE_TOKEN:`, ...secured, `  ${command} acl token list`]
    : [
        'Next, in another terminal (once; keep the SecretID it prints):',
        ...secured,
        `  ${command} acl bootstrap`,
      ];
}

/** What a command needs besides where nothing but HTTPS is spoken. */
function securedBy(settings: Settings): readonly string[] {
  const own = settings['tls.verify_incoming']
    ? ['  with CONCLAVE_CLIENT_CERT and CONCLAVE_CLIENT_KEY, which tls.verify_incoming asks for']
    : [];
  return [
    '  with CONCLAVE_CACERT, the PEM file of the authority behind tls.cert_file, unless this machine trusts it',
    ...own,
  ];
}

/** Whoever listens at all addresses of a machine is found at its own. */
function dialled(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}

/** What to type for the program that was started as `path`: npm finds what is in no folder of the PATH. */
function commandAs(path: string): string {
  const isOnPath = basename(path) === 'conclave' && basename(dirname(path)) !== '.bin';
  return isOnPath ? 'conclave' : 'npx conclave';
}
