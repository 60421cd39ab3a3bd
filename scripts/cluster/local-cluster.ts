// A cluster of real servers on this machine: their processes, and the proxies that are their only way to
// each other. Whoever opens one owns it, and closes it. It keeps the files of its folder true.

import { closeSync, fstatSync, openSync, readSync, rmSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Closer } from '../../cluster/base/closer.ts';
import { askNode } from './ask-node.ts';
import { awaitVote } from './await-vote.ts';
import { type ClusterDescription, ClusterFiles } from './cluster-files.ts';
import {
  asJoiner,
  type ClusterPlan,
  datacentersOf,
  dataFolderOf,
  environmentOf,
  flagsOf,
  HOST,
  logFileOf,
  type NodePlan,
  nodeFolder,
  nodeNamed,
  nodesNamed,
  PORTS_OF_A_NODE,
  withJoiner,
} from './cluster-plan.ts';
import { ClusterRefusal } from './cluster-refusal.ts';
import { freePorts } from './free-ports.ts';
import { LineProxy } from './line-proxy.ts';
import { type LineFault, Lines } from './lines.ts';
import { movePrimary } from './move-primary.ts';
import { type ProcessState, ServerProcess } from './server-process.ts';

/** Told to whoever waits, a line each. */
export type Tell = (says: string) => void;

export interface Between {
  /** Nodes or datacenters. */
  readonly from: string;
  readonly to: string;
  /** Only what `from` sends to `to`. */
  readonly isOneWay: boolean;
}

export interface RestartOptions {
  /** Its data is removed while it is down: it comes back with an empty disk, as another member. */
  readonly isDiskReplaced: boolean;
}

/** From the start of a server until it is ready: elections of a busy machine take their time. */
const READY_MAX_MS = 120_000;
const ASK_MAX_MS = 2_000;
const REMOVE_MAX_MS = 30_000;
const LOOK_MS = 100;
/** Of a log, when it is shown because something went wrong. */
const LAST_LINES = 12;
const LAST_BYTES = 16 * 1024;
const QUIET: Tell = () => undefined;
const NEVER_STARTED: ProcessState = { kind: 'ended', says: 'not started' };

export class LocalCluster {
  readonly files: ClusterFiles;
  readonly #lines = new Lines();
  readonly #proxies = new Map<string, LineProxy>();
  readonly #processes = new Map<string, ServerProcess>();
  readonly #closer = new Closer();
  #plan: ClusterPlan;
  #isClosing = false;

  private constructor(files: ClusterFiles, plan: ClusterPlan) {
    this.files = files;
    this.#plan = plan;
  }

  /** Opens the proxies; starts nothing. Servers that an earlier owner left running are taken over. */
  static async open(folder: string, plan: ClusterPlan): Promise<LocalCluster> {
    const files = new ClusterFiles(folder);
    files.ensureFolder();
    const cluster = new LocalCluster(files, plan);
    cluster.#closer.defer(() => cluster.#stopAll());
    try {
      for (const node of plan.nodes) await cluster.#openProxy(node);
    } catch (error) {
      await cluster.#closeProxies();
      throw error;
    }
    cluster.#slowWan(plan.nodes);
    cluster.#takeOver();
    files.keepPlan(plan);
    cluster.#describe();
    return cluster;
  }

  get plan(): ClusterPlan {
    return this.#plan;
  }

  describe(): ClusterDescription {
    return this.files.description()!;
  }

  lineFaults(): readonly LineFault[] {
    return this.#lines.faults();
  }

  stateOf(name: string): ProcessState {
    nodeNamed(this.#plan, name);
    return this.#processes.get(name)?.state() ?? NEVER_STARTED;
  }

  /** Starts what does not run, and waits until all are ready. Rejects with the log of one that is not. */
  async startAll(tell: Tell = QUIET): Promise<void> {
    const names = this.#plan.nodes.map(({ name }) => name);
    for (const name of names) this.#start(name);
    let readyCount = 0;
    await Promise.all(
      names.map(async (name) => {
        await this.#ready(name);
        readyCount += 1;
        tell(`${name} is ready (${readyCount} of ${names.length})`);
      }),
    );
    // Whoever comes back on an empty disk must join what there is.
    for (const name of names) this.#keep(asJoiner(this.#plan, name));
  }

  /** Ends servers at once. What the system holds for their disks stays: it is no power cut. */
  async kill(name: string): Promise<void> {
    await this.#forEach(name, (each) => this.#running(each).kill());
  }

  /** Holds servers still: they answer nothing, and lose no time. */
  async pause(name: string): Promise<void> {
    await this.#forEach(name, async (each) => this.#running(each).pause());
  }

  async resume(name: string): Promise<void> {
    await this.#forEach(name, async (each) => this.#running(each).resume());
  }

  /**
   * Starts the servers that do not run, all at once: one of them alone may have nobody to be ready with. Then stops
   * those that ran and starts them again, one after the other. With new disks those that do not run come first, and
   * each has its vote before the next one goes: otherwise a majority of those that vote could be gone.
   */
  async restart(name: string, options: RestartOptions, tell: Tell = QUIET): Promise<void> {
    const all = nodesNamed(this.#plan, name);
    const ended = all.filter((each) => this.stateOf(each).kind === 'ended');
    const ran = all.filter((each) => !ended.includes(each));
    if (options.isDiskReplaced) {
      for (const each of [...ended, ...ran]) await this.#replaceDisk(each, tell);
      return;
    }
    for (const each of ended) this.#start(each);
    for (const each of ended) {
      await this.#ready(each);
      tell(`${each} is ready again`);
    }
    for (const each of ran) {
      await this.#processes.get(each)?.stop();
      this.#start(each);
      await this.#ready(each);
      tell(`${each} is ready again`);
    }
  }

  async #replaceDisk(name: string, tell: Tell): Promise<void> {
    this.#requireQuorumWithout(nodeNamed(this.#plan, name));
    await this.#processes.get(name)?.stop();
    rmSync(dataFolderOf(this.files.folder, name), { recursive: true, force: true });
    tell(`${name} lost its disk`);
    this.#start(name);
    await this.#ready(name);
    tell(`${name} is ready again`);
    await awaitVote(this.describe(), name);
    tell(`${name} has a vote again`);
  }

  /** Whoever comes back with an empty disk is let in by the others; one that is alone founds its datacenter anew. */
  #requireQuorumWithout({ name, datacenter }: NodePlan): void {
    const group = nodesNamed(this.#plan, datacenter);
    const quorum = Math.floor(group.length / 2) + 1;
    const running = group.filter((each) => each !== name && this.stateOf(each).kind === 'running');
    if (group.length === 1 || running.length >= quorum) return;
    throw new ClusterRefusal(
      `${name} keeps its disk: it takes ${quorum} other servers of ${datacenter} to let it in again, and ` +
        `${running.length} run${running.length === 1 ? 's' : ''}`,
    );
  }

  /** Starts servers that were killed, without waiting for them. */
  start(name: string): void {
    for (const each of nodesNamed(this.#plan, name)) this.#start(each);
  }

  /** Resolves when all these are ready. */
  async ready(name: string): Promise<void> {
    await Promise.all(nodesNamed(this.#plan, name).map((each) => this.#ready(each)));
  }

  partition(between: Between): void {
    this.#changeLines(between, (from, to) => this.#lines.change(from, to, { isCut: true }));
  }

  /** So long everything takes from one to the other; 0 is as it was. */
  delay(between: Between, delayMs: number): void {
    this.#changeLines(between, (from, to) => this.#lines.change(from, to, { delayMs }));
  }

  /** Mends the cuts between two, or all. Delays stay. */
  heal(between?: Between): void {
    if (between === undefined) this.#lines.healAll();
    else this.#changeLines(between, (from, to) => this.#lines.change(from, to, { isCut: false }));
    this.#look();
  }

  /** One more server of a datacenter. Resolves with its name when it is ready. */
  async add(datacenter: string, tell: Tell = QUIET): Promise<string> {
    const taken = this.#plan.nodes.flatMap((node) => [
      ...[node.httpPort, node.clusterPort, node.linePort],
    ]);
    const { plan, joiner } = withJoiner(
      this.#plan,
      datacenter,
      await freePorts(PORTS_OF_A_NODE, taken),
    );
    await this.#openProxy(joiner);
    this.#keep(plan);
    this.#slowWan([joiner]);
    this.#start(joiner.name);
    tell(`${joiner.name} started; it joins ${datacenter}`);
    await this.#ready(joiner.name);
    tell(`${joiner.name} is ready`);
    return joiner.name;
  }

  /**
   * Takes a server out of its group, ends it, and removes its data. In this order: a group that is to let it go may
   * have no majority without it.
   */
  async remove(name: string, tell: Tell = QUIET): Promise<void> {
    const node = nodeNamed(this.#plan, name);
    const rest = this.#plan.nodes.filter(
      (other) => other.datacenter === node.datacenter && other !== node,
    );
    if (rest.length === 0)
      throw new ClusterRefusal(`${name} is the last server of ${node.datacenter}; it stays`);
    await this.#removePeer(node, rest);
    tell(`${name} is no longer in the group of ${node.datacenter}`);
    await this.#processes.get(name)?.stop();
    await this.#proxies.get(name)?.close();
    this.#proxies.delete(name);
    this.#processes.delete(name);
    this.#lines.forget(name);
    rmSync(nodeFolder(this.files.folder, name), { recursive: true, force: true });
    this.#keep({ ...this.#plan, nodes: this.#plan.nodes.filter((other) => other !== node) });
    tell(`${name} is gone, and its data`);
  }

  /** Hands the primary over to another datacenter. Rejects with why it stays where it is. */
  async promote(datacenter: string): Promise<void> {
    if (!datacentersOf(this.#plan).includes(datacenter))
      throw new ClusterRefusal(
        `there is no datacenter ${JSON.stringify(datacenter)} here; datacenters: ${datacentersOf(this.#plan).join(', ')}`,
      );
    await movePrimary(this.describe(), datacenter);
    this.#keep({ ...this.#plan, primaryDatacenter: datacenter });
  }

  /** The last lines that a server wrote, to show why it does not do as it should. */
  lastWords(name: string): string {
    return lastLines(logFileOf(this.files.folder, name));
  }

  /** For whoever starts servers that shall not outlive this process: those that run at its end are killed. */
  endWithProcess(): void {
    // The signal is sent before anything is waited for.
    process.prependOnceListener('exit', () => {
      for (const server of this.#processes.values()) void server.kill();
    });
  }

  /** Ends everything. The data stays. */
  close(): Promise<void> {
    return this.#closer.close();
  }

  async #stopAll(): Promise<void> {
    this.#isClosing = true;
    // Lines first: a leader that cannot hand over waits for it in vain.
    this.#lines.healAll();
    this.#look();
    await Promise.all([...this.#processes.values()].map((process) => process.stop()));
    await this.#closeProxies();
    this.#describe();
  }

  async #closeProxies(): Promise<void> {
    await Promise.all([...this.#proxies.values()].map((proxy) => proxy.close()));
    this.#proxies.clear();
  }

  async #openProxy(node: NodePlan): Promise<void> {
    const { name, linePort, clusterPort } = node;
    const options = { node: name, listenPort: linePort, nodePort: clusterPort, lines: this.#lines };
    this.#proxies.set(name, await LineProxy.open(options));
  }

  /** The lines of these to other datacenters, and back. */
  #slowWan(nodes: readonly NodePlan[]): void {
    const { wanDelayMs: delayMs } = this.#plan;
    for (const { name, datacenter } of delayMs === 0 ? [] : nodes) {
      const far = this.#plan.nodes.filter((other) => other.datacenter !== datacenter);
      const names = far.map((other) => other.name);
      this.#lines.change([name], names, { delayMs });
      this.#lines.change(names, [name], { delayMs });
    }
  }

  /** Servers that an earlier owner left running. */
  #takeOver(): void {
    for (const { name, pid } of this.files.description()?.nodes ?? []) {
      if (pid === null || !this.#proxies.has(name)) continue;
      const found = ServerProcess.takeOver(pid, dataFolderOf(this.files.folder, name));
      // It may have been paused by whoever is gone.
      found?.resume();
      if (found !== undefined) this.#processes.set(name, found);
    }
  }

  #start(name: string): void {
    if (this.#isClosing) throw new ClusterRefusal('the cluster is being ended');
    if (this.stateOf(name).kind !== 'ended') return;
    const node = nodeNamed(this.#plan, name);
    const { folder } = this.files;
    const start = {
      flags: flagsOf(this.#plan, node, folder),
      environment: environmentOf(this.#plan),
      logFile: logFileOf(folder, name),
    };
    this.#processes.set(name, ServerProcess.start(start, dataFolderOf(folder, name)));
    this.#describe();
  }

  async #ready(name: string): Promise<void> {
    const { httpPort } = nodeNamed(this.#plan, name);
    const deadlineMs = performance.now() + READY_MAX_MS;
    for (;;) {
      const state = this.stateOf(name);
      if (state.kind === 'ended') throw this.#notReady(name, state.says);
      const says = await whyNotReady(`${HOST}:${httpPort}`);
      if (says === undefined) return;
      if (performance.now() > deadlineMs) throw this.#notReady(name, says);
      await pause(LOOK_MS);
    }
  }

  #notReady(name: string, says: string): ClusterRefusal {
    const log = logFileOf(this.files.folder, name);
    return new ClusterRefusal(`${name}: ${says}\n${this.lastWords(name)}\nAll of it: ${log}`);
  }

  #running(name: string): ServerProcess {
    const found = this.#processes.get(name);
    const state = this.stateOf(name);
    if (found === undefined || state.kind === 'ended') {
      const how = state.kind === 'ended' ? state.says : '';
      throw new ClusterRefusal(`${name} does not run (${how}); \`restart ${name}\` starts it`);
    }
    return found;
  }

  async #forEach(name: string, action: (each: string) => Promise<void>): Promise<void> {
    const names = nodesNamed(this.#plan, name);
    const running = names.filter((each) => this.stateOf(each).kind !== 'ended');
    // Of a datacenter those that run are meant; where none does, the first one says so.
    await Promise.all((running.length > 0 ? running : names.slice(0, 1)).map(action));
    this.#describe();
  }

  #changeLines(
    { from, to, isOneWay }: Between,
    change: (from: readonly string[], to: readonly string[]) => void,
  ): void {
    const one = nodesNamed(this.#plan, from);
    const other = nodesNamed(this.#plan, to);
    if (new Set([...one, ...other]).size === 1)
      throw new ClusterRefusal(
        `no line leads from ${from} to ${to}: name two nodes or datacenters`,
      );
    change(one, other);
    if (!isOneWay) change(other, one);
    this.#look();
  }

  #look(): void {
    for (const proxy of this.#proxies.values()) proxy.look();
  }

  async #removePeer(node: NodePlan, rest: readonly NodePlan[]): Promise<void> {
    const deadlineMs = performance.now() + REMOVE_MAX_MS;
    for (;;) {
      const says = await this.#askToRemove(node, rest);
      if (says === undefined) return;
      if (performance.now() > deadlineMs) throw new ClusterRefusal(`${node.name} stays: ${says}`);
      await pause(LOOK_MS);
    }
  }

  /** Undefined when it is done; else why nobody did it. */
  async #askToRemove(node: NodePlan, rest: readonly NodePlan[]): Promise<string | undefined> {
    const address = encodeURIComponent(`${HOST}:${node.linePort}`);
    let says = 'no other server runs';
    for (const { name, httpPort } of rest) {
      if (this.stateOf(name).kind !== 'running') continue;
      try {
        const { status, text } = await askNode({
          http: `${HOST}:${httpPort}`,
          path: `/v1/operator/raft/peer?address=${address}`,
          method: 'DELETE',
          secret: this.#plan.managementToken,
          timeoutMs: REMOVE_MAX_MS,
        });
        // The leader may have removed it already, or an answer was lost.
        if (status === 200 || text.includes('was not found in the Raft configuration')) return;
        says = `${name} answered ${status} ${text}`;
      } catch (error) {
        says = `${name} gave no answer (${(error as Error).message})`;
      }
    }
    return says;
  }

  #keep(plan: ClusterPlan): void {
    this.#plan = plan;
    this.files.keepPlan(plan);
    this.#describe();
  }

  #describe(): void {
    this.files.describe(this.#plan, (name) => {
      const state = this.#processes.get(name)?.state();
      return state === undefined || state.kind === 'ended' ? undefined : state.pid;
    });
  }
}

/** Undefined: it is ready. */
async function whyNotReady(http: string): Promise<string | undefined> {
  try {
    const { status, text } = await askNode({ http, path: '/readyz', timeoutMs: ASK_MAX_MS });
    return status === 200 ? undefined : `not ready: ${text.trim()}`;
  } catch (error) {
    return `no answer (${(error as Error).message})`;
  }
}

/** Of a file that may be long; empty when it is not there. */
function lastLines(path: string): string {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return '';
  }
  try {
    const { size } = fstatSync(file);
    const bytes = Buffer.alloc(Math.min(size, LAST_BYTES));
    readSync(file, bytes, 0, bytes.length, size - bytes.length);
    return bytes.toString().trimEnd().split('\n').slice(-LAST_LINES).join('\n');
  } finally {
    closeSync(file);
  }
}
