// What the steps of a history are as commands.

import type { Change } from '../../src/state/commands/commands.ts';
import type { StateMachine } from '../../src/state/machine.ts';
import {
  aNamespace,
  aNamespaceName,
  anAuthMethod,
  aPolicy,
  policyIdNumbered,
} from '../support/fixtures.ts';
import type { Step } from './history-steps.ts';
import { SPACE_OF } from './token-lives.ts';

/** What a step is for whoever writes what all share; with a mark of its own. */
export function sharedChange(
  machine: Pick<StateMachine, 'authMethod'>,
  description: string,
  step: Step,
): Change {
  switch (step.kind) {
    case 'space':
      return {
        type: 'namespace.set',
        presence: 'create',
        namespace: aNamespace(step.space, { description }),
      };
    case 'no space':
      return { type: 'namespace.delete', name: aNamespaceName(step.space) };
    case 'method': {
      const namespace = aNamespaceName(SPACE_OF[step.name]);
      // One that is changed stays the one that it is.
      const found = machine.authMethod(namespace, step.name);
      const displayName = found?.displayName ?? description;
      const method = anAuthMethod(step.name, { namespace, description, displayName });
      return { type: 'auth-method.set', presence: 'either', method };
    }
    case 'no method':
      return {
        type: 'auth-method.delete',
        namespace: aNamespaceName(SPACE_OF[step.name]),
        name: step.name,
      };
    case 'policy': {
      const rules = `key "${step.number}" { policy = "write" }`;
      return { type: 'policy.set', presence: 'create', policy: aPolicy(step.number, { rules }) };
    }
    case 'no policy':
      return { type: 'policy.delete', id: policyIdNumbered(step.number) };
    default:
      throw new Error(`${step.kind} is not shared`);
  }
}
