// The doors of the service with an audit log behind them: of what comes in by them, each change is recorded, and
// each refusal for want of rights. Calls of other servers come in elsewhere: each request is recorded once, by
// the server that a client asked.

import { messageOf } from '../../cluster/base/message-of.ts';
import { AclError } from '../acl/error.ts';
import { ANONYMOUS_ACCESSOR } from '../acl/ids.ts';
import type { Call } from '../service/call.ts';
import { OPERATION_TABLE } from '../service/operation-table.ts';
import type {
  OperationInput,
  OperationName,
  OperationOutput,
  Operations,
} from '../service/operations.ts';
import type {
  Operator,
  OperatorInput,
  OperatorName,
  OperatorOutput,
} from '../service/operator-operations.ts';
import { OPERATOR_TABLE } from '../service/operator-table.ts';
import type { RestoreIntake } from '../service/operator-port.ts';
import type { AuditRecord } from './audit-record.ts';
import type { AuditTrail } from './audit-trail.ts';
import {
  answerOf,
  type Asker,
  DENIALS,
  failureOf,
  objectIn,
  requestOf,
} from './audited-request.ts';

type About = Omit<AuditRecord, 'event'>;

/** It writes and changes nothing that anybody has: anybody may do it, and the login that comes of it is recorded. */
const BEGINS_A_LOGIN = 'oidc.auth-url';

/** Doors for clients. Where the log is required, and cannot be written, a change is refused with 'unavailable'. */
export class AuditedDoors {
  readonly #trail: AuditTrail;
  readonly #asker: Asker;

  constructor(trail: AuditTrail, asker: Asker) {
    this.#trail = trail;
    this.#asker = asker;
  }

  operations(inner: Operations): Operations {
    return {
      run: async (name, input, call) => this.#answer(inner, name, { input, call }),
      answer: (name, input, call) => this.#answer(inner, name, { input, call }),
      waitForChange: (target, index, timeoutMs, cancel) =>
        inner.waitForChange(target, index, timeoutMs, cancel),
      meta: () => inner.meta(),
    };
  }

  operator(inner: Operator): Operator {
    return {
      run: (name, input, call) => this.#operate(inner, name, { input, call }),
      save: (call) =>
        this.#changed(requestOf(this.#asker, 'snapshot-save', call), () => inner.save(call)),
      beginRestore: (call) => this.#restore(inner, call),
    };
  }

  /** A refusal that was decided behind the doors. */
  denied(operation: string, call: Call, error: unknown): void {
    this.#refused(requestOf(this.#asker, operation, call), error);
  }

  #answer<Name extends OperationName>(
    inner: Operations,
    name: Name,
    { input, call }: { readonly input: OperationInput<Name>; readonly call: Call },
  ): OperationOutput<Name> | Promise<OperationOutput<Name>> {
    const about = (): About => ({
      ...requestOf(this.#asker, name, call),
      object: objectIn(this.#asker, name, input),
    });
    if (OPERATION_TABLE[name].kind === 'write' && name !== BEGINS_A_LOGIN) {
      return this.#changed(about(), async () => inner.answer(name, input, call));
    }
    const refused = (error: unknown): never => {
      this.#refused(about(), error);
      throw error;
    };
    try {
      const output = inner.answer(name, input, call);
      return output instanceof Promise ? output.catch(refused) : output;
    } catch (error) {
      return refused(error);
    }
  }

  async #operate<Name extends OperatorName>(
    inner: Operator,
    name: Name,
    { input, call }: { readonly input: OperatorInput<Name>; readonly call: Call },
  ): Promise<OperatorOutput<Name>> {
    const about = { ...requestOf(this.#asker, name, call), input: input as About['input'] };
    if (OPERATOR_TABLE[name].right === 'operator:write')
      return this.#changed(about, () => inner.run(name, input, call));
    try {
      return await inner.run(name, input, call);
    } catch (error) {
      this.#refused(about, error);
      throw error;
    }
  }

  /** It is answered when the archive has become the state, or nothing has come of it. */
  async #restore(inner: Operator, call: Call): Promise<RestoreIntake> {
    const about = requestOf(this.#asker, 'snapshot-restore', call);
    await this.#asked(about);
    let isTold = false;
    const tell = (what: About): void => {
      if (!isTold) this.#trail.record({ event: 'answered', ...about, ...what });
      isTold = true;
    };
    const failed = (error: unknown): never => {
      tell(failureOf(error));
      throw error;
    };
    const intake = await inner.beginRestore(call).catch(failed);
    return {
      add: (chunk) => intake.add(chunk).catch(failed),
      finish: async () => {
        const { index } = await intake.finish().catch(failed);
        tell({ outcome: 'done', index });
        return { index };
      },
      abandon: () => {
        // Whoever sent it has gone before its end.
        tell({ outcome: 'refused' });
        return intake.abandon();
      },
    };
  }

  async #changed<Output>(about: About, run: () => Promise<Output>): Promise<Output> {
    await this.#asked(about);
    try {
      const output = await run();
      this.#trail.record({ event: 'answered', ...about, ...answerOf(output) });
      return output;
    } catch (error) {
      // What was recorded as asked has its answer; strangers may be refused without end, for whatever reason.
      const isCounted = !this.#trail.isRequired && (isDenial(error) || isOfStranger(about));
      if (isCounted) this.#count(about, error);
      else this.#trail.record({ event: 'answered', ...about, ...failureOf(error) });
      throw error;
    }
  }

  async #asked(about: About): Promise<void> {
    if (!this.#trail.isRequired) return;
    try {
      await this.#trail.recorded({ event: 'asked', ...about });
    } catch (cause) {
      const text = `nothing was done: the audit log cannot be written: ${messageOf(cause)}`;
      throw new AclError('unavailable', text, { cause });
    }
  }

  #refused(about: About, error: unknown): void {
    if (isDenial(error)) this.#count(about, error);
  }

  /** By operation, by who asks or from where, and by what came of it. */
  #count(about: About, error: unknown): void {
    const { operation, accessorId, client } = about;
    const failure = failureOf(error);
    const kind = [operation, isOfStranger(about) ? client : accessorId, failure.error].join(' ');
    this.#trail.recordRefusal(kind, { event: 'answered', ...about, ...failure });
  }
}

/** Nobody known to this server: without a token, or with one that nobody has. */
function isOfStranger({ accessorId }: About): boolean {
  return accessorId === undefined || accessorId === ANONYMOUS_ACCESSOR;
}

function isDenial(error: unknown): error is AclError {
  return error instanceof AclError && DENIALS.has(error.code);
}
