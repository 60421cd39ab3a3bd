// Bytes from another node that are not what they should be. Whoever reads them closes the connection
// they came on, and nothing else.

/** The message says what is wrong with the bytes. */
export class WireDamage extends Error {
  override readonly name = 'WireDamage';
}
