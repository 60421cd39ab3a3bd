// The use cases by name, with what goes in and what comes out. http routes, the command line and
// (between servers) forwarding all go through this one table. Inputs are drafts and ids as text;
// every check beyond the JSON shape happens behind this door, and so does authorization.

import type {
  AuthMethodDraft,
  BindingRuleDraft,
  NamespaceDraft,
  PolicyDraft,
  RoleDraft,
  TokenDraft,
} from '../acl/checks/drafts.ts';
import type { ShownReplication, ShownTemplate } from '../api/render/shown.ts';
import type { AuthorizationItem } from '../authz/parse-authorization.ts';
import type { Position } from '../state/global-log/cursor.ts';
import type { Page } from '../state/view.ts';
import type { Call } from './call.ts';
import type { LoginExplanationView } from './logins/explanation-views.ts';
import type { AuthorizationAnswer } from './rights/authorization-types.ts';
import type {
  AuthMethodView,
  BindingRuleView,
  ListResult,
  NamespaceView,
  PolicyView,
  ReadResult,
  RoleView,
  TokenView,
  WatchTarget,
  WriteResult,
} from './views.ts';

export interface TokenListInput {
  readonly policy: string | undefined;
  readonly role: string | undefined;
  readonly serviceName: string | undefined;
  readonly authMethod: string | undefined;
  readonly authMethodNamespace: string | undefined;
  readonly page: Page;
}

export interface OperationTypes {
  bootstrap: { input: { secret: string | undefined }; output: WriteResult<TokenView> };

  'token.create': { input: { draft: TokenDraft }; output: WriteResult<TokenView> };
  'token.read': { input: { accessorId: string; expanded: boolean }; output: ReadResult<TokenView> };
  'token.read-self': { input: Record<never, never>; output: ReadResult<TokenView> };
  'token.update': {
    input: { accessorId: string; draft: TokenDraft };
    output: WriteResult<TokenView>;
  };
  'token.clone': {
    input: { accessorId: string; description: string | undefined; namespace: string | undefined };
    output: WriteResult<TokenView>;
  };
  'token.delete': { input: { accessorId: string }; output: WriteResult<boolean> };
  'token.list': { input: TokenListInput; output: ListResult<TokenView> };

  'policy.create': { input: { draft: PolicyDraft }; output: WriteResult<PolicyView> };
  'policy.read': { input: { id: string }; output: ReadResult<PolicyView> };
  'policy.read-by-name': { input: { name: string }; output: ReadResult<PolicyView> };
  'policy.update': { input: { id: string; draft: PolicyDraft }; output: WriteResult<PolicyView> };
  'policy.delete': { input: { id: string }; output: WriteResult<boolean> };
  'policy.list': { input: { page: Page }; output: ListResult<PolicyView> };

  'role.create': { input: { draft: RoleDraft }; output: WriteResult<RoleView> };
  'role.read': { input: { id: string }; output: ReadResult<RoleView> };
  'role.read-by-name': { input: { name: string }; output: ReadResult<RoleView> };
  'role.update': { input: { id: string; draft: RoleDraft }; output: WriteResult<RoleView> };
  'role.delete': { input: { id: string }; output: WriteResult<boolean> };
  'role.list': { input: { policy: string | undefined; page: Page }; output: ListResult<RoleView> };

  'auth-method.create': { input: { draft: AuthMethodDraft }; output: WriteResult<AuthMethodView> };
  'auth-method.read': { input: { name: string }; output: ReadResult<AuthMethodView> };
  'auth-method.update': {
    input: { name: string; draft: AuthMethodDraft };
    output: WriteResult<AuthMethodView>;
  };
  'auth-method.delete': { input: { name: string }; output: WriteResult<boolean> };
  'auth-method.list': { input: { page: Page }; output: ListResult<AuthMethodView> };

  'binding-rule.create': {
    input: { draft: BindingRuleDraft };
    output: WriteResult<BindingRuleView>;
  };
  'binding-rule.read': { input: { id: string }; output: ReadResult<BindingRuleView> };
  'binding-rule.update': {
    input: { id: string; draft: BindingRuleDraft };
    output: WriteResult<BindingRuleView>;
  };
  'binding-rule.delete': { input: { id: string }; output: WriteResult<boolean> };
  'binding-rule.list': {
    input: { authMethod: string | undefined; page: Page };
    output: ListResult<BindingRuleView>;
  };

  'namespace.create': { input: { draft: NamespaceDraft }; output: WriteResult<NamespaceView> };
  'namespace.read': { input: { name: string }; output: ReadResult<NamespaceView> };
  'namespace.update': {
    input: { name: string; draft: NamespaceDraft };
    output: WriteResult<NamespaceView>;
  };
  'namespace.delete': { input: { name: string }; output: WriteResult<boolean> };
  'namespace.list': { input: { page: Page }; output: ListResult<NamespaceView> };

  'templated-policy.list': { input: Record<never, never>; output: readonly ShownTemplate[] };
  'templated-policy.read': { input: { name: string }; output: ShownTemplate };
  'templated-policy.preview': {
    input: { name: string; variables: { name: string | undefined } };
    output: PolicyView;
  };

  login: {
    input: {
      authMethod: string;
      bearerToken: string;
      meta: Readonly<Record<string, string>>;
      namespace: string | undefined;
    };
    output: WriteResult<TokenView>;
  };
  'explain-login': { input: OperationTypes['login']['input']; output: LoginExplanationView };
  logout: { input: Record<never, never>; output: WriteResult<boolean> };
  'oidc.auth-url': {
    input: {
      authMethod: string;
      redirectUri: string;
      clientNonce: string;
      meta: Readonly<Record<string, string>>;
      namespace: string | undefined;
    };
    output: { authUrl: string };
  };
  'oidc.callback': {
    input: {
      authMethod: string;
      state: string;
      code: string;
      clientNonce: string;
      namespace: string | undefined;
    };
    output: WriteResult<TokenView>;
  };
  'oidc.explain': {
    input: OperationTypes['oidc.callback']['input'];
    output: LoginExplanationView;
  };

  authorize: {
    input: { items: readonly AuthorizationItem[]; explain: boolean };
    output: readonly AuthorizationAnswer[];
  };
  'token.authorize': {
    input: { accessorId: string; items: readonly AuthorizationItem[]; explain: boolean };
    output: readonly AuthorizationAnswer[];
  };
  'replication.status': { input: Record<never, never>; output: ShownReplication };
  'datacenter.remove': {
    input: { name: string; isForced: boolean };
    output: WriteResult<boolean>;
  };
  'datacenter.allow': {
    input: { name: string; isForced: boolean };
    output: WriteResult<boolean>;
  };
}

export type OperationName = keyof OperationTypes;
export type OperationInput<Name extends OperationName> = OperationTypes[Name]['input'];
export type OperationOutput<Name extends OperationName> = OperationTypes[Name]['output'];

/** An output, or what becomes one. */
export type Soon<Name extends OperationName> =
  | OperationOutput<Name>
  | Promise<OperationOutput<Name>>;

/** What is asked of the door: an operation, which may be a read or a write, and what comes with the request. */
export interface Asked<Name extends OperationName> {
  readonly name: Name;
  readonly input: OperationInput<Name>;
  readonly call: Call;
  /** Whether nobody waits for the answer any more; left out: somebody does. It is not sent to other servers. */
  readonly isGone?: (() => boolean) | undefined;
}

/** The door. Rejects with AclError for everything that the caller can be told. */
export interface Operations {
  run<Name extends OperationName>(
    name: Name,
    input: OperationInput<Name>,
    call: Call,
  ): Promise<OperationOutput<Name>>;
  /**
   * As `run`, but what waits for nothing is given, or thrown, at once: reads are counted in microseconds. Of a write
   * whose client `isGone` says is gone no further try begins.
   */
  answer<Name extends OperationName>(
    name: Name,
    input: OperationInput<Name>,
    call: Call,
    isGone?: () => boolean,
  ): Soon<Name>;
  /**
   * Waits until `target` changed after the moment of the call that gave `index`, or `timeoutMs`
   * passed, or `cancel` fired. Resolves at once when the table is already beyond `index`.
   */
  waitForChange(
    target: WatchTarget,
    index: number,
    timeoutMs: number,
    cancel: AbortSignal,
  ): Promise<void>;
  /** What the headers of every answer need, without a token. */
  meta(): { readonly defaultPolicy: 'allow' | 'deny'; readonly position: Position };
}
