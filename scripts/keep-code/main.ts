// One server of the packed program in an empty folder; when it has ended, the code that was compiled for it is
// kept. `scripts/pack` runs this with the options for which the code is.

import { dirname, join } from 'node:path';
import { placeObjectsAsUsual } from '../../src/platform-node/process/object-placement.ts';
import { PackedProgram } from '../../src/platform-node/process/packed-program.ts';

const [node = '', , folder = ''] = process.argv;
const built = join(dirname(dirname(import.meta.dirname)), 'src');
// Settings of whoever builds are none of this server's.
for (const name of Object.keys(process.env)) {
  if (name.startsWith('CONCLAVE_')) delete process.env[name];
}
process.argv = [
  ...[node, join(built, 'main.js'), 'agent', '--data-dir', folder],
  ...['--ports-http', '0', '--ports-cluster', '-1', '--log-level', 'error'],
];
const program = new PackedProgram(join(built, 'program.cjs'));
process.once('exit', () => {
  placeObjectsAsUsual();
  program.keepCode();
});
program.run();
