// The doors of the service with an audit log behind them: of what comes in by them, each change is recorded, and
// each refusal for want of rights. Calls of other servers come in elsewhere: each request is recorded once, by
// the server that a client asked.

import { messageOf } from '../../cluster/base/message-of.ts';
import { AclError } from '../acl/error.ts';
import { ANONYMOUS_ACCESSOR } from '../acl/ids.ts';
import type { Call } from '../service/call.ts';
import { OPERATION_TABLE } from '../service/operation-table.ts';
import type { Asked, OperationName, Operations, Soon } from '../service/operations.ts';
import type {
  Operator,
  OperatorInput,
  OperatorName,
  OperatorOutput,
} from '../service/operators/operator-operations.ts';
import type { RestoreIntake } from '../service/operators/operator-port.ts';
import { OPERATOR_TABLE } from '../service/operators/operator-table.ts';
import { isDenial } from '../service/rights/denials.ts';
import type { AuditRecord } from './audit-record.ts';
import type { AuditTrail } from './audit-trail.ts';
import {
  type Asker,
  accessorIdOf,
  answerOf,
  failureOf,
  inputIn,
  objectIn,
  requestOf,
  type Subject,
} from './audited-request.ts';

type About = Omit<AuditRecord, 'event'>;

/** Of one server alone. */
interface NodeChange {
  /** Without secrets. */
  readonly input: object;
  readonly carryOut: () => void;
}

interface Change {
  readonly call: Call;
  /** As it was known before. */
  readonly about: About;
  readonly subject: Subject;
}

/** They write at most what a login waits for, and change nothing that anybody has. The login itself is recorded. */
const CHANGES_NOTHING: ReadonlySet<OperationName> = new Set([
  'oidc.auth-url',
  'explain-login',
  'oidc.explain',
]);

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
      run: async (name, input, call) => this.#answer(inner, { name, input, call }),
      answer: (name, input, call, isGone) => this.#answer(inner, { name, input, call, isGone }),
      waitForChange: (target, index, timeoutMs, cancel) =>
        inner.waitForChange(target, index, timeoutMs, cancel),
      meta: () => inner.meta(),
    };
  }

  operator(inner: Operator): Operator {
    return {
      run: (name, input, call) => this.#operate(inner, name, { input, call }),
      save: (call) => {
        const about = requestOf(this.#asker, 'snapshot-save', call);
        return this.#changed({ call, about, subject: NO_OBJECT }, () => inner.save(call));
      },
      beginRestore: (call) => this.#restore(inner, call),
    };
  }

  /** Of a look that came to nothing, and that was asked of no audited door. */
  failed(operation: string, call: Call, error: unknown): void {
    this.#refused(requestOf(this.#asker, operation, call), call, error);
  }

  /** A change of this server alone, behind a check of rights that was asked of no audited door. */
  async changed(operation: string, call: Call, { input, carryOut }: NodeChange): Promise<void> {
    const about = {
      ...requestOf(this.#asker, operation, call),
      input: inputIn(this.#asker, input),
    };
    await this.#changed({ call, about, subject: NO_OBJECT }, async () => carryOut());
  }

  #answer<Name extends OperationName>(
    inner: Operations,
    { name, input, call, isGone }: Asked<Name>,
  ): Soon<Name> {
    const asker = this.#asker;
    const { kind, isOfOperators = false } = OPERATION_TABLE[name];
    if (kind === 'write' && !CHANGES_NOTHING.has(name)) {
      const object = objectIn(asker, name, input);
      const wish = isOfOperators ? { input: inputIn(asker, input) } : {};
      const about = { ...requestOf(asker, name, call), object, ...wish };
      const subject = { asked: object, done: () => objectIn(asker, name, input, true) };
      const answer = async () => inner.answer(name, input, call, isGone);
      return this.#changed({ call, about, subject }, answer);
    }
    const refused = (error: unknown): never => {
      const object = objectIn(asker, name, input);
      this.#refused({ ...requestOf(asker, name, call), object }, call, error);
      throw error;
    };
    try {
      const output = inner.answer(name, input, call, isGone);
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
    const about = { ...requestOf(this.#asker, name, call), input: inputIn(this.#asker, input) };
    if (OPERATOR_TABLE[name].right === 'operator:write')
      return this.#changed({ call, about, subject: NO_OBJECT }, () => inner.run(name, input, call));
    try {
      return await inner.run(name, input, call);
    } catch (error) {
      this.#refused(about, call, error);
      throw error;
    }
  }

  /** It is answered when the archive has become the state, or nothing has come of it. */
  async #restore(inner: Operator, call: Call): Promise<RestoreIntake> {
    const about = requestOf(this.#asker, 'snapshot-restore', call);
    await this.#asked(about);
    let isTold = false;
    const once = (tell: () => void): void => {
      if (!isTold) tell();
      isTold = true;
    };
    const failed = (error: unknown): never => {
      once(() => this.#failed(about, failureOf(error, call)));
      throw error;
    };
    const intake = await inner.beginRestore(call).catch(failed);
    return {
      add: (chunk) => intake.add(chunk).catch(failed),
      finish: async () => {
        const { index } = await intake.finish().catch(failed);
        const answer = { outcome: 'done', index } as const;
        once(() => this.#trail.record({ event: 'answered', ...about, ...answer }));
        return { index };
      },
      abandon: () => {
        // Whoever sent it has gone before its end.
        once(() => this.#failed(about, { outcome: 'refused' }));
        return intake.abandon();
      },
    };
  }

  async #changed<Output>({ call, about, subject }: Change, run: () => Promise<Output>) {
    await this.#asked(about);
    /** Who asks may have become known meanwhile, or be gone. */
    const behind = (): About => ({
      ...about,
      accessorId: about.accessorId ?? accessorIdOf(this.#asker, call),
    });
    try {
      const output = await run();
      this.#trail.record({ event: 'answered', ...behind(), ...answerOf(output, subject) });
      return output;
    } catch (error) {
      this.#failed(behind(), failureOf(error, call));
      throw error;
    }
  }

  /** What was recorded as asked has its answer; where nothing was, it may be refused without end. */
  #failed(about: About, failure: Failure): void {
    const isCounted = failure.outcome === 'refused' && !this.#trail.isRequired;
    if (isCounted) this.#count(about, failure);
    else this.#trail.record({ event: 'answered', ...about, ...failure });
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

  #refused(about: About, call: Call, error: unknown): void {
    if (isDenial(error)) this.#count(about, failureOf(error, call));
  }

  /** By operation, by who asks or from where, and by what came of it. */
  #count(about: About, failure: Failure): void {
    const { operation, accessorId, client } = about;
    const asker = isNobody(accessorId) ? client : accessorId;
    const kind = [operation, asker, failure.error].join(' ');
    this.#trail.recordRefusal(kind, { event: 'answered', ...about, ...failure });
  }
}

type Failure = Pick<AuditRecord, 'outcome' | 'error'>;

const NO_OBJECT: Subject = { asked: undefined, done: () => undefined };

/** Who has no token, or one that this server does not know. */
function isNobody(accessorId: string | undefined): boolean {
  return accessorId === undefined || accessorId === ANONYMOUS_ACCESSOR;
}
