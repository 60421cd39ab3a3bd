// What is said of each figure: to Prometheus, and in the table of docs/OPERATING.md.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { METRICS, type MetricDescription } from '../../src/http/figures/metric-descriptions.ts';
import { MetricsRegistry } from '../../src/http/figures/metrics.ts';

const OPERATING = join(import.meta.dirname, '..', '..', '..', 'docs', 'OPERATING.md');
const ROW = /^\| `(conclave\.[^`]+)` \| (\w+)(?:: ([^|]+))? \| (.*) \|$/gm;
const LINK = /\[([^\]]+)\]\([^)]*\)/g;

t.test('metrics: OPERATING has the same figures, and says the same of them', async (t) => {
  const rows = [...readFileSync(OPERATING, 'utf8').matchAll(ROW)];
  const documented = rows.map(([, name, kind, labels, says = '']) => [
    name,
    {
      kind,
      labels: labels?.split(', ') ?? [],
      says: says.replaceAll(LINK, '$1').replaceAll('`', ''),
    },
  ]);
  const described = Object.entries<MetricDescription>(METRICS).map(
    ([name, { kind, labels = [], says }]) => [name, { kind, labels, says }],
  );
  t.same(documented, described);
});

t.test('metrics: Prometheus is told what each figure says, in one line', async (t) => {
  const registry = new MetricsRegistry();
  registry.counter('conclave.acl.denied', { reason: 'a' }).add();
  registry.counter('conclave.acl.denied', { reason: 'b' }).add();
  registry.gauge('conclave.raft.term').set(3);
  t.equal(
    registry.prometheus(),
    [
      `# HELP conclave_acl_denied ${METRICS['conclave.acl.denied'].says}`,
      '# TYPE conclave_acl_denied counter',
      'conclave_acl_denied{reason="a"} 1',
      'conclave_acl_denied{reason="b"} 1',
      `# HELP conclave_raft_term ${METRICS['conclave.raft.term'].says}`,
      '# TYPE conclave_raft_term gauge',
      'conclave_raft_term 3',
      '',
    ].join('\n'),
  );
  for (const { says } of Object.values<MetricDescription>(METRICS)) t.notMatch(says, /[\\\n]|^$/);
});
