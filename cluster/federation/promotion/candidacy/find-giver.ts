// From whom a candidate takes what it lacks, and why not from others that have more.

import { messageOf } from '../../../base/message-of.ts';
import { RpcError } from '../../../transport/calls/rpc-error.ts';
import type { GlobalCursor } from '../../global-log.ts';
import { PROMOTION_REFUSAL } from '../promotion-frames.ts';
import { refused } from '../promotion-refusal.ts';
import type { Standing } from './ballot.ts';
import { isBehindRestore, type RestOfLog } from './rest-of-log.ts';
import type { Fork, WayBack } from './way-back.ts';

export interface Giver {
  readonly giver: Standing | undefined;
  /** Where it has to be followed from, because it is on another chain. */
  readonly fork?: Fork;
  /** Why others that have more do not give it; empty, or begins with a semicolon. */
  readonly says: string;
  /** Of those: whose entries lead nowhere, as what they have more lies behind a restore. */
  readonly restored: readonly string[];
}

export const NO_GIVER: Giver = { giver: undefined, says: '', restored: [] };

export interface GivingDeps {
  /** The own one. */
  readonly datacenter: string;
  readonly rest: Pick<RestOfLog, 'requireGiven'>;
  readonly wayBack: Pick<WayBack, 'find'>;
}

/**
 * Who has most of those that give what follows, where they parted if need be; and why the others do not. Nothing
 * changes. Rejects with PromotionRefusal where somebody has what cannot be read here.
 */
export async function giverOf(
  { datacenter, rest, wayBack }: GivingDeps,
  further: readonly Standing[],
  own: { readonly cursor: GlobalCursor; readonly mayGoBack: boolean },
): Promise<Giver> {
  const restored: string[] = [];
  let says = '';
  for (const giver of further) {
    try {
      await rest.requireGiven(giver.datacenter, own.cursor);
      return { giver, says, restored };
    } catch (error) {
      requireReadable(giver, error);
      says += `; ${giver.datacenter} does not give what it has more: ${messageOf(error)}`;
      if (isBehindRestore(error)) {
        restored.push(giver.datacenter);
        continue;
      }
    }
    if (!own.mayGoBack) continue;
    try {
      return { giver, fork: await wayBack.find(giver), says, restored };
    } catch (error) {
      requireReadable(giver, error);
      says += `; ${datacenter} cannot go back to where that chain left its own: ${messageOf(error)}`;
      if (isBehindRestore(error)) restored.push(giver.datacenter);
    }
  }
  return { giver: undefined, says, restored };
}

/** Throws PromotionRefusal. */
function requireReadable(giver: Standing, error: unknown): void {
  const unreadable = unreadableText(giver, error);
  if (unreadable !== undefined) throw refused(unreadable);
}

/**
 * Why what that one has more cannot be read here; undefined where it was not given for another reason. Nobody passes
 * over it, not with a majority either: it is there, and can be taken by whoever is upgraded.
 */
export function unreadableText({ datacenter }: Standing, error: unknown): string | undefined {
  const refusal = error instanceof RpcError ? error.refusal : undefined;
  if (refusal?.code !== PROMOTION_REFUSAL.unreadable) return undefined;
  return `${datacenter} has more, and ${refusal.says}`;
}
