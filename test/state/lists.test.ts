// A namespace that has all tokens is listed from their rows, and not by its index: whoever asks must not be
// able to tell.

import t from 'tap';
import type { KvWrite } from '../../cluster/platform/kv.ts';
import { DEFAULT_NAMESPACE } from '../../src/acl/ids.ts';
import type { Token } from '../../src/acl/token.ts';
import { pageKeyOf } from '../../src/state/reads/lists.ts';
import type { Page } from '../../src/state/view.ts';
import { FailingKv } from '../support/failing-kv.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import {
  aCommand,
  aNamespace,
  aNamespaceName,
  aToken,
} from '../support/state-and-service/fixtures.ts';
import { BUILTINS, collect, MachineHarness } from '../support/state-and-service/machine-harness.ts';

const TEAM = aNamespaceName('team');
const DEFAULT = { kind: 'one', name: DEFAULT_NAMESPACE } as const;

/** A store whose batch is on the disk for a moment before it says so. */
class LandedKv extends FailingKv {
  onLanded: () => void = () => undefined;

  override async write(writes: readonly KvWrite[]): Promise<void> {
    await super.write(writes);
    this.onLanded();
  }
}

/** With every second number, so that others find room between them. */
async function withTokens(kv: LandedKv, count: number): Promise<MachineHarness<LandedKv>> {
  const harness = new MachineHarness(kv);
  await harness.run(
    aCommand(BUILTINS),
    aCommand({ type: 'namespace.set', presence: 'create', namespace: aNamespace('team') }),
    ...Array.from({ length: count }, (_, each) =>
      aCommand({ type: 'token.set', presence: 'create', token: aToken(2 * each + 2) }),
    ),
  );
  return harness;
}

function tokensOf(
  { machine }: Pick<MachineHarness, 'machine'>,
  page: Page = {},
): Promise<readonly Token[]> {
  return collect(machine.tokens(DEFAULT, undefined, page));
}

t.test('lists: pages of a namespace are the same with and without others', async (t) => {
  const harness = await withTokens(new LandedKv(new MemoryKv()), 7);
  const pagesOf = async (limit: number): Promise<readonly (readonly Token[])[]> => {
    const pages: (readonly Token[])[] = [];
    let after: string | undefined;
    do {
      const page = await tokensOf(harness, { ...(after === undefined ? {} : { after }), limit });
      pages.push(page);
      const last = page.at(-1);
      after = last && pageKeyOf(last);
    } while (after !== undefined);
    return pages;
  };
  const limits = [1, 2, 3, 8, 20];
  const alone = await Promise.all(limits.map(pagesOf));
  t.ok((alone[0]?.length ?? 0) > 7);
  // Before those of default, between them, and behind them.
  const numbers = [1, 5, 1000];
  await harness.run(
    ...numbers.map((each) =>
      aCommand({
        type: 'token.set',
        presence: 'create',
        token: aToken(each, { namespace: TEAM }),
      }),
    ),
  );
  t.same(await Promise.all(limits.map(pagesOf)), alone);
});

t.test('lists: a token of another namespace that has just landed is not among them', async (t) => {
  const kv = new LandedKv(new MemoryKv());
  const harness = await withTokens(kv, 3);
  const before = await tokensOf(harness);
  const lists: Promise<readonly Token[]>[] = [];
  kv.onLanded = () => lists.push(tokensOf(harness), tokensOf(harness, { limit: 2 }));
  const token = aToken(3, { namespace: TEAM });
  await harness.run(aCommand({ type: 'token.set', presence: 'create', token }));
  t.same(await Promise.all(lists), [before, before.slice(0, 2)]);
});
