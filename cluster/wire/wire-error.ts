// What can be wrong with bytes from the network. Every refusal of the wire has one of these codes.

export type WireErrorCode = 'too-large' | 'too-deep' | 'malformed' | 'unknown-version';

export class WireError extends Error {
  override readonly name = 'WireError';
  readonly code: WireErrorCode;

  constructor(code: WireErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
