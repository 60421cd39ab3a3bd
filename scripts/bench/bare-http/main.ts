// The ceiling of a read: a bare node:http server that answers every request with the same bytes as
// the product did (status, headers in their order, body), read as JSON from standard input.
// Prints its port when it listens.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const answer = JSON.parse(readFileSync(0, 'utf8')) as {
  readonly status: number;
  /** Name, value, name, value … */
  readonly headers: readonly string[];
  readonly body: string;
};
const headers = [...answer.headers];
const body = Buffer.from(answer.body);
const server = createServer((request, response) => {
  request.resume();
  response.sendDate = false;
  response.writeHead(answer.status, headers);
  response.end(body);
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${typeof address === 'object' && address !== null ? address.port : ''}\n`);
});
