// What operators can have done to the group of servers, as src/node does it; declared here, where the
// rights to it are asked. The methods of Group speak for this server alone: those that change something
// need it to lead, and reject with AclError 'unavailable' when it does not.

import type {
  ShownAutopilot,
  ShownAutopilotSettings,
  ShownAutopilotState,
  ShownGroup,
} from '../../api/render/shown-operator.ts';

export interface Group {
  /** Who belongs to it, as this server knows. */
  servers(): ShownGroup;
  autopilot(): ShownAutopilot;
  /** Only the leader knows how each server does. */
  autopilotState(): ShownAutopilotState;
  /**
   * `id` is one of `servers()`. Resolves when the server is no longer in the group. `requireAllowed` throws where the
   * operator may not do it any more, and is asked whenever it is proposed: it may have waited for another change.
   */
  remove(id: string, requireAllowed: () => void): Promise<void>;
  /** Resolves when another server leads: the one with this id, or any. */
  transferLeadership(id: string | undefined): Promise<void>;
  /** False: the index was not `ifIndex`, and nothing was changed. `requireAllowed` as with `remove`. */
  setAutopilot(
    settings: ShownAutopilotSettings,
    ifIndex: number | undefined,
    requireAllowed: () => void,
  ): Promise<boolean>;
}

/** The state as of one moment, whatever is applied meanwhile. To be closed, read or not. */
export interface SavedState {
  /** The archive, from its first byte to its last. Iterated once. */
  chunks(): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

/** An archive on its way in. Nothing is changed before `finish`. */
export interface RestoreIntake {
  /** Rejects with AclError 'malformed' that says what is wrong with the archive, and where. */
  add(chunk: Uint8Array): Promise<void>;
  /**
   * All was added: checks that it is whole, then makes it the state of the group. Resolves with the
   * index of the datacenter once a quorum has it on disk. Rejects as `add`, or with 'unavailable' or
   * 'outcome-unknown'.
   */
  finish(): Promise<{ readonly index: number }>;
  /** Forgets what was added. Harmless after `finish`. */
  abandon(): Promise<void>;
}

export interface Archives {
  /** What this server has applied so far. */
  save(): SavedState;
  /**
   * At the leader. `requireAllowed` throws where the operator may not do it any more, and is asked just before
   * the archive becomes the state: it may be long in coming. Rejects with 'unavailable' when another one is
   * under way.
   */
  beginRestore(requireAllowed: () => void): Promise<RestoreIntake>;
}
