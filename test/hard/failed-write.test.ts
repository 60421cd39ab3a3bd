// A write that the disk refuses in the middle of a server's life: no file of it may grow beyond a limit that
// the process is started with, which every system offers to a plain user. The server ends at the first one,
// says why, and nothing that was answered is lost. Of syncs that fail tells hard/failed-sync.

import { join } from 'node:path';
import t from 'tap';
import { ask } from './asking.ts';
import { hangingFile } from './hanging-file.ts';
import { startServer, temporaryFolder } from './server-process.ts';

t.setTimeout(240_000);

/** Less than a write-ahead log grows to before the next one begins. */
const FILE_MAX_KIB = 2_048;
/** Far more than what one file may hold. */
const WRITES_MAX = 400;

t.test('refused writes: the server ends with the reason, and the next start goes on', async (t) => {
  const dataFolder = temporaryFolder(t);
  const first = await startServer(t, { dataFolder, fileMaxKib: FILE_MAX_KIB });
  const answered: string[] = [];
  for (let serial = 0; serial < WRITES_MAX; serial += 1) {
    const Description = `${serial} ${'x'.repeat(100_000)}`;
    const asked = { method: 'PUT', path: '/v1/acl/token', body: { Description } };
    const answer = await ask(first.port, asked).catch(() => undefined);
    if (answer?.status !== 200) break;
    answered.push((JSON.parse(answer.text) as { AccessorID: string }).AccessorID);
  }
  t.ok(answered.length > 5 && answered.length < WRITES_MAX, `${answered.length} were answered`);
  t.match(await first.ended, { code: 1, signal: null });
  t.match(first.output(), 'a store failed; the process ends, because what is on disk is not known');
  t.match(first.output(), /File too large/);

  const again = await startServer(t, { dataFolder });
  for (const accessor of answered) {
    const { status } = await ask(again.port, { path: `/v1/acl/token/${accessor}` });
    if (status !== 200) t.fail(`${accessor}: ${status}`);
  }
  const made = await ask(again.port, {
    method: 'PUT',
    path: '/v1/acl/token',
    body: { Description: 'after' },
  });
  t.equal(made.status, 200, 'and it takes writes');
  t.match(await again.end('SIGTERM'), { code: 0 });
});

t.test('refused writes: another disk that hangs does not keep the process', async (t) => {
  const folder = temporaryFolder(t);
  const server = await startServer(t, {
    dataFolder: join(folder, 'data'),
    fileMaxKib: FILE_MAX_KIB,
    flags: { 'audit-file': hangingFile(t, folder) },
  });
  const write = (Description: string) =>
    ask(server.port, { method: 'PUT', path: '/v1/acl/token', body: { Description } });
  await Promise.all(Array.from({ length: 400 }, (_, serial) => write(`small ${serial}`)));
  const fill = async (): Promise<void> => {
    for (let serial = 0; serial < WRITES_MAX; serial += 1) {
      const answer = await write(`${serial} ${'x'.repeat(100_000)}`).catch(() => undefined);
      if (answer?.status !== 200) return;
    }
  };
  // A process that hangs answers nobody.
  void fill();
  const late = new Promise((resolve) => setTimeout(resolve, 30_000, 'it does not end').unref());
  t.match(await Promise.race([server.ended, late]), { signal: 'SIGKILL' });
  t.match(server.output(), 'a store failed; the process ends');
  t.match(server.output(), 'it does not end: the process kills itself');
});
