// The outside as auth methods see it: what the assembly handed in, within the bounds that hold for all of them.

import type { AuthMethod } from '../../acl/auth-method.ts';
import { RequestsUnderWay } from './requests-under-way.ts';
import type { Surroundings } from './surroundings.ts';
import { UnansweredLog } from './unanswered-log.ts';

export interface Outside extends Surroundings {
  readonly unanswered: UnansweredLog;
  /** For the logins of one method, whose requests are counted. */
  readonly of: (method: AuthMethod) => Outside;
}

/** As given, for what logins share; each use of one auth method goes through `of`. */
export function outsideOf(surroundings: Surroundings): Outside {
  const requests = new RequestsUnderWay(surroundings.http);
  const unanswered = new UnansweredLog(surroundings);
  const of = (method: AuthMethod): Outside => {
    return { ...surroundings, http: requests.clientOf(method), unanswered, of };
  };
  return { ...surroundings, http: requests.clientOfLoads(), unanswered, of };
}
