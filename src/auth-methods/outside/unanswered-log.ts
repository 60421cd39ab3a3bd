// Providers that gave no answer, in the log: once a minute for each method and reason, because anybody can begin
// a login.

import { LineWindow } from '../../../cluster/base/line-window.ts';
import type { Surroundings } from './surroundings.ts';

export interface Unanswered {
  readonly authMethod: string;
  /** What was asked for. */
  readonly what: string;
  /** With the details that whoever logs in does not get. */
  readonly error: string;
}

export class UnansweredLog {
  readonly #surroundings: Pick<Surroundings, 'clock' | 'logger'>;
  readonly #window = new LineWindow();

  constructor(surroundings: Pick<Surroundings, 'clock' | 'logger'>) {
    this.#surroundings = surroundings;
  }

  note(unanswered: Unanswered): void {
    const { clock, logger } = this.#surroundings;
    const { authMethod, what, error } = unanswered;
    const written = this.#window.admit(`${authMethod} ${what} ${error}`, clock.monotonicMs());
    if (written === 'line') logger.warn({ ...unanswered }, 'auth method got no answer');
    if (written === 'that there are more') {
      logger.warn({ authMethod }, 'more auth methods get no answer than is logged');
    }
  }
}
