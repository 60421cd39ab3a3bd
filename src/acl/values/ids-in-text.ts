// What in a text looks like an id: people put secrets where ids and names belong, with something beside them.

/** What looks like an id, as it stands there: with something beside it, as copied, or as the rest of a path. */
export function idsIn(text: string): readonly string[] {
  return text.match(ID) ?? [];
}

/** The secrets that such a text gives away: whoever reads one in other letters, or without its hyphens, has it. */
export function secretsMeant(id: string): readonly string[] {
  const usual = id.toLowerCase().replaceAll('-', '').replace(DIGITS, '$1-$2-$3-$4-$5');
  return [id, usual, usual.toUpperCase()];
}

const ID = /[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}/gi;
const DIGITS = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/;
