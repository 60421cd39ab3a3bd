// How far a datacenter is, asked of it: by a trial of a promise, which binds nobody.

import type { AskLeaderOptions } from './ask-leader.ts';
import {
  decodePromise,
  encodeAsk,
  LAST_EPOCH,
  PROMOTION_METHOD,
  type PromiseAnswer,
  type PromiseAsk,
} from './promotion-frames.ts';

export interface PlacesQuestion extends Pick<PromiseAsk, 'candidate' | 'cursor'> {
  readonly datacenter: string;
  readonly deadlineMs: number;
}

/**
 * What those of its servers say that take themselves for its leader: none, one, or, while leaders change, several. All
 * are asked at once: one after the other, those that are away would take longer than anybody waits for the answer.
 * Resolves when none is waited for any more; `onSome` is told what there is with each answer. Never rejects.
 */
export async function askPlaces(
  { addressesOf, call }: AskLeaderOptions,
  { datacenter, candidate, cursor, deadlineMs }: PlacesQuestion,
  onSome: (answers: readonly PromiseAnswer[]) => void = () => undefined,
): Promise<readonly PromiseAnswer[]> {
  const payload = encodeAsk({ epoch: LAST_EPOCH, candidate, cursor, isTrial: true });
  const question = { datacenter, method: PROMOTION_METHOD.promise, payload, deadlineMs, hops: 0 };
  const answers: PromiseAnswer[] = [];
  await Promise.allSettled(
    addressesOf(datacenter).map(async (to) => {
      answers.push(decodePromise(await call(to, question)));
      onSome(answers);
    }),
  );
  return answers;
}
