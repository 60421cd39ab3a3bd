// Why a login is granted or refused, in the domain's words.

import type { BindType } from '../../acl/binding-rule.ts';
import type { LoginGrant } from '../../auth-methods/login.ts';
import type { NamedLink } from '../views.ts';

export interface LoginExplanationView {
  readonly granted: boolean;
  /** One sentence. */
  readonly summary: string;
  /** Who it is, by the names that selectors have for it; undefined where the auth method refuses them. */
  readonly attributes: readonly AttributeView[] | undefined;
  /** Where the token is to be; undefined where that refuses. */
  readonly namespace: string | undefined;
  /** Of the namespace rule that says so; undefined where none does. */
  readonly namespaceSelector: string | undefined;
  /** In the order in which they are looked at; none behind one that refuses. */
  readonly rules: readonly ExplainedRuleView[];
  readonly token: WouldBeToken | undefined;
}

/** It has one text, or a list of them. */
export interface AttributeView {
  readonly name: string;
  readonly value: string | readonly string[];
}

export interface ExplainedRuleView {
  readonly id: string;
  readonly bindType: BindType;
  /** As it stands in the rule. */
  readonly bindName: string;
  readonly selector: string;
  readonly result: 'bound' | 'not-selected' | 'selector-invalid' | 'target-missing' | 'refused';
  /** What the name comes to; undefined where the rule did not get that far. */
  readonly name: string | undefined;
  readonly why: string;
}

/** What the token would say. */
export interface WouldBeToken extends Omit<LoginGrant, 'namespace' | 'policies' | 'roles'> {
  readonly local: boolean;
  readonly policies: readonly NamedLink[];
  readonly roles: readonly NamedLink[];
  /** Undefined: it would not expire. */
  readonly expirationTtl: string | undefined;
}
