// What was thrown as a text for a log line or a refusal, whatever it was.

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
