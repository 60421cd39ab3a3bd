// How much of what a duty is about is read in one piece, by whoever looks for it and by every server that applies
// what comes of it: rows can be a megabyte long, and nothing else has its turn meanwhile.

export const IN_ONE_PIECE_BYTES = 256 * 1024;
