// One question to a server of the local cluster over HTTP.

import { type Agent, type IncomingHttpHeaders, request } from 'node:http';

export interface Question {
  /** `host:port` */
  readonly http: string;
  readonly path: string;
  readonly method?: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly secret?: string;
  /** Goes as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Default: a connection for this question alone. */
  readonly agent?: Agent;
}

export interface NodeAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Rejects when there is no whole answer in time. */
export function askNode(question: Question): Promise<NodeAnswer> {
  const { http, path, method = 'GET', secret, body, timeoutMs, agent } = question;
  const headers = {
    ...(secret === undefined ? {} : { 'X-Service-Token': secret }),
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...question.headers,
  };
  return new Promise((resolve, reject) => {
    const sent = request(`http://${http}${path}`, {
      method,
      headers,
      agent: agent ?? false,
      signal: AbortSignal.timeout(timeoutMs),
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
    });
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
