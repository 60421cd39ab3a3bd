// What operators ask, as values: names, inputs and outputs of what src/service/operators/operator.ts runs. All of
// it is plain data, so that a question can be forwarded to the leader as it is.

import type { ShownPosition } from '../../api/render/shown-federation.ts';
import type {
  ShownAutopilot,
  ShownAutopilotSettings,
  ShownAutopilotState,
  ShownGroup,
} from '../../api/render/shown-operator.ts';
import type {
  MoveMode,
  ShownDivergence,
  ShownMove,
  ShownPrimary,
} from '../../api/render/shown-primary.ts';
import type { Call } from '../call.ts';
import type { ReadMeta } from '../views.ts';
import type { RestoreIntake, SavedState } from './operator-port.ts';

type Nothing = Record<never, never>;
/** It went well: there is nothing more to say. */
type Done = 'done';

/** Which server is meant. */
export type ServerName = { readonly id: string } | { readonly address: string };

export interface OperatorTypes {
  'raft-configuration': { input: Nothing; output: ShownGroup };
  'raft-remove-peer': { input: { readonly server: ServerName }; output: Done };
  'raft-transfer-leader': { input: { readonly id: string | undefined }; output: Done };
  'autopilot-configuration': { input: Nothing; output: ShownAutopilot };
  'autopilot-set-configuration': {
    input: {
      readonly settings: ShownAutopilotSettings;
      readonly ifIndex: number | undefined;
    };
    output: boolean;
  };
  'autopilot-state': { input: Nothing; output: ShownAutopilotState };
  primary: { input: Nothing; output: ShownPrimary };
  'primary-move': { input: MoveWish; output: ShownMove };
  divergence: { input: { readonly limit: number }; output: ShownDivergence };
  'divergence-resubmit': {
    input: { readonly position: ShownPosition; readonly cas: number | undefined };
    output: Resubmitted;
  };
  /** The primary's part of it: the bytes of the entry, as its datacenter has kept them. */
  'divergence-take': {
    input: { readonly entry: Uint8Array; readonly cas: number | undefined };
    output: Resubmitted;
  };
  /** Without a position, all of them. */
  'divergence-discard': { input: { readonly position: ShownPosition | undefined }; output: Done };
}

export interface MoveWish {
  /** Which one shall be primary; undefined: the one that is asked. */
  readonly datacenter: string | undefined;
  readonly mode: MoveMode;
  /** With 'forced': the next one, so that nobody does it twice. */
  readonly epoch: number | undefined;
  /** With 'forced': that the loss of what others may have is known and taken. */
  readonly acceptsLoss: boolean;
  /** The datacenter that sent the wish on; undefined: a client asks. */
  readonly from: string | undefined;
}

/** Where the change stands in the primary's log, and its index. */
export interface Resubmitted {
  readonly position: ShownPosition;
  readonly index: number;
}

export type OperatorName = keyof OperatorTypes;
export type OperatorInput<Name extends OperatorName> = OperatorTypes[Name]['input'];
export type OperatorOutput<Name extends OperatorName> = OperatorTypes[Name]['output'];

/** Runs one operation at the leader, wherever it is. Rejects with AclError. */
export type RunAtLeader = <Name extends OperatorName>(
  name: Name,
  input: OperatorInput<Name>,
  call: Call,
) => Promise<OperatorOutput<Name>>;

/** Runs one operation in another datacenter, by any of its servers: one try. Rejects as `Federation.run`. */
export type RunInDatacenter = <Name extends OperatorName>(
  datacenter: string,
  name: Name,
  asked: { readonly input: OperatorInput<Name>; readonly call: Call },
) => Promise<OperatorOutput<Name>>;

/** A saved state, and what the headers of its answer say. */
export interface SavedArchive extends SavedState {
  readonly meta: Omit<ReadMeta, 'watch'>;
}

/** The operators' door. Rejects with AclError for everything that the caller can be told. */
export interface Operator {
  /** Answered by the leader, or by this server where the call is `stale` and it can. */
  readonly run: RunAtLeader;
  /** The state of this server, as fresh as the call demands. */
  save(call: Call): Promise<SavedArchive>;
  /** Rights are asked before a byte is taken. */
  beginRestore(call: Call): Promise<RestoreIntake>;
}

/** What other servers ask of this one when it leads. Both reject with LeaderAway when it does not. */
export interface OperatorDoor extends Operator {
  readonly runForOther: RunAtLeader;
  beginRestoreForOther(call: Call): Promise<RestoreIntake>;
  /** Runs what a server of another datacenter sends, wherever the leader of this one is. */
  readonly runForDatacenter: RunAtLeader;
}
