// The supervisor of a local cluster, started in the background by `npm run cluster -- up` with the folder of
// the cluster as its only argument.

import { randomBytes } from 'node:crypto';
import { ClusterFiles } from '../cluster-files.ts';
import { LocalCluster } from '../local-cluster.ts';
import { Supervisor } from './supervisor.ts';

const SECRET_BYTES = 32;

const [, , folder] = process.argv;
if (folder === undefined) throw new Error('the folder of the cluster is missing');
const files = new ClusterFiles(folder);
const plan = files.plan();
if (plan === undefined) throw new Error(`${folder} holds no cluster`);

const cluster = await LocalCluster.open(folder, plan);
const secret = randomBytes(SECRET_BYTES).toString('hex');
const supervisor = new Supervisor(cluster, secret, () => process.exit(0));
const port = await supervisor.listen();
files.keepSupervisor({ pid: process.pid, port, secret });
process.stdout.write(`supervisor ${process.pid} of ${folder} listens on port ${port}\n`);

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => void supervisor.end({ isKept: true }));
}
