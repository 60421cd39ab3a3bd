// How clients of several datacenters ask, and what the answers mean by whose token was presented.

import type { HttpQuestion } from '../../../subject/node-subject.ts';
import type { Stream } from '../../../world/stream.ts';
import {
  type ChangedTarget,
  outputOf,
  type RightAbout,
  SERVICE,
  type Target,
} from '../../acl-requests.ts';
import { type Came, cameAs } from '../../came.ts';
import type { ObjectInput } from '../../object-model.ts';
import type { GlobalConsistency, Place, ReadTarget } from './global-history.ts';
import { ALLOWED, DENIED } from './global-rights.ts';

export type Question = Omit<HttpQuestion, 'headers'>;

/** Whose token is presented: of who may do all, of who may write at times, or the one that it is about. */
export type Role = 'manager' | 'deputy' | 'self';

/** What a repeat is told that is done, and whose right is gone. */
const WITHHELD = '(the request took effect when it came before; its answer is not given again)';

/**
 * Who presents a token to see or end it is told that it is none by 403, and a deputy that it has no right;
 * withheld: not any more, and that the request is done.
 */
export function outputFor(
  role: Role,
  input: ObjectInput,
  came: Came,
): ReturnType<typeof outputOf> | 'withheld' {
  if (typeof came === 'string') return cameAs(came);
  if (role === 'manager' || came.status !== 403) return outputOf(input, came);
  if (role === 'self') return { kind: 'missing' };
  return came.text.includes(WITHHELD) ? 'withheld' : { kind: 'refused' };
}

/** The path of a read, with how new it has to be. */
export function pathAt(
  path: string,
  consistency: GlobalConsistency,
  from: Place | undefined,
): string {
  if (from !== undefined) return withQuery(path, `min-position=${from.epoch}.${from.seq}`);
  return consistency === 'stale' ? withQuery(path, 'stale') : path;
}

/** May a token write? */
export function mayWriteQuestion(about: RightAbout): Question {
  const Segment = about === 'key' ? 'x' : SERVICE;
  return {
    ...{ method: 'POST', path: '/v1/internal/acl/authorize' },
    body: [{ Resource: about, Segment, Access: 'write' }],
  };
}

/** What the answer says of whoever presents the token that it is about. */
export function decisionIn(input: ObjectInput, came: Came): ReturnType<typeof outputOf> {
  if (typeof came === 'string') return cameAs(came);
  if (came.status === 403) return { kind: 'missing' };
  if (came.status !== 200) return outputOf(input, came);
  const [decision] = JSON.parse(came.text) as readonly { readonly Allow: boolean }[];
  return { kind: 'found', ...(decision?.Allow === true ? ALLOWED : DENIED) };
}

function withQuery(path: string, query: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}${query}`;
}

/** Some ask for a majority, or for all, and do not wait for ever. */
export function withAck(question: Question, stream: Stream): Question {
  const ack = stream.pick(['', '', 'ack=majority', 'ack=all&ack_timeout=1s'] as const);
  if (ack === '') return question;
  return { ...question, path: withQuery(question.path, ack) };
}

/** The local token that it is about, where that is one that is changed. */
export function changedIn(target: ReadTarget): ChangedTarget | undefined {
  return target.kind === 'local-right'
    ? target.holder
    : target.kind === 'changed'
      ? target
      : undefined;
}

/** Whether it is about what one datacenter has alone. */
export function isOfOneSite(target: ReadTarget): boolean {
  if (target.kind === 'local-right') return target.site !== undefined;
  const isHome = target.kind === 'tenant' || target.kind === 'changed';
  return isHome || (target.kind === 'login' && target.isLocal);
}

/** Whether clients write it. */
export function isWritten(target: ReadTarget): target is Target {
  return !['login', 'tenant', 'changed', 'right', 'local-right'].includes(target.kind);
}
