// The one refusal of a log that cannot be trusted. A node with such a log must not vote or acknowledge
// anything: it promised what it no longer has.

const ADVICE =
  'This node is quarantined: it must not take part with this data. If other nodes have the log, move ' +
  'the data folder away and let this node join anew; if this was the only one, restore both of its ' +
  'stores from one copy.';

/** Opening found a hole, a changed record, or less than was promised. The message says where. */
export class LogDamage extends Error {
  override readonly name = 'LogDamage';
  readonly code = 'quarantine';
  /** The log index that is damaged or missing; undefined when it is not about one entry. */
  readonly index: number | undefined;

  constructor(index: number | undefined, found: string) {
    super(`the log is damaged: ${found}. ${ADVICE}`);
    this.index = index;
  }
}
