// Whose answer counts of several servers of a datacenter, and when no other one is asked.

import t from 'tap';
import { askLeader } from '../../../../cluster/federation/promotion/ask-leader.ts';
import { PROMOTION_REFUSAL } from '../../../../cluster/federation/promotion/promotion-frames.ts';
import type { NetAddress } from '../../../../cluster/platform/net.ts';
import { RpcError } from '../../../../cluster/transport/calls/rpc-error.ts';

const QUESTION = { datacenter: 'dc2', method: 'm', payload: new Uint8Array(0), deadlineMs: 1 };
const DONE = Uint8Array.of(1);

/** Whom it asked until it knew, and what came of it. */
async function asked(...says: readonly (Error | Uint8Array)[]): Promise<readonly unknown[]> {
  const ports: number[] = [];
  const call = async ({ port }: NetAddress): Promise<Uint8Array> => {
    ports.push(port);
    const said = says[port]!;
    if (said instanceof Error) throw said;
    return said;
  };
  const addressesOf = () => says.map((_, port) => ({ host: 'h', port }));
  const came = await askLeader({ addressesOf, call }, QUESTION).catch((error: unknown) => error);
  return [ports.length, came];
}

function refused(code: string): RpcError {
  return new RpcError('refused', code, { code, says: code });
}

t.test('ask: who does not lead, or is not there, leads on to the next', async (test) => {
  const elsewhere = refused(PROMOTION_REFUSAL.notLeading);
  const away = new RpcError('unreachable', 'away');
  test.same(await asked(away, elsewhere, DONE), [3, DONE]);
  test.same(await asked(elsewhere, away), [2, away]);
  const [count, error] = await asked();
  test.match([count, (error as Error).message], [0, 'no address of dc2 is known']);
});

t.test('ask: nobody else is asked behind an answer, or what may have been done', async (test) => {
  const all = [
    refused(PROMOTION_REFUSAL.refused),
    refused(PROMOTION_REFUSAL.undecided),
    new RpcError('timeout', 'late'),
    new RpcError('lost', 'lost'),
    new Error('a fault of this server'),
  ];
  for (const each of all) test.same(await asked(each, DONE), [1, each], each.message);
});
