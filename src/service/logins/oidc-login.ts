// The two halves of a login at an outside identity provider. Between them the pending login lies in
// the state, so that any node can finish it; it is taken away before the second half begins, so that
// a callback works once.

import { must } from '../../../cluster/base/assert.ts';
import { sha256 } from '../../../cluster/platform/sha256.ts';
import type { AuthMethod } from '../../acl/auth-method.ts';
import { AclError } from '../../acl/error.ts';
import type { Identity } from '../../auth-methods/identity.ts';
import type { PendingLogin } from '../../auth-methods/oidc/oidc.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import type { Request, Service } from '../service.ts';
import { untilNotOvertaken } from '../writes/under-way.ts';
import { countedLogin, mintToken, requireLoginMethod } from './login.ts';

export async function oidcAuthUrl(
  service: Service,
  input: OperationInput<'oidc.auth-url'>,
  request: Request,
): Promise<OperationOutput<'oidc.auth-url'>> {
  const method = requireLoginMethod(service, request, input);
  const { redirectUri, clientNonce, meta } = input;
  const { authUrl, pending } = await service.authMethods.oidcFlow.authUrl({
    method,
    redirectUri,
    clientNonce,
    meta,
  });
  await keep(service, pending, reignOf(request));
  return { authUrl };
}

export async function oidcCallback(
  service: Service,
  input: OperationInput<'oidc.callback'>,
  request: Request,
): Promise<OperationOutput<'oidc.callback'>> {
  const method = requireLoginMethod(service, request, input);
  const result = await countedLogin(service, method, async () => {
    requireWritable(service, method);
    const pending = await takePending(service, input, request);
    const { identity, meta } = await finishAtProvider(service, method, pending, input);
    const { clock, settings } = service;
    // Its state is used up: whatever it has to wait for, it cannot be run again from the beginning.
    return untilNotOvertaken({ clock, limitMs: settings.leaderWaitMs }, () =>
      mintToken(service, { method, identity, meta, flow: 'oidc' }, request),
    );
  });
  return result;
}

/** Who came back from the provider, and the metadata that the login was begun with. */
export async function finishAtProvider(
  service: Service,
  method: AuthMethod,
  pending: PendingLogin | undefined,
  { state, code, clientNonce }: OperationInput<'oidc.callback'>,
): Promise<{ readonly identity: Identity; readonly meta: PendingLogin['meta'] }> {
  const { oidcFlow } = service.authMethods;
  const identity = await oidcFlow.callback({ method, pending, state, code, clientNonce });
  return { identity, meta: pending?.meta ?? {} };
}

/** Its state would be used up for a token that cannot be written now. Throws why not. */
function requireWritable({ federation }: Service, { tokenLocality }: AuthMethod): void {
  const closed = tokenLocality === 'global' ? federation.closedBecause() : undefined;
  if (closed !== undefined) throw closed;
}

function reignOf({ attempt }: Request): number {
  return must(attempt, 'a login is a write').reign;
}

/** In the reign in which it was counted, or not at all. */
async function keep(service: Service, pending: PendingLogin, reign: number): Promise<void> {
  await service.pendingLogins.begin(pending, reign);
  try {
    await store(service, pending, reign);
  } catch (error) {
    await service.pendingLogins.end(pending.state, reign);
    throw error;
  }
}

async function store(service: Service, pending: PendingLogin, reign: number): Promise<void> {
  const change = {
    type: 'pending-login.set',
    key: pending.state,
    value: Buffer.from(JSON.stringify(pending), 'utf8'),
    expiresMs: pending.expiresAtMs,
  } as const;
  const timeMs = service.clock.wallMs();
  const command = { change, timeMs, cas: undefined, request: undefined };
  const outcome = await service.propose(command, reign);
  if (outcome.kind === 'refused') throw new AclError(outcome.code, outcome.message);
}

/**
 * What was begun, whose state is used up; undefined where there is no such state any more. Two callbacks with one state
 * may both find it. The log remembers the first that takes it away, and refuses the other, whose fingerprint differs.
 */
export async function takePending(
  service: Service,
  { state }: Pick<OperationInput<'oidc.callback'>, 'state'>,
  request: Request,
): Promise<PendingLogin | undefined> {
  const stored = service.view.pendingLogin(state);
  if (stored === undefined) return undefined;
  const outcome = await service.propose({
    change: { type: 'pending-login.delete', keys: [state] },
    timeMs: service.clock.wallMs(),
    cas: undefined,
    request: {
      key: sha256(Buffer.from(`pending login ${state}`, 'utf8')),
      fingerprint: service.random.bytes(32),
    },
  });
  if (outcome.kind === 'refused') return undefined;
  await service.pendingLogins.end(state, reignOf(request));
  return JSON.parse(Buffer.from(stored.value).toString('utf8')) as PendingLogin;
}
