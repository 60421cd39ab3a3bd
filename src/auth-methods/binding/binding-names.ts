// What rules may say about the attributes of an auth method, checked when the rule is written: the
// selectors and templates of binding rules and of namespace rules.

import type { NamespaceRule } from '../../acl/auth-method.ts';
import type { BindingTarget } from '../../acl/checks/binding-rule-checks.ts';
import { AclError } from '../../acl/error.ts';
import { requireNamespaceName } from '../../acl/values/names.ts';
import { invalidConfig } from '../config-reader.ts';
import type { AttributeNames } from '../identity.ts';
import { sampleOf } from './interpolate.ts';
import { compileSelector } from './selector.ts';

/** The view of an auth method that the checks of binding rules ask for. */
export function bindingTargetOf(methodName: string, names: AttributeNames): BindingTarget {
  return {
    name: methodName,
    requireSelector: (selector) => {
      compileSelector(selector, names.selectable);
    },
    sampleOf: (template) => sampleOf(template, names.interpolatable),
  };
}

/** Throws AclError('invalid') for a namespace rule that could never name a namespace. */
export function checkNamespaceRules(rules: readonly NamespaceRule[], names: AttributeNames): void {
  for (const [place, { selector, bindNamespace }] of rules.entries()) {
    prefixed(`NamespaceRules[${place}].Selector is invalid`, () =>
      compileSelector(selector, names.selectable),
    );
    prefixed(`NamespaceRules[${place}].BindNamespace is invalid`, () =>
      requireNamespaceName(sampleOf(bindNamespace, names.interpolatable)),
    );
  }
}

function prefixed(what: string, check: () => unknown): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof AclError)) throw error;
    throw invalidConfig(`${what}: ${error.message}`);
  }
}
