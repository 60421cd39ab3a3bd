// What each operator endpoint asks of the operators' door, and how its answer is written. Everything
// that these routes have in common is in serve-operator.ts.

import { AclError } from '../../acl/error.ts';
import { autopilotSettingsOf } from '../../api/bodies/autopilot-settings.ts';
import type { AutopilotConfigurationBody } from '../../api/bodies/operator-schemas.ts';
import type { MovePrimaryBody } from '../../api/bodies/primary-schemas.ts';
import {
  OPERATOR_ENDPOINTS,
  type OperatorEndpointName,
} from '../../api/endpoints/endpoints-operator.ts';
import {
  renderAutopilotConfiguration,
  renderAutopilotState,
  renderRaftConfiguration,
  renderServersHealth,
  renderTransferred,
} from '../../api/render/render-operator.ts';
import {
  renderDivergence,
  renderPrimary,
  renderPrimaryMoved,
  renderResubmitted,
} from '../../api/render/render-primary.ts';
import type { ShownPosition } from '../../api/render/shown-federation.ts';
import type { MoveMode } from '../../api/render/shown-primary.ts';
import type { Call } from '../../service/call.ts';
import type {
  MoveWish,
  Operator,
  OperatorInput,
  OperatorName,
  OperatorOutput,
  ServerName,
} from '../../service/operators/operator-operations.ts';
import { positionOf, wholeNumberOf } from '../serving/call-of.ts';
import { LIMITS } from '../settings.ts';
import { type Query, textOf } from '../wire/query.ts';
import type { Dialect } from '../wire/status.ts';

/** What a request brings, after decoding. */
export interface OperatorRequest {
  readonly query: Query;
  /** Undefined where the endpoint takes no body. */
  readonly body: unknown;
  readonly dialect: Dialect;
  readonly call: Call;
}

export interface OperatorAnswer {
  readonly json: string;
  readonly status: number;
}

/** Asks the door and writes down what it says. Rejects with AclError. */
export type OperatorRoute = (
  operator: Operator,
  request: OperatorRequest,
) => Promise<OperatorAnswer>;

/** The parts in which routes differ; `render` throws where an output is a refusal in some dialect. */
function route<Name extends OperatorName>(
  name: Name,
  input: (request: OperatorRequest) => OperatorInput<Name>,
  render: (output: OperatorOutput<Name>, request: OperatorRequest) => string,
  statusOf: (output: OperatorOutput<Name>) => number = () => 200,
): OperatorRoute {
  return async (operator, request) => {
    const output = await operator.run(name, input(request), request.call);
    return { json: render(output, request), status: statusOf(output) };
  };
}

const nothing = () => ({});
const transferLeader = route(
  'raft-transfer-leader',
  // Deployed clients send an empty id where any server will do.
  ({ query }) => ({ id: textOf(query, 'id') }),
  renderTransferred,
);

export const OPERATOR_ROUTES: Readonly<Record<OperatorEndpointName, OperatorRoute>> = {
  'operator.raft-configuration': route('raft-configuration', nothing, renderRaftConfiguration),
  'operator.raft-remove-peer': route(
    'raft-remove-peer',
    ({ query }) => ({ server: serverNameOf(query) }),
    () => 'true',
  ),
  'operator.raft-transfer-leader': transferLeader,
  'operator.raft-transfer-leader-by-put': transferLeader,
  'operator.autopilot-configuration': route(
    'autopilot-configuration',
    nothing,
    renderAutopilotConfiguration,
  ),
  'operator.autopilot-set-configuration': route(
    'autopilot-set-configuration',
    ({ query, body }) => ({
      settings: autopilotSettingsOf(
        body as AutopilotConfigurationBody,
        OPERATOR_ENDPOINTS['operator.autopilot-set-configuration'].body.label,
      ),
      ifIndex: wholeNumberOf(query, 'cas'),
    }),
    renderWhetherSet,
  ),
  'operator.autopilot-health': route(
    'autopilot-state',
    nothing,
    renderServersHealth,
    ({ isHealthy }) =>
      isHealthy ? 200 : OPERATOR_ENDPOINTS['operator.autopilot-health'].alsoAnswers.status,
  ),
  'operator.autopilot-state': route('autopilot-state', nothing, renderAutopilotState),
  'operator.primary': route('primary', nothing, renderPrimary),
  'operator.move-primary': route(
    'primary-move',
    ({ body }) => moveWishOf(body as MovePrimaryBody),
    renderPrimaryMoved,
  ),
  'operator.divergence': route(
    'divergence',
    ({ query }) => ({
      limit: Math.min(wholeNumberOf(query, 'limit') ?? DIVERGENCE_SHOWN, LIMITS.pageMax),
    }),
    renderDivergence,
  ),
  'operator.resubmit-divergent': route(
    'divergence-resubmit',
    ({ query }) => ({ position: requiredPositionOf(query), cas: wholeNumberOf(query, 'cas') }),
    renderResubmitted,
  ),
  'operator.discard-divergent': route(
    'divergence-discard',
    ({ query }) => ({ position: discardedOf(query) }),
    () => 'true',
  ),
};

/** Entries that are listed where nobody says how many. */
const DIVERGENCE_SHOWN = 100;

const MODES: ReadonlySet<string> = new Set<MoveMode>(['hand-over', 'election', 'forced']);

function moveWishOf({ Datacenter, Mode, Epoch, AcceptLoss }: MovePrimaryBody): MoveWish {
  const mode = Mode === undefined || Mode === '' ? 'hand-over' : Mode;
  if (!MODES.has(mode)) {
    const given = JSON.stringify(mode.slice(0, GIVEN_MAX));
    throw new AclError('malformed', `Mode must be one of ${[...MODES].join(', ')}, not ${given}`);
  }
  return {
    datacenter: Datacenter === '' ? undefined : Datacenter,
    mode: mode as MoveMode,
    epoch: Epoch,
    acceptsLoss: AcceptLoss === true,
    from: undefined,
  };
}

/** So much of what the caller sent is repeated. */
const GIVEN_MAX = 64;

function requiredPositionOf(query: Query): ShownPosition {
  const position = positionOf(query, 'position');
  if (position !== undefined) return position;
  throw new AclError('malformed', 'Must specify ?position with the entry, as epoch.seq');
}

/** Undefined: all of them, which has to be said plainly. */
function discardedOf(query: Query): ShownPosition | undefined {
  const all = query.get('all');
  if (all === undefined) return requiredPositionOf(query);
  if (!PLAINLY_ALL.has(all)) throw new AclError('malformed', 'Invalid all: it takes no value');
  if (!query.has('position')) return undefined;
  throw new AclError('malformed', 'Must specify only one of ?position or ?all');
}

const PLAINLY_ALL: ReadonlySet<string> = new Set(['', 'true', '1']);

function serverNameOf(query: Query): ServerName {
  const id = textOf(query, 'id');
  const address = textOf(query, 'address');
  if (query.has('id') && query.has('address')) {
    throw new AclError('malformed', 'Must specify only one of ?id or ?address');
  }
  if (id !== undefined) return { id };
  if (address !== undefined) return { address };
  throw new AclError(
    'malformed',
    "Must specify either ?id with the server's ID or ?address with IP:port of peer to remove",
  );
}

/** Deployed clients look for `false`; for everyone else nothing that failed is a 200. */
function renderWhetherSet(wasSet: boolean, { dialect, query }: OperatorRequest): string {
  if (wasSet) return 'true';
  if (dialect === 'consul') return 'false';
  const text = `the ModifyIndex of the autopilot configuration is not ${query.get('cas')}`;
  throw new AclError('cas-mismatch', text);
}
