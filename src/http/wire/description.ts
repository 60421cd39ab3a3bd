// The document at /v1/openapi.json, as bytes in each form that can be asked for. It is long and changes with
// the program alone, and anybody may ask for it: each form is made once, and what waits for slow readers is
// these bytes and no copies of them.

import { gzipSync } from 'node:zlib';
import { openApiDocument } from '../../api/endpoints/openapi.ts';
import { PrettyPrinter } from './pretty.ts';

export interface ReadyBody {
  readonly plain: Buffer;
  readonly gzipped: Buffer;
}

const readyByForm = new Map<string, ReadyBody>();

/** The description of a program of this version; the same bytes each time. */
export function descriptionOf(version: string, { isPretty }: { isPretty: boolean }): ReadyBody {
  const form = `${version} ${isPretty}`;
  const known = readyByForm.get(form);
  if (known !== undefined) return known;
  const json = JSON.stringify(openApiDocument(version));
  const printer = new PrettyPrinter();
  const plain = Buffer.from(isPretty ? printer.push(json) + printer.end() : json);
  const ready = { plain, gzipped: gzipSync(plain) };
  readyByForm.set(form, ready);
  return ready;
}
