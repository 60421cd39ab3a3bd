// How commands are laid out in the log. The number of a command
// is for ever: one that is no longer written keeps its number and its reader. History of the formats:
// 1 is the first and only one. Presence 4 came later, and commands from 23 on: a release before them ends
// at such a command. Who asked stands at the end where it is known: a release before that passes it over.

import type { AccessorId } from '../../acl/ids.ts';
import {
  cursorFields,
  cursorOf,
  datacenterFields,
  datacenterOf,
  epochFields,
  epochOf,
} from '../global-log/replication.ts';
import {
  type Field,
  type Fields,
  keyOfNumber,
  orNull,
  orUndefined,
  pack,
  requireFormat,
  unpack,
} from '../rows/layout/packing.ts';
import {
  AUTH_METHOD_CODEC,
  BINDING_RULE_CODEC,
  NAMESPACE_CODEC,
  POLICY_CODEC,
  ROLE_CODEC,
  TOKEN_CODEC,
} from '../rows/layout/record-codec.ts';
import { NOT_STAMPED } from '../rows/layout/stamp.ts';
import type { Change, ChangeOf, ChangeType, Command, Presence, RequestMark } from './commands.ts';

const FORMAT = 1;

/** Numbers of the types of commands in the log. */
export const CHANGE_NUMBER: Readonly<Record<ChangeType, number>> = {
  'token.set': 1,
  'token.delete': 2,
  'token.reap': 3,
  'policy.set': 4,
  'policy.delete': 5,
  'role.set': 6,
  'role.delete': 7,
  'auth-method.set': 8,
  'auth-method.delete': 9,
  'binding-rule.set': 10,
  'binding-rule.delete': 11,
  'namespace.set': 12,
  'namespace.delete': 13,
  bootstrap: 14,
  'ensure-builtins': 15,
  'request-id.trim': 16,
  'pending-login.set': 17,
  'pending-login.delete': 18,
  'restore.begin': 19,
  'restore.chunk': 20,
  'restore.commit': 21,
  'restore.abandon': 22,
  'global-log.begin': 23,
  'global-log.apply': 24,
  'global-log.trim': 25,
  'request-id.forget': 26,
  'datacenters.set': 27,
  'global-snapshot.begin': 28,
  'global-snapshot.chunk': 29,
  'global-snapshot.carry': 30,
  'global-snapshot.commit': 31,
  'epoch.promise': 32,
  'epoch.start': 33,
  'epoch.fence': 34,
  'divergent.discard': 35,
  'divergent.drop': 36,
  'datacenter.remove': 40,
  'datacenter.allow': 41,
  'federation.adopt': 42,
  'level.raise': 43,
};

const PRESENCE_NUMBER: Readonly<Record<Presence, number>> = {
  create: 1,
  update: 2,
  either: 3,
  'create-drawn': 4,
};

interface ChangeCodec<C extends Change> {
  fieldsOf(change: C): Fields;
  changeOf(fields: Fields): Omit<C, 'type'>;
}

const CHANGE_CODECS: { readonly [Type in ChangeType]: ChangeCodec<ChangeOf<Type>> } = {
  'token.set': {
    fieldsOf: ({ presence, token }) => [PRESENCE_NUMBER[presence], TOKEN_CODEC.fieldsOf(token)],
    changeOf: ([presence, token]) => ({
      presence: presenceOf(presence) as ChangeOf<'token.set'>['presence'],
      token: TOKEN_CODEC.objectOf(token as Fields, NOT_STAMPED),
    }),
  },
  'token.delete': {
    fieldsOf: ({ accessorId }) => [accessorId],
    changeOf: ([accessorId]) => ({ accessorId }) as ChangeOf<'token.delete'>,
  },
  'token.reap': {
    fieldsOf: ({ accessorIds }) => [accessorIds],
    changeOf: ([accessorIds]) => ({ accessorIds }) as ChangeOf<'token.reap'>,
  },
  'policy.set': {
    fieldsOf: ({ presence, policy }) => [PRESENCE_NUMBER[presence], POLICY_CODEC.fieldsOf(policy)],
    changeOf: ([presence, policy]) => ({
      presence: presenceOf(presence) as 'create' | 'update',
      policy: POLICY_CODEC.objectOf(policy as Fields, NOT_STAMPED),
    }),
  },
  'policy.delete': {
    fieldsOf: ({ id }) => [id],
    changeOf: ([id]) => ({ id }) as ChangeOf<'policy.delete'>,
  },
  'role.set': {
    fieldsOf: ({ presence, role }) => [PRESENCE_NUMBER[presence], ROLE_CODEC.fieldsOf(role)],
    changeOf: ([presence, role]) => ({
      presence: presenceOf(presence) as 'create' | 'update',
      role: ROLE_CODEC.objectOf(role as Fields, NOT_STAMPED),
    }),
  },
  'role.delete': {
    fieldsOf: ({ id }) => [id],
    changeOf: ([id]) => ({ id }) as ChangeOf<'role.delete'>,
  },
  'auth-method.set': {
    fieldsOf: ({ presence, method }) => [
      PRESENCE_NUMBER[presence],
      AUTH_METHOD_CODEC.fieldsOf(method),
    ],
    changeOf: ([presence, method]) => ({
      presence: presenceOf(presence) as 'either',
      method: AUTH_METHOD_CODEC.objectOf(method as Fields, NOT_STAMPED),
    }),
  },
  'auth-method.delete': {
    fieldsOf: ({ namespace, name }) => [namespace, name],
    changeOf: ([namespace, name]) => ({ namespace, name }) as ChangeOf<'auth-method.delete'>,
  },
  'binding-rule.set': {
    fieldsOf: ({ presence, rule }) => [
      PRESENCE_NUMBER[presence],
      BINDING_RULE_CODEC.fieldsOf(rule),
    ],
    changeOf: ([presence, rule]) => ({
      presence: presenceOf(presence) as 'create' | 'update',
      rule: BINDING_RULE_CODEC.objectOf(rule as Fields, NOT_STAMPED),
    }),
  },
  'binding-rule.delete': {
    fieldsOf: ({ id }) => [id],
    changeOf: ([id]) => ({ id }) as ChangeOf<'binding-rule.delete'>,
  },
  'namespace.set': {
    fieldsOf: ({ presence, namespace }) => [
      PRESENCE_NUMBER[presence],
      NAMESPACE_CODEC.fieldsOf(namespace),
    ],
    changeOf: ([presence, namespace]) => ({
      presence: presenceOf(presence) as ChangeOf<'namespace.set'>['presence'],
      namespace: NAMESPACE_CODEC.objectOf(namespace as Fields, NOT_STAMPED),
    }),
  },
  'namespace.delete': {
    fieldsOf: ({ name }) => [name],
    changeOf: ([name]) => ({ name }) as ChangeOf<'namespace.delete'>,
  },
  bootstrap: {
    fieldsOf: ({ token, resetIndex }) => [TOKEN_CODEC.fieldsOf(token), orNull(resetIndex)],
    changeOf: ([token, resetIndex]) => ({
      token: TOKEN_CODEC.objectOf(token as Fields, NOT_STAMPED),
      resetIndex: orUndefined(resetIndex as number | null),
    }),
  },
  'ensure-builtins': {
    fieldsOf: ({ policies, tokens, namespace }) => [
      policies.map(POLICY_CODEC.fieldsOf),
      tokens.map(TOKEN_CODEC.fieldsOf),
      NAMESPACE_CODEC.fieldsOf(namespace),
    ],
    changeOf: ([policies, tokens, namespace]) => ({
      policies: (policies as readonly Fields[]).map((each) =>
        POLICY_CODEC.objectOf(each, NOT_STAMPED),
      ),
      tokens: (tokens as readonly Fields[]).map((each) => TOKEN_CODEC.objectOf(each, NOT_STAMPED)),
      namespace: NAMESPACE_CODEC.objectOf(namespace as Fields, NOT_STAMPED),
    }),
  },
  'request-id.trim': {
    fieldsOf: ({ keys }) => [keys],
    changeOf: ([keys]) => ({ keys: keys as readonly Uint8Array[] }),
  },
  'pending-login.set': {
    fieldsOf: ({ key, value, expiresMs }) => [key, value, expiresMs],
    changeOf: ([key, value, expiresMs]) =>
      ({ key, value, expiresMs }) as ChangeOf<'pending-login.set'>,
  },
  'pending-login.delete': {
    fieldsOf: ({ keys }) => [keys],
    changeOf: ([keys]) => ({ keys }) as ChangeOf<'pending-login.delete'>,
  },
  'restore.begin': {
    fieldsOf: ({ id }) => [id],
    changeOf: ([id]) => ({ id }) as ChangeOf<'restore.begin'>,
  },
  'restore.chunk': {
    fieldsOf: ({ id, number, rows }) => [id, number, rows],
    changeOf: ([id, number, rows]) => ({ id, number, rows }) as ChangeOf<'restore.chunk'>,
  },
  'restore.commit': {
    fieldsOf: ({ id, chunkCount, chain, metaRow }) => [id, chunkCount, chain, metaRow],
    changeOf: ([id, chunkCount, chain, metaRow]) =>
      ({ id, chunkCount, chain, metaRow }) as ChangeOf<'restore.commit'>,
  },
  'restore.abandon': {
    fieldsOf: ({ id }) => [id],
    changeOf: ([id]) => ({ id }) as ChangeOf<'restore.abandon'>,
  },
  'global-log.begin': {
    fieldsOf: ({ datacenter, primary, isWitness }) => [datacenter, primary, isWitness],
    changeOf: ([datacenter, primary, isWitness]) =>
      ({ datacenter, primary, isWitness }) as ChangeOf<'global-log.begin'>,
  },
  'global-log.apply': {
    fieldsOf: ({ epoch, from, entries, to }) => [
      epoch,
      cursorFields(from),
      entries,
      cursorFields(to),
    ],
    changeOf: ([epoch, from, entries, to]) => ({
      epoch: epoch as number,
      from: cursorOf(from as Fields),
      entries: entries as readonly Uint8Array[],
      to: cursorOf(to as Fields),
    }),
  },
  'global-log.trim': {
    fieldsOf: ({ upTo }) => [upTo],
    changeOf: ([upTo]) => ({ upTo }) as ChangeOf<'global-log.trim'>,
  },
  'global-snapshot.begin': {
    fieldsOf: ({ id, header }) => [id, header],
    changeOf: ([id, header]) => ({ id, header }) as ChangeOf<'global-snapshot.begin'>,
  },
  'global-snapshot.chunk': {
    fieldsOf: ({ id, number, rows }) => [id, number, rows],
    changeOf: ([id, number, rows]) => ({ id, number, rows }) as ChangeOf<'global-snapshot.chunk'>,
  },
  'global-snapshot.carry': {
    fieldsOf: ({ id, number, keys, isLast }) => [id, number, keys, isLast],
    changeOf: ([id, number, keys, isLast]) =>
      ({ id, number, keys, isLast }) as ChangeOf<'global-snapshot.carry'>,
  },
  'global-snapshot.commit': {
    fieldsOf: ({ id }) => [id],
    changeOf: ([id]) => ({ id }) as ChangeOf<'global-snapshot.commit'>,
  },
  'epoch.promise': {
    fieldsOf: ({ epoch, candidate, at }) => [epoch, candidate, [at.epoch, at.seq]],
    changeOf: ([epoch, candidate, at]) => {
      const [atEpoch, seq] = at as readonly number[];
      return { epoch, candidate, at: { epoch: atEpoch, seq } } as ChangeOf<'epoch.promise'>;
    },
  },
  'epoch.start': {
    // The last field came with level 3, and is there only where it is true.
    fieldsOf: ({ epoch, promises, isForced, isFromFork }) =>
      isFromFork ? [epoch, promises, isForced, true] : [epoch, promises, isForced],
    changeOf: ([epoch, promises, isForced, isFromFork = false]) =>
      ({ epoch, promises, isForced, isFromFork }) as ChangeOf<'epoch.start'>,
  },
  'epoch.fence': {
    fieldsOf: ({ epochs }) => [epochs.map(epochFields)],
    changeOf: ([epochs]) => ({ epochs: (epochs as readonly Fields[]).map(epochOf) }),
  },
  'divergent.discard': {
    fieldsOf: ({ epoch, upTo }) => [epoch, upTo],
    changeOf: ([epoch, upTo]) => ({ epoch, upTo }) as ChangeOf<'divergent.discard'>,
  },
  'divergent.drop': {
    fieldsOf: ({ epoch, seq }) => [epoch, seq],
    changeOf: ([epoch, seq]) => ({ epoch, seq }) as ChangeOf<'divergent.drop'>,
  },
  'datacenters.set': {
    fieldsOf: ({ datacenters, majoritySeq }) => [datacenters.map(datacenterFields), majoritySeq],
    changeOf: ([datacenters, majoritySeq]) => ({
      datacenters: (datacenters as readonly Fields[]).map(datacenterOf),
      majoritySeq: majoritySeq as number,
    }),
  },
  'datacenter.remove': {
    fieldsOf: ({ name, majoritySeq, isForced }) => [name, majoritySeq, isForced],
    changeOf: ([name, majoritySeq, isForced]) =>
      ({ name, majoritySeq, isForced }) as ChangeOf<'datacenter.remove'>,
  },
  'datacenter.allow': {
    fieldsOf: ({ name }) => [name],
    changeOf: ([name]) => ({ name }) as ChangeOf<'datacenter.allow'>,
  },
  'federation.adopt': {
    fieldsOf: ({ federationId }) => [federationId],
    changeOf: ([federationId]) => ({ federationId }) as ChangeOf<'federation.adopt'>,
  },
  'level.raise': {
    fieldsOf: ({ level }) => [level],
    changeOf: ([level]) => ({ level }) as ChangeOf<'level.raise'>,
  },
  'request-id.forget': {
    fieldsOf: ({ keys }) => [keys],
    changeOf: ([keys]) => ({ keys }) as ChangeOf<'request-id.forget'>,
  },
};

/** The payload of a log entry. */
export function encodeCommand(command: Command): Uint8Array {
  const { change, timeMs, cas, request, principal } = command;
  // The type of a change picks the codec of that very type.
  const codec = CHANGE_CODECS[change.type] as unknown as ChangeCodec<Change>;
  const mark = request === undefined ? null : [request.key, request.fingerprint];
  const body = codec.fieldsOf(change);
  const fields = [FORMAT, CHANGE_NUMBER[change.type], timeMs, orNull(cas), mark, body];
  return pack(principal === undefined ? fields : [...fields, principal]);
}

/**
 * Reads a payload. A format or number that is not known here ends the process: a node that skips
 * what others apply is not the same state any more.
 */
export function decodeCommand(payload: Uint8Array): Command {
  const [format, number, timeMs, cas, mark, body, principal] = unpack(payload);
  requireFormat('command', format, FORMAT);
  const type = keyOfNumber(CHANGE_NUMBER, number);
  const codec = CHANGE_CODECS[type] as unknown as ChangeCodec<Change>;
  return {
    change: { type, ...codec.changeOf(body as Fields) } as Change,
    timeMs: timeMs as number,
    cas: orUndefined(cas as number | null),
    request: mark === null ? undefined : requestMarkOf(mark as Fields),
    ...(principal !== undefined && { principal: principal as AccessorId }),
  };
}

function requestMarkOf([key, fingerprint]: Fields): RequestMark {
  return { key, fingerprint } as RequestMark;
}

function presenceOf(number: Field | undefined): Presence {
  return keyOfNumber(PRESENCE_NUMBER, number);
}
