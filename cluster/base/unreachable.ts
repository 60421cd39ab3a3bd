// The end of every switch over a closed set: a forgotten case does not compile, and a value that
// should not exist stops the program with that value in the message.

/** Never returns. Call it in the `default` branch of a switch over a union. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
}
