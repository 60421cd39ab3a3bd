// What the service manager of the system is told, where it asks to be: systemd, for a unit of `Type=notify`.
// It listens on a datagram socket, which Node cannot speak to, so its own tool does (docs/decisions/0027).

export interface ServiceNews {
  /** `ready` when it listens; `stopping` when it was told to end. */
  readonly state?: 'ready' | 'stopping';
  /** For whoever looks at the unit: one line. */
  readonly status: string;
}

const TOOL = 'systemd-notify';
const TOOL_MAX_MS = 10_000;
const WORD = { ready: 'READY=1', stopping: 'STOPPING=1' } as const;

/**
 * Does nothing where no service manager asks (NOTIFY_SOCKET). Resolves when it was told. Rejects with what
 * the tool said, or that it is missing: the manager then takes the server for one that does not come up.
 */
export async function tellServiceManager(
  { state, status }: ServiceNews,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  const { NOTIFY_SOCKET, PATH } = environment;
  if (NOTIFY_SOCKET === undefined || NOTIFY_SOCKET === '') return;
  // Loaded here, because most servers have nobody to tell.
  const { spawn } = await import('node:child_process');
  const words = [...(state === undefined ? [] : [WORD[state]]), `STATUS=${status}`];
  const child = spawn(TOOL, words, {
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: TOOL_MAX_MS,
    env: { NOTIFY_SOCKET, PATH },
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    said += piece.slice(0, 1_000);
  });
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`${TOOL} ended with ${signal ?? `status ${code}`}: ${said.trim()}`));
    });
  });
}
