// The files of docs/deploy can be used as they are: settings that the server reads, variables that it knows, paths
// that are there, and a unit that fits how the server starts and ends.

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parseYamlSettings } from '../../src/cli/agent/yaml-settings.ts';
import { readSettings } from '../../src/node/settings/settings.ts';
import { SETTING_KEYS, variableOf } from '../../src/node/settings/settings-keys.ts';
import { ask, MANAGEMENT } from '../hard/asking.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../hard/server-process.ts';
import { freePorts } from '../support/running/free-ports.ts';
import { until } from '../support/running/running-group.ts';

/** What was compiled lies one folder below the root of the project. */
const ROOT = join(import.meta.dirname, '..', '..', '..');
const FOLDER = join(ROOT, 'docs', 'deploy');
const VARIABLES = new Set(SETTING_KEYS.map(({ name }) => variableOf(name)));
const KEY = Buffer.alloc(32, 1).toString('base64');

function textOf(name: string): string {
  return readFileSync(join(FOLDER, name), 'utf8');
}

t.test('deploy: every example configuration is one that the server takes', async (t) => {
  const examples = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml'));
  t.ok(examples.length > 0);
  for (const name of examples) {
    const settings = readSettings({
      flags: {},
      files: [{ path: name, value: parseYamlSettings(textOf(name)) }],
      environment: { CONCLAVE_CLUSTER_KEY: KEY },
    });
    t.equal(settings['acl.default_policy'], 'deny', name);
    t.ok(
      settings.bootstrap_expect > 1 && settings.retry_join.length > 0,
      `${name}: several servers`,
    );
    t.equal(settings['ports.http'], -1, `${name}: no secret in clear`);
    t.notOk(textOf(name).includes('cluster_key:'), `${name}: no secret in the file`);
  }
});

t.test(
  'deploy: three datacenters of the example find each other and share what is made',
  async (t) => {
    const settings = parseYamlSettings(textOf('three-datacenters.yaml')) as object;
    // One server stands for three, and there are no certificates here.
    const shared = Object.fromEntries(
      Object.entries(settings).filter(([name]) => !['tls', 'retry_join'].includes(name)),
    );
    const root = temporaryFolder(t);
    const file = join(root, 'conclave.json');
    writeFileSync(file, JSON.stringify(shared));
    const names = ['berlin', 'oslo', 'porto'];
    const clusterPorts = await freePorts(names.length);
    const servers: ServerProcess[] = [];
    for (const [place, datacenter] of names.entries()) {
      const others = clusterPorts
        .filter((_, at) => at !== place)
        .map((port) => `127.0.0.1:${port}`);
      const server = await startServer(t, {
        dataFolder: join(root, datacenter),
        flags: {
          'config-file': file,
          datacenter,
          'node-name': `${datacenter}-1`,
          'bind-addr': '127.0.0.1',
          'client-addr': '127.0.0.1',
          'ports-https': '-1',
          'ports-cluster': String(clusterPorts[place]),
          'bootstrap-expect': '1',
          'retry-join-wan': others.join(),
        },
        environment: { CONCLAVE_CLUSTER_KEY: KEY },
      });
      servers.push(server);
    }
    for (const { port } of servers)
      await until('it is ready', async () => (await ask(port, { path: '/readyz' })).status === 200);
    const [berlin, oslo, porto] = servers as [ServerProcess, ServerProcess, ServerProcess];
    const made = await ask(oslo.port, {
      ...{ method: 'PUT', path: '/v1/acl/policy', secret: MANAGEMENT },
      body: { Name: 'shared' },
    });
    t.equal(made.status, 200, made.text);
    for (const { port } of [berlin, porto])
      await until('it is there', async () => {
        const path = '/v1/acl/policy/name/shared';
        return (await ask(port, { path, secret: MANAGEMENT })).status === 200;
      });
  },
);

t.test('deploy: the environment file names variables that the server reads', async (t) => {
  const names = [...textOf('conclave.env').matchAll(/^(\w+)=/gm)].map(([, name]) => name!);
  t.same(names, ['CONCLAVE_CLUSTER_KEY']);
  t.ok(names.every((name) => VARIABLES.has(name)));
});

t.test('deploy: the unit fits how the server starts, tells and ends', async (t) => {
  const unit = textOf('conclave.service');
  const value = (key: string): string => new RegExp(`^${key}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
  t.equal(value('Type'), 'notify');
  t.equal(value('NotifyAccess'), 'all', 'a child of the server speaks');
  t.equal(value('KillSignal'), 'SIGTERM');
  t.equal(value('ExecReload'), '/bin/kill -HUP $MAINPID');
  t.equal(value('RestartPreventExitStatus'), '2');
  t.match(value('ExecStart'), /dist\/src\/main\.js agent --config-file \/etc\/conclave\//);
  t.match(value('EnvironmentFile'), 'conclave.env');
  const { status, stderr } = spawnSync('systemd-analyze', ['--version'], { encoding: 'utf8' });
  if (status !== 0) {
    t.comment(`systemd-analyze is not here: ${stderr ?? 'no such program'}`);
    return;
  }
  const verified = spawnSync('systemd-analyze', ['verify', join(FOLDER, 'conclave.service')], {
    encoding: 'utf8',
  });
  t.notMatch(
    verified.stderr,
    /conclave\.service:\d+:/,
    'systemd finds no line that it does not know',
  );
});

t.test('deploy: the container file takes what is there and starts what it built', async (t) => {
  const text = textOf('Containerfile').replaceAll('\\\n', ' ');
  const copied = [...text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names]) =>
    names!.split(' '),
  );
  t.ok(copied.includes('src') && copied.includes('package-lock.json'));
  for (const name of copied) t.ok(existsSync(join(ROOT, name)), name);
  for (const [, name] of text.matchAll(/(CONCLAVE_\w+)=/g)) t.ok(VARIABLES.has(name!), name!);
  for (const [, name] of text.matchAll(/(CONCLAVE_[A-Z_]+)/g)) t.ok(VARIABLES.has(name!), name!);
  t.match(text, /ln --symbolic \/conclave\/dist\/src\/main\.js \/usr\/local\/bin\/conclave /);
  t.match(text, /ENTRYPOINT \["node", .*"\/usr\/local\/bin\/conclave", "agent"\]/);
});

t.test(
  'deploy: the alarms ask for figures that a server shows, in words of the tool',
  async (t) => {
    const rules = textOf('prometheus-alerts.yml');
    const expressions = [...rules.matchAll(/^ +expr: (?:>-\n)?((?:.*\n(?= {10}\S))*.*)$/gm)].map(
      ([, text]) => text!,
    );
    t.equal(expressions.length, [...rules.matchAll(/- alert: /g)].length);
    const documented = readFileSync(join(ROOT, 'docs', 'OPERATING.md'), 'utf8');
    const shown = [...documented.matchAll(/^\| `(conclave\.[\w.]+)` \|/gm)].map(([, name]) =>
      name!.replaceAll('.', '_'),
    );
    const asked = expressions.flatMap((text) => text.match(/\bconclave_\w+/g) ?? []);
    t.ok(asked.length >= expressions.length - 1, 'all but `up` are figures of ours');
    for (const name of asked) t.ok(shown.includes(name), name);
    const { status } = spawnSync('promtool', ['--version']);
    if (status !== 0) {
      t.comment('promtool is not here');
      return;
    }
    const checked = spawnSync(
      'promtool',
      ['check', 'rules', join(FOLDER, 'prometheus-alerts.yml')],
      {
        encoding: 'utf8',
      },
    );
    t.equal(checked.status, 0, checked.stderr);
  },
);
