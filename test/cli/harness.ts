// Runs one command line against scripted answers and gives back all that it asked, wrote and printed.

import { Command } from 'commander';
import { runProgram } from '../../src/cli/program.ts';
import type { TransportOptions } from '../../src/cli/surroundings.ts';
import type { TransportRequest, TransportResponse } from '../../src/client/transport.ts';

/** A whole response, or the value of a 200. */
export type Scripted = Partial<TransportResponse> & { readonly value?: unknown };

export interface Script {
  /** By `METHOD path` with or without the query; several answers are given in turn. */
  readonly answers?: Readonly<Record<string, Scripted | readonly Scripted[]>>;
  /** Used in place of `answers`. */
  readonly send?: (request: TransportRequest) => Promise<TransportResponse>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
  readonly standardInput?: string;
  readonly isTerminal?: boolean;
  readonly agent?: Command;
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
}

export async function run(given: readonly string[], script: Script = {}): Promise<Outcome> {
  const outWrites: string[] = [];
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
      out: { isTerminal, write: async (text) => void outWrites.push(text) },
      err: { isTerminal, write: async (text) => void errWrites.push(text) },
      version: '1.2.3',
      readTextFile: (path) => {
        const text = script.files?.[path];
        if (text === undefined)
          throw new Error(`ENOENT: no such file or directory, open '${path}'`);
        return text;
      },
      readStandardInput: () => script.standardInput ?? '',
      writeSecretFile: (path, text) => {
        secretFiles[path] = text;
      },
      openTransport: (options) => {
        transports.push(options);
        return {
          send: (request) => {
            requests.push(request);
            return answer(request);
          },
        };
      },
    },
    script.agent ?? new Command('agent'),
  );
  const asked = requests.map(askedBy);
  const [out, err] = [outWrites.join(''), errWrites.join('')];
  return { status, out, outWrites, err, asked, requests, transports, secretFiles };
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
