// Answers what a token may do: its own policies first, then the defaults of its namespace where those
// say nothing, then the default policy. The same input gives the same answers in any order of its
// sources; when nothing is known of a thing and the default policy denies, the answer is deny.

import type { AccessQuery, Decision } from './access-query.ts';
import { evaluate, type Verdict } from './evaluate.ts';
import { type Explanation, explainVerdict } from './explanation.ts';
import type { PolicySource } from './policy-source.ts';
import { RuleLayer } from './rule-layer.ts';

export interface AuthorizerInput {
  /** Every policy of the token that is valid in this datacenter; see `validInDatacenter`. */
  readonly sources: readonly PolicySource[];
  /** Likewise, the policies that the token's namespace gives to all its tokens. */
  readonly namespaceDefaults: readonly PolicySource[];
  readonly defaultPolicy: 'allow' | 'deny';
}

export interface Authorizer {
  decide(query: AccessQuery): Decision;
  /** Decides by the same way, and says which rule of which policy did it. */
  explain(query: AccessQuery): Explanation;
}

/** Costs time linear in the sources; their rules are merged when a query first needs them. */
export function compileAuthorizer(input: AuthorizerInput): Authorizer {
  return new ChainAuthorizer(input);
}

interface Link {
  readonly reason: 'rule' | 'namespace-default';
  readonly layer: RuleLayer;
}

class ChainAuthorizer implements Authorizer {
  readonly #links: readonly Link[];
  readonly #defaultPolicy: 'allow' | 'deny';

  constructor(input: AuthorizerInput) {
    this.#defaultPolicy = input.defaultPolicy;
    this.#links = [
      { reason: 'rule', layer: new RuleLayer(input.sources) },
      { reason: 'namespace-default', layer: new RuleLayer(input.namespaceDefaults) },
    ];
  }

  decide(query: AccessQuery): Decision {
    const answer = this.#firstAnswer(query);
    return answer === undefined ? this.#undecided(query) : decisionOf(answer.verdict);
  }

  explain(query: AccessQuery): Explanation {
    const answer = this.#firstAnswer(query);
    if (answer === undefined) {
      const decision = this.#undecided(query);
      const nothing = { rule: undefined, overruled: [], consideredCount: 0, isImplied: false };
      return { decision, reason: 'default-policy', ...nothing };
    }
    const { link, verdict } = answer;
    const found = explainVerdict(link.layer, query, verdict);
    const { label } = verdict;
    const isImplied =
      query.resource === 'intention' && label.kind === 'named' && label.attribute === 'policy';
    return { decision: decisionOf(verdict), reason: link.reason, ...found, isImplied };
  }

  #firstAnswer(query: AccessQuery): { readonly link: Link; readonly verdict: Verdict } | undefined {
    for (const link of this.#links) {
      const verdict = evaluate(link.layer, query);
      if (verdict !== undefined) return { link, verdict };
    }
    return undefined;
  }

  /** The rights over ACLs, and over snapshots that hold them, are never given away by default. */
  #undecided(query: AccessQuery): Decision {
    if (query.resource === 'acl' || query.resource === 'snapshot') return 'deny';
    return this.#defaultPolicy;
  }
}

function decisionOf(verdict: Verdict): Decision {
  return verdict.allows ? 'allow' : 'deny';
}
