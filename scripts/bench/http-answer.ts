// Answers of HTTP as bytes, read as far as a load generator needs it: by Content-Length or by chunks.

const HEAD_END = Buffer.from('\r\n\r\n');

/** Bytes of the first answer in `received`, or undefined while that is not known yet. */
export function answerSize(received: Buffer): number | undefined {
  const headEnd = received.indexOf(HEAD_END);
  if (headEnd < 0) return undefined;
  const head = received.toString('latin1', 0, headEnd);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head);
  if (length !== null) return headEnd + 4 + Number(length[1]);
  const end = received.indexOf('0\r\n\r\n', headEnd + 4, 'latin1');
  return end < 0 ? undefined : end + 5;
}

export function statusOf(received: Buffer): number {
  return Number(received.toString('latin1', 9, 12));
}

/** The value of a header; `name` is in small letters. */
export function headerOf(received: Buffer, name: string): string | undefined {
  const head = received.toString('latin1', 0, received.indexOf(HEAD_END) + 2);
  const at = head.toLowerCase().indexOf(`\r\n${name}: `);
  if (at < 0) return undefined;
  const from = at + name.length + 4;
  return head.slice(from, head.indexOf('\r\n', from));
}
