// How an operator asks a server, and what may be answered.

import type { Violations } from '../../../checks/violations.ts';
import type { SimGroup } from '../../../run/sim-group.ts';
import {
  type HttpAnswer,
  type HttpQuestion,
  type LiveServer,
  MANAGEMENT_SECRET,
} from '../../../subject/node-subject.ts';
import type { SimHost } from '../../../world/sim-host.ts';
import type { World } from '../../../world/world.ts';
import { cameFrom } from '../../came.ts';

export interface OperatorLineOptions {
  readonly world: World;
  readonly group: SimGroup;
  readonly violations: Violations;
  /** What the trace calls it. */
  readonly kind: string;
  readonly timeoutMs: number;
  /** Whether that may be answered, whatever breaks. */
  readonly mayBe: (answer: HttpAnswer) => boolean;
}

/** An archive is no text. */
const SHOWN_MAX = 5000;

export class OperatorLine {
  readonly #options: OperatorLineOptions;

  constructor(options: OperatorLineOptions) {
    this.#options = options;
  }

  /** Undefined where there is no answer. */
  async ask(
    host: SimHost,
    {
      headers,
      ...question
    }: Omit<HttpQuestion, 'headers'> & Partial<Pick<HttpQuestion, 'headers'>>,
  ): Promise<HttpAnswer | undefined> {
    const { group, kind, mayBe, timeoutMs, violations, world } = this.#options;
    const asked = { ...question, headers: { ...headers, 'X-Service-Token': MANAGEMENT_SECRET } };
    const reply = await group.ask(host, timeoutMs, (node) => (node as LiveServer).http(asked));
    const came = cameFrom(host, reply);
    if (typeof came === 'string') return undefined;
    const { status, text } = came;
    const { method, path } = question;
    const says = text.length > SHOWN_MAX ? `${text.length} characters` : text;
    world.trace.note(kind, host.name, status, () => `${method} ${path}: ${status} ${says}`);
    violations.require(mayBe(came), 'answers', () => {
      return `${method} ${path} at ${host.name} was answered ${status} ${says}`;
    });
    return came;
  }
}
