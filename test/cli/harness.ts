// Runs one command line against scripted answers and gives back all that it asked, wrote and printed.

import { Command } from 'commander';
import { runProgram } from '../../src/cli/program.ts';
import type { TransportOptions } from '../../src/cli/surroundings.ts';
import type {
  StreamRequest,
  StreamResponse,
  TransportRequest,
  TransportResponse,
} from '../../src/client/transport.ts';
import { isSealed, sealed, unsealed } from '../../src/platform-node/disk/sealed-archive.ts';

/** A whole response, or the value of a 200. */
export type Scripted = Partial<TransportResponse> & { readonly value?: unknown };

/** What a server says that refuses. */
export function problem(status: number, code: string, detail: string): Scripted {
  return {
    status,
    headers: { 'content-type': 'application/problem+json; charset=utf-8' },
    text: JSON.stringify({ status, code, detail, title: 'x', type: 'about:blank' }),
  };
}

export interface Script {
  /** By `METHOD path` with or without the query; several answers are given in turn. */
  readonly answers?: Readonly<Record<string, Scripted | readonly Scripted[]>>;
  /** Used in place of `answers`. */
  readonly send?: (request: TransportRequest) => Promise<TransportResponse>;
  /** Answers what travels in chunks. */
  readonly stream?: (request: StreamRequest) => Promise<StreamResponse>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
  /** Files that are read in chunks; `-` is standard input. */
  readonly bytes?: Readonly<Record<string, Uint8Array>>;
  /** Its text, or why it cannot be read. */
  readonly standardInput?: string | Error;
  /** No secret can be written to a file. */
  readonly isDiskFull?: boolean;
  readonly isTerminal?: boolean;
  readonly agent?: Command;
  /** What becomes of everything that is written to standard output. */
  readonly writeOut?: () => Promise<void>;
}

export interface Outcome {
  readonly status: number;
  readonly out: string;
  /** What was written to standard output, call by call. */
  readonly outWrites: readonly string[];
  readonly err: string;
  /** `METHOD path?query`, and behind it the body when there was one. */
  readonly asked: readonly string[];
  readonly requests: readonly TransportRequest[];
  readonly transports: readonly TransportOptions[];
  readonly secretFiles: Readonly<Record<string, string>>;
  /** What was written to files and took its place. */
  readonly written: Readonly<Record<string, Buffer>>;
  /** Files that were begun and given up. */
  readonly discarded: readonly string[];
  /** What was written to standard output, as bytes. */
  readonly outBytes: Buffer;
}

export async function run(given: readonly string[], script: Script = {}): Promise<Outcome> {
  const outWrites: string[] = [];
  const outBytes: Uint8Array[] = [];
  const written: Record<string, Buffer> = {};
  const discarded: string[] = [];
  const errWrites: string[] = [];
  const requests: TransportRequest[] = [];
  const transports: TransportOptions[] = [];
  const secretFiles: Record<string, string> = {};
  const isTerminal = script.isTerminal ?? false;
  const answer = script.send ?? answering(script.answers ?? {});
  const status = await runProgram(
    given,
    {
      environment: script.environment ?? {},
      out: {
        isTerminal,
        write: async (content) => {
          outWrites.push(typeof content === 'string' ? content : '');
          outBytes.push(Buffer.from(content));
          await script.writeOut?.();
        },
      },
      err: { isTerminal, write: async (text) => void errWrites.push(String(text)) },
      version: '1.2.3',
      readTextFile: (path) => {
        const text = script.files?.[path];
        if (text === undefined)
          throw new Error(`ENOENT: no such file or directory, open '${path}'`);
        return text;
      },
      readStandardInput: () => {
        if (script.standardInput instanceof Error) throw script.standardInput;
        return script.standardInput ?? '';
      },
      writeSecretFile: (path, text) => {
        if (script.isDiskFull === true) throw new Error('ENOSPC: no space left on device, write');
        secretFiles[path] = text;
      },
      createFile: async (path) => {
        const parts: Uint8Array[] = [];
        let isOver = false;
        return {
          write: async (chunk) => void parts.push(Buffer.from(chunk)),
          readBack: () => chunksOf(Buffer.concat(parts)),
          commit: async () => {
            isOver = true;
            written[path] = Buffer.concat(parts);
          },
          discard: async () => {
            if (!isOver) discarded.push(path);
          },
        };
      },
      readChunks: (path) => chunksOf(script.bytes?.[path], path),
      randomBytes: (count) => new Uint8Array(count).fill(7),
      sealing: { isSealed, sealed, unsealed },
      openTransport: (options) => {
        transports.push(options);
        return {
          send: (request) => {
            requests.push(request);
            return answer(request);
          },
          stream: (request) => {
            requests.push({ ...request, body: undefined });
            if (script.stream === undefined) throw new Error('the test does not expect a stream');
            return script.stream(request);
          },
        };
      },
    },
    script.agent ?? new Command('agent'),
  );
  const asked = requests.map(askedBy);
  const [out, err] = [outWrites.join(''), errWrites.join('')];
  const files = { secretFiles, written, discarded, outBytes: Buffer.concat(outBytes) };
  return { status, out, outWrites, err, asked, requests, transports, ...files };
}

/** In small pieces, so that nothing hangs on where they end. */
async function* chunksOf(bytes: Uint8Array | undefined, path = ''): AsyncGenerator<Uint8Array> {
  if (bytes === undefined) throw new Error(`ENOENT: no such file or directory, open '${path}'`);
  for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000);
}

function askedBy({ method, url, body }: TransportRequest): string {
  const place = `${method} ${url.replace(/^https?:\/\/[^/]+/, '')}`;
  return body === undefined ? place : `${place} ${body}`;
}

function answering(
  answers: NonNullable<Script['answers']>,
): (request: TransportRequest) => Promise<TransportResponse> {
  const given = new Map<string, number>();
  return async (request) => {
    const { pathname, search } = new URL(request.url);
    const key = [`${request.method} ${pathname}${search}`, `${request.method} ${pathname}`].find(
      (name) => name in answers,
    );
    if (key === undefined)
      return {
        status: 404,
        headers: {},
        text: `nothing scripted for ${request.method} ${pathname}${search}`,
      };
    const script = answers[key]!;
    const turn = given.get(key) ?? 0;
    given.set(key, turn + 1);
    const scripted = isMany(script) ? (script[Math.min(turn, script.length - 1)] ?? {}) : script;
    return {
      status: scripted.status ?? 200,
      headers: scripted.headers ?? {},
      text: scripted.text ?? JSON.stringify(scripted.value),
    };
  };
}

function isMany(script: Scripted | readonly Scripted[]): script is readonly Scripted[] {
  return Array.isArray(script);
}
