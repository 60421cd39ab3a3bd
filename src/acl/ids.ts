// The ids of the domain: UUIDs in text form, kept in the letter case they were given and compared by
// their 16 bytes. A SecretId is any non-empty text (the configuration may give one that is no UUID);
// its type keeps it apart from other strings, so that nobody logs it by accident.

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

export type AccessorId = Branded<'AccessorId'>;
export type SecretId = Branded<'SecretId'>;
export type PolicyId = Branded<'PolicyId'>;
export type RoleId = Branded<'RoleId'>;
export type BindingRuleId = Branded<'BindingRuleId'>;
/** Any id that is stored as 16 bytes. */
export type UuidText = AccessorId | PolicyId | RoleId | BindingRuleId;
export type NamespaceName = Branded<'NamespaceName'>;

export const ANONYMOUS_ACCESSOR = '00000000-0000-0000-0000-000000000002' as AccessorId;
export const ANONYMOUS_SECRET = 'anonymous' as SecretId;
export const GLOBAL_MANAGEMENT_ID = '00000000-0000-0000-0000-000000000001' as PolicyId;
export const GLOBAL_READ_ONLY_ID = '00000000-0000-0000-0000-000000000002' as PolicyId;
export const DEFAULT_NAMESPACE = 'default' as NamespaceName;
/** Ids that begin so are the service's own. */
export const RESERVED_ID_PREFIX = '00000000-0000-0000-0000-0000000000';
/** Secrets that are words of the system and never name a token. */
export const ROOT_SECRETS: ReadonlySet<string> = new Set(['allow', 'deny', 'manage']);
