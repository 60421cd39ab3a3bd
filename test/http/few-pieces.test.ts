// Bodies that come in pieces of any sizes: what is read of them, and in how many pieces it is held.

import { createServer, IncomingMessage } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import t from 'tap';
import { holdInFewPieces } from '../../src/http/wire/few-pieces.ts';

/** What a reader gets of a body that came in these pieces, all of them before it begins to read. */
async function readOf(pieces: readonly Buffer[], isInTurn = true): Promise<readonly Buffer[]> {
  const request = new IncomingMessage(new Socket());
  request.headers['transfer-encoding'] = 'chunked';
  holdInFewPieces(request, { isInTurn });
  for (const piece of pieces) request.push(piece);
  request.push(null);
  const read: Buffer[] = [];
  request.on('data', (piece: Buffer) => read.push(piece));
  await new Promise((resolve) => request.once('end', resolve));
  return read;
}

t.test('body: however it comes, it is read whole, and held in few pieces', async (t) => {
  const body = Buffer.from(Array.from({ length: 40_000 }, (_, place) => place % 251));
  const forms: readonly (readonly [string, (place: number) => number, number])[] = [
    ['at once', () => body.length, 1],
    ['by the byte', () => 1, 74],
    ['small and large in turn', (place) => (place % 3 === 0 ? 5 : 5_000), 16],
    ['large and small in turn', (place) => (place === 0 || place > 9_000 ? 9_000 : 1), 70],
    ['with nothing between', (place) => place % 2, 74],
  ];
  for (const [name, sizeAt, most] of forms) {
    const pieces: Buffer[] = [];
    for (let place = 0, turn = 0; place < body.length; turn += 1) {
      const size = name === 'with nothing between' ? sizeAt(turn) : sizeAt(place);
      pieces.push(body.subarray(place, place + size));
      place += size;
    }
    const read = await readOf(pieces);
    t.ok(Buffer.concat(read).equals(body), name);
    t.ok(read.length <= most, `${name}: ${read.length} pieces`);
  }
  t.same(await readOf([]), [], 'none');
  const [alone] = await readOf([body.subarray(0, 9)]);
  t.equal(alone?.buffer, body.buffer, 'one piece is not copied');
  const crumbs = Array.from({ length: 60 }, (_, place) => body.subarray(place, place + 1));
  t.same(await readOf(crumbs, false), [body.subarray(0, 60)], 'what waits for its turn');
});

t.test('body: of what stands behind the last chunk nothing is held', async (t) => {
  for (const isInTurn of [true, false]) {
    const server = createServer((request, response) => {
      holdInFewPieces(request, { isInTurn });
      request.resume().once('end', () => response.end(`held: ${request.rawTrailers}`));
    });
    t.teardown(() => server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const head = 'PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n';
    socket.write(`${head}\r\n1\r\na\r\n0\r\nB: c\r\n\r\n`);
    let answer = '';
    for await (const part of socket.setEncoding('latin1')) answer += part;
    t.match(answer, /\r\nheld: /);
    t.notMatch(answer, /held: ./, isInTurn ? 'in its turn' : 'before it');
  }
});
