// What an archive says of itself, on the screen and as JSON.

import type { ArchiveInfo } from '../../state/archive/archive-info.ts';
import { field, fieldIf, type Part } from './block.ts';
import { timeText } from './common.ts';

export interface AboutFile {
  readonly sizeBytes: number;
  readonly isEncrypted: boolean;
}

export function archiveParts(info: ArchiveInfo, about: AboutFile): readonly Part[] {
  const { totals } = info;
  return [
    field('Datacenter', info.datacenter),
    ...fieldIf('Cluster', info.cluster),
    field('Written', timeText(new Date(info.createdMs).toISOString())),
    field('By Release', info.release),
    field('Index', info.index),
    field('Position', info.position),
    field('Log Index', info.logIndex),
    field('Log Term', info.logTerm),
    field('Tokens', `${totals.tokens} (${totals.localTokens} local)`),
    field('Policies', totals.policies),
    field('Roles', totals.roles),
    field('Auth Methods', totals.authMethods),
    field('Binding Rules', totals.bindingRules),
    field('Namespaces', totals.namespaces),
    field('Size', sizeText(about.sizeBytes)),
    field('Encrypted', about.isEncrypted),
  ];
}

/** The same for programs. */
export function archiveFields(info: ArchiveInfo, about: AboutFile): object {
  const { totals } = info;
  return {
    Datacenter: info.datacenter,
    Cluster: info.cluster,
    CreateTime: new Date(info.createdMs).toISOString(),
    Release: info.release,
    Index: info.index,
    Position: info.position,
    LogIndex: info.logIndex,
    LogTerm: info.logTerm,
    Counts: {
      Tokens: totals.tokens,
      LocalTokens: totals.localTokens,
      Policies: totals.policies,
      Roles: totals.roles,
      AuthMethods: totals.authMethods,
      BindingRules: totals.bindingRules,
      Namespaces: totals.namespaces,
    },
    SizeBytes: about.sizeBytes,
    Encrypted: about.isEncrypted,
  };
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

/** `1.2 MB`: three digits are enough to see whether something is missing. */
export function sizeText(sizeBytes: number): string {
  let value = sizeBytes;
  let place = 0;
  for (; value >= 1000 && place < UNITS.length - 1; place += 1) value /= 1000;
  const digits = place === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[place]}`;
}
