// The standing facts of what operators ask: the right that it takes, and who can answer it. The table is
// total by type; the operators' door reads it.

import type { OperatorName } from './operator-operations.ts';

export interface OperatorFacts {
  /** Asked in the namespace `default`. Only what changes something takes `operator:write`. */
  readonly right: 'operator:read' | 'operator:write';
  /**
   * Whether it concerns all datacenters: it can be asked of another one, and a token that is local to one
   * cannot change anything by it.
   */
  readonly isOfAll: boolean;
  /** Whether it writes objects of any kind: who does so may write them by other ways, too. */
  readonly writesObjects: boolean;
  /** Whether a server can say it of the group without asking its leader. */
  readonly isKnownEverywhere: boolean;
}

const ofGroup = { isOfAll: false, writesObjects: false, isKnownEverywhere: false };
const groupRead: OperatorFacts = { ...ofGroup, right: 'operator:read' };
const groupChange: OperatorFacts = { ...ofGroup, right: 'operator:write' };
const readOfAll: OperatorFacts = { ...groupRead, isOfAll: true };
const changeOfAll: OperatorFacts = { ...groupChange, isOfAll: true };

export const OPERATOR_TABLE: Readonly<Record<OperatorName, OperatorFacts>> = {
  'raft-configuration': { ...groupRead, isKnownEverywhere: true },
  'raft-remove-peer': groupChange,
  'raft-transfer-leader': groupChange,
  'autopilot-configuration': { ...groupRead, isKnownEverywhere: true },
  'autopilot-set-configuration': groupChange,
  'autopilot-state': groupRead,
  primary: { ...readOfAll, isKnownEverywhere: true },
  'primary-move': changeOfAll,
  divergence: readOfAll,
  'divergence-resubmit': { ...changeOfAll, writesObjects: true },
  'divergence-take': { ...changeOfAll, writesObjects: true },
  'divergence-discard': changeOfAll,
};

/** Whether what another server sends is the name of an operation. */
export function isOperatorName(name: string): name is OperatorName {
  return Object.hasOwn(OPERATOR_TABLE, name);
}

/** Whether it is one that changes nothing, and can be asked again. */
export function isReadOfOperators(name: string): boolean {
  return isOperatorName(name) && OPERATOR_TABLE[name].right === 'operator:read';
}
