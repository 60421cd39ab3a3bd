// What this release cannot read: somebody newer wrote it. It is never guessed at and never passed over.

/** The log says something that is not known here. The process must end before it is applied. */
export class UnreadableEntry extends Error {
  override readonly name = 'UnreadableEntry';

  constructor(index: number, cause: Error) {
    super(
      `entry ${index} of the log is of a newer release than this one (${cause.message}). Nothing of it was ` +
        'applied; start this server with the release of the other servers, and it goes on where it stands',
      { cause },
    );
  }
}

/** The state was written under a level that this release does not read. */
export class UnreadableState extends Error {
  override readonly name = 'UnreadableState';

  constructor({ uses, reads }: { readonly uses: number; readonly reads: number }) {
    super(
      `the data folder is of a newer release: its datacenter uses feature level ${uses}, and this release ` +
        `reads up to ${reads}. Start the release of the other servers on it; nothing was changed`,
    );
  }
}
