// Which namespace a request means: one by name, or (for lists) all of them.

import type { NamespaceName } from './ids.ts';

export type NamespaceScope =
  | { readonly kind: 'one'; readonly name: NamespaceName }
  | { readonly kind: 'all' };
