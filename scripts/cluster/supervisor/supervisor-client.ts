// The way from a command to the supervisor: finds it, starts it where it is missing, and gives it orders.

import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import type { ClusterFiles, SupervisorAddress } from '../cluster-files.ts';
import { HOST } from '../cluster-plan.ts';
import { ClusterRefusal } from '../cluster-refusal.ts';
import type { Tell } from '../local-cluster.ts';
import type { ClusterState, Order, OrderNews } from './orders.ts';

const SUPERVISOR = join(import.meta.dirname, 'main.js');
const START_MAX_MS = 30_000;
const LOOK_MS = 50;

export class SupervisorClient {
  readonly #address: SupervisorAddress;

  private constructor(address: SupervisorAddress) {
    this.#address = address;
  }

  /**
   * The supervisor of the cluster that runs. One that had ended without its servers is replaced by a new one,
   * which takes them over, and `tell` says so. Refuses when nothing runs.
   */
  static async find(files: ClusterFiles, tell: Tell): Promise<SupervisorClient> {
    const found = await findAnswering(files);
    if (found !== undefined) return new SupervisorClient(found);
    const left = files.description();
    if (left === undefined) throw nothingRuns(files);
    const client = await SupervisorClient.start(files);
    const { cluster } = await client.order({ kind: 'state' });
    const running = cluster.nodes.filter(({ pid }) => pid !== null).length;
    tell(
      `The supervisor had ended without the cluster. A new one has taken over ${running} of ` +
        `${cluster.nodes.length} servers${running < cluster.nodes.length ? '; `up` starts the others' : ''}. ` +
        'Cuts and delays of before are gone.',
    );
    return client;
  }

  /** As `find`, and started when nothing runs. */
  static async findOrStart(files: ClusterFiles, tell: Tell): Promise<SupervisorClient> {
    const hasRun = files.description() !== undefined;
    return hasRun ? await SupervisorClient.find(files, tell) : await SupervisorClient.start(files);
  }

  /** Starts it in the background. The folder must hold a plan. */
  static async start(files: ClusterFiles): Promise<SupervisorClient> {
    files.forgetSupervisor();
    const log = openSync(files.supervisorLog, 'a', 0o600);
    const child = spawn(process.execPath, ['--enable-source-maps', SUPERVISOR, files.folder], {
      stdio: ['ignore', log, log],
      detached: true,
    });
    closeSync(log);
    child.on('error', () => undefined);
    const deadlineMs = performance.now() + START_MAX_MS;
    while (child.exitCode === null && performance.now() < deadlineMs) {
      const found = await findAnswering(files);
      if (found !== undefined) {
        child.unref();
        return new SupervisorClient(found);
      }
      await pause(LOOK_MS);
    }
    child.kill('SIGKILL');
    const words = readFileSync(files.supervisorLog, 'utf8').trim().slice(-2_000);
    throw new ClusterRefusal(`the supervisor did not start:\n${words}`);
  }

  /** Resolves when it is carried out. Rejects with why not, or when `cancel` fires. */
  order(order: Order, tell: Tell = () => undefined, cancel?: AbortSignal): Promise<ClusterState> {
    return send(this.#address, order, { tell, cancel });
  }
}

function nothingRuns(files: ClusterFiles): ClusterRefusal {
  const isKept = files.plan() !== undefined;
  return new ClusterRefusal(
    isKept
      ? 'the cluster is down, and its data is kept\nNext: `npm run cluster -- up` starts it again; `npm run cluster -- down` removes the data.'
      : 'no cluster runs here\nNext: `npm run cluster -- up`',
  );
}

async function findAnswering(files: ClusterFiles): Promise<SupervisorAddress | undefined> {
  const address = files.supervisor();
  if (address === undefined) return undefined;
  try {
    await send(address, { kind: 'state' }, { tell: () => undefined });
    return address;
  } catch {
    return undefined;
  }
}

function send(
  { port, secret }: SupervisorAddress,
  order: Order,
  { tell, cancel }: { readonly tell: Tell; readonly cancel?: AbortSignal | undefined },
): Promise<ClusterState> {
  return new Promise((resolve, reject) => {
    const sent = request({
      ...{ host: HOST, port, method: 'POST', agent: false },
      ...(cancel !== undefined && { signal: cancel }),
      headers: { Authorization: `Bearer ${secret}` },
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      if (response.statusCode !== 200) {
        response.resume();
        reject(
          new Error(`port ${port} answers ${response.statusCode}: it is no supervisor of ours`),
        );
        return;
      }
      const lines = createInterface({ input: response });
      lines.on('line', (line) => {
        const news = JSON.parse(line) as OrderNews;
        if (news.kind === 'says') tell(news.says);
        else if (news.kind === 'done') resolve(news.state);
        else reject(new ClusterRefusal(news.why));
      });
      response.on('error', reject);
      response.on('close', () =>
        reject(new ClusterRefusal('the supervisor ended before it was done')),
      );
    });
    sent.end(JSON.stringify(order));
  });
}
