// A state as a file for operators: bytes that say what they are, and that show every change and every lost
// end. Whether it is encrypted is another layer's matter. Since format 2 it is a gzip file with a tar archive
// in it, so that any gunzip and tar open it, and so do clients that look into what they are given:
//
//   meta.json    the beginning: metaOf below
//   state.bin    one entry for each chunk of a snapshot (snapshot-format.ts): how long the whole gets is not
//                known when its first byte leaves. Entries of one name are read one behind the other.
//   SHA256SUMS   of meta.json, and of all of state.bin, as `sha256sum` writes them
//
// Each entry (archive-tar.ts) is a gzip member of its own (archive-members.ts) that says how long it is, so
// that it can be read by itself. The last member has a check over all members before it (archive-tally.ts),
// which covers also what gunzip does not look at. History: format 1 was not gzip (archive-frame-parser.ts).

import { ArchiveDamage } from './archive-damage.ts';
import { type ArchiveInfo, checkedInfo } from './archive-info.ts';

const ARCHIVE_FORMAT = 2;

export const ENTRY = { meta: 'meta.json', state: 'state.bin', sums: 'SHA256SUMS' } as const;

/** The content of meta.json: what clients expect of a snapshot of Raft, and in `Conclave` what we say. */
export function metaOf(info: ArchiveInfo): Uint8Array {
  const meta = {
    Version: 1,
    ID: `${info.logTerm}-${info.index}-${info.createdMs}`,
    Index: info.index,
    Term: info.logTerm,
    Peers: null,
    Configuration: { Servers: [] },
    ConfigurationIndex: 0,
    Conclave: { format: ARCHIVE_FORMAT, ...info },
  };
  return Buffer.from(JSON.stringify(meta));
}

/** Throws ArchiveDamage for a newer format, and other errors for what is no such content. */
export function infoIn(meta: Uint8Array): ArchiveInfo {
  const { Conclave } = JSON.parse(Buffer.from(meta).toString('utf8')) as Partial<
    Record<'Conclave', { readonly format?: unknown }>
  >;
  const { format, ...info } = Conclave ?? {};
  if (typeof format === 'number' && format > ARCHIVE_FORMAT) {
    const says = `the archive has format ${format}, this release knows ${ARCHIVE_FORMAT}`;
    throw new ArchiveDamage(`${says}: a newer release wrote it`);
  }
  if (format !== ARCHIVE_FORMAT) throw new TypeError('it does not say its format');
  return checkedInfo(info);
}
