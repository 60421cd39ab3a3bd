// Asks servers with the token of the operator, for clients who take no answer as a fact of life, and keeps what
// they found wrong.

import { Agent } from 'node:http';
import { askNode, type NodeAnswer, type Question } from '../../cluster/ask-node.ts';
import type { ClusterDescription } from '../../cluster/cluster-files.ts';

const ANSWER_MAX_MS = 15_000;
const FAULTS_MAX = 20;

export class Asker {
  /** Whatever must not be, in words; the first ones. */
  readonly faults: string[] = [];
  readonly #secret: string;
  readonly #agent = new Agent({ keepAlive: true });

  constructor({ management_token: secret }: Pick<ClusterDescription, 'management_token'>) {
    this.#secret = secret;
  }

  /** Undefined: no answer came, so nothing is known. */
  ask(
    question: Omit<Question, 'timeoutMs'> & { timeoutMs?: number },
  ): Promise<NodeAnswer | undefined> {
    const asked = {
      ...{ secret: this.#secret, timeoutMs: ANSWER_MAX_MS, agent: this.#agent },
      ...question,
    };
    return askNode(asked).catch(() => undefined);
  }

  /** Rejects with what was answered instead of 200. */
  async mustDo(question: Omit<Question, 'timeoutMs'>): Promise<NodeAnswer> {
    const answer = await this.ask(question);
    if (answer?.status === 200) return answer;
    throw new Error(`${question.path}: ${answer?.status ?? 'no answer'} ${answer?.text ?? ''}`);
  }

  fault(says: string): void {
    if (this.faults.length < FAULTS_MAX) this.faults.push(says);
  }

  close(): void {
    this.#agent.destroy();
  }
}
