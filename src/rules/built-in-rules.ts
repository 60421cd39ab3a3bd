// The rules of the two built-in policies (compatibility.md 5.6): everything, in every namespace.

import type { FlatResource, Level, NamedResource } from './rule-set.ts';
import { FLAT_RESOURCES, NAMED_RESOURCES } from './rule-set.ts';

/** Rules of `global-management`. */
export const GLOBAL_MANAGEMENT_RULES = everythingAt('write');
/** Rules of `builtin/global-read-only`. */
export const GLOBAL_READ_ONLY_RULES = everythingAt('read');

function everythingAt(level: Level): string {
  const inNamespaces = [
    `policy = "${level}"`,
    flat('acl', level),
    ...(['key', 'node', 'service', 'session'] as const).map((name) => named(name, level)),
  ];
  const lines = [
    ...FLAT_RESOURCES.map((resource) => flat(resource, level)),
    ...NAMED_RESOURCES.map((resource) => named(resource, level)),
    'namespace_prefix "" {',
    ...inNamespaces.map((line) => `  ${line}`),
    '}',
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function flat(resource: FlatResource, level: Level): string {
  return `${resource} = "${level}"`;
}

function named(resource: NamedResource, level: Level): string {
  const intentions = resource === 'service' ? ` intentions = "${level}"` : '';
  return `${resource}_prefix "" { policy = "${level}"${intentions} }`;
}
