// Puts another method in the place of one of the product's, for as long as a run lasts.

/** The result puts the real one back. */
export function replaced<Owner extends object, Name extends keyof Owner & string>(
  owner: Owner,
  name: Name,
  make: (real: Owner[Name]) => Owner[Name],
): () => void {
  const real = owner[name];
  owner[name] = make(real);
  return () => {
    owner[name] = real;
  };
}

/** Takes out what was put in, the last one first. */
export function together(...undos: readonly (() => void)[]): () => void {
  return () => {
    for (const undo of [...undos].reverse()) undo();
  };
}
