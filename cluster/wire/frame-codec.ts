// Frames as bytes: msgpack of positional fields, the first of which is the number of the frame's kind.
// Nothing is trusted before its shape is checked: whatever does not fit is WireDamage, and nothing else is
// ever thrown. What was read may be kept: it holds on to its frame, and to nothing else that came with it.

import { Packr } from 'msgpackr';
import { unreachable } from '../base/unreachable.ts';
import type { Message } from '../raft/message.ts';
import { checkMsgpack } from './check-msgpack.ts';
import {
  type Accepted,
  type CallFrame,
  FIRST_LEVEL,
  type Frame,
  type Hello,
  type Lane,
  MAC_BYTES,
  MESSAGES_MAX,
  NAME_MAX,
  NEWEST_PROTOCOL,
  NONCE_BYTES,
  type Refused,
  type RefusedCode,
  WHY_MAX,
} from './frame.ts';
import { messageFields, messageOf } from './message-codec.ts';
import {
  arrayOf,
  bytesOf,
  countOf,
  exactBytesOf,
  type Fields,
  fieldsOf,
  flagOf,
  namedBy,
  namesByNumber,
  nodeOf,
  textOf,
} from './shape.ts';
import { WireDamage } from './wire-damage.ts';

/** A number is never given another meaning. */
const FRAME_NUMBER: Readonly<Record<Frame['kind'], number>> = {
  hello: 1,
  proof: 2,
  accepted: 3,
  refused: 4,
  messages: 5,
  call: 6,
  answer: 7,
  refusal: 8,
  ping: 9,
  pong: 10,
};

const LANE_NUMBER: Readonly<Record<Lane, number>> = { control: 1, bulk: 2, call: 3 };

const REFUSED_NUMBER: Readonly<Record<RefusedCode, number>> = {
  refused: 1,
  'linked-already': 2,
  busy: 3,
  closing: 4,
  self: 5,
};

const KINDS = namesByNumber(FRAME_NUMBER);
const LANES = namesByNumber(LANE_NUMBER);
const REFUSED_CODES = namesByNumber(REFUSED_NUMBER);

/** Those that every release sends. */
const HELLO_FIELDS = 12;
const REFUSED_FIELDS = 2;
/** Room for fields that later versions add to a hello. */
const FIELDS_MAX = 32;

const packr = new Packr({ useRecords: false });

/** In the layout of a protocol version; those of the handshake have one alone. The bytes belong to the caller. */
export function encodeFrame(frame: Frame, protocol = NEWEST_PROTOCOL): Uint8Array {
  return packr.pack([FRAME_NUMBER[frame.kind], ...fieldsOfFrame(frame, protocol)]);
}

function fieldsOfFrame(frame: Frame, protocol: number): Fields {
  switch (frame.kind) {
    case 'hello':
      return helloFields(frame);
    case 'proof':
      return [frame.mac];
    case 'accepted':
      return [frame.version, frame.mac];
    case 'refused':
      return [REFUSED_NUMBER[frame.code], frame.why.slice(0, WHY_MAX)];
    case 'messages':
      return [frame.messages.map((message) => messageFields(message, protocol))];
    case 'call':
      return [frame.id, frame.method, frame.hops, frame.remainingMs, frame.payload];
    case 'answer':
      return [frame.id, frame.payload];
    case 'refusal':
      return [frame.id, frame.code.slice(0, NAME_MAX), frame.says.slice(0, WHY_MAX)];
    case 'ping':
    case 'pong':
      return [frame.sentAtMs];
    default:
      return unreachable(frame);
  }
}

/** Reads the layout of a protocol version. Takes the bytes over. Throws WireDamage. */
export function decodeFrame(bytes: Uint8Array, protocol = NEWEST_PROTOCOL): Frame {
  const all = arrayOf(unpacked(bytes), 'a frame', FIELDS_MAX);
  const kind = namedBy(all[0], 'the kind of a frame', KINDS);
  const fields = all.slice(1);
  const exactly = (count: number): Fields => fieldsOf(fields, `a frame ${kind}`, count);
  switch (kind) {
    case 'hello':
      return helloOf(fields);
    case 'proof':
      return { kind, mac: macOf(exactly(1)[0]) };
    case 'accepted':
      return acceptedOf(exactly(2));
    case 'refused':
      return refusedOf(fields);
    case 'messages':
      return { kind, messages: messagesOf(exactly(1)[0], protocol) };
    case 'call':
      return callOf(exactly(5));
    case 'answer': {
      const [id, payload] = exactly(2);
      return { kind, id: countOf(id, 'id'), payload: bytesOf(payload, 'payload') };
    }
    case 'refusal': {
      const [id, code, says] = exactly(3);
      const texts = { code: textOf(code, 'code', NAME_MAX), says: textOf(says, 'says', WHY_MAX) };
      return { kind, id: countOf(id, 'id'), ...texts };
    }
    case 'ping':
    case 'pong':
      return { kind, sentAtMs: countOf(exactly(1)[0], 'sentAtMs') };
    default:
      return unreachable(kind);
  }
}

function messagesOf(value: unknown, protocol: number): readonly Message[] {
  const messages = arrayOf(value, 'messages', MESSAGES_MAX);
  return messages.map((message) => messageOf(message, protocol));
}

function unpacked(bytes: Uint8Array): unknown {
  checkMsgpack(bytes);
  try {
    return packr.unpack(ownBytes(bytes));
  } catch (error) {
    throw new WireDamage('the frame is no msgpack', { cause: error });
  }
}

/**
 * Byte strings come out as views of what they are unpacked from, and a frame may be a small piece of what
 * the network read in one go. One copy of the frame costs far less than one of each string.
 */
function ownBytes(bytes: Uint8Array): Uint8Array {
  if (bytes.length * 2 >= bytes.buffer.byteLength) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}

/** A hello keeps its fields for ever, later versions may only add some: else nobody could be told why not. */
function helloFields(hello: Hello): Fields {
  return [
    hello.oldestVersion,
    hello.newestVersion,
    hello.clusterId,
    hello.datacenter,
    hello.node,
    hello.id,
    hello.name,
    hello.programVersion,
    hello.life,
    LANE_NUMBER[hello.lane],
    hello.hasKey,
    hello.nonce,
    hello.federationId,
    hello.reads,
    hello.uses,
  ];
}

function helloOf(fields: Fields): Hello {
  const known = fieldsOf(fields.slice(0, HELLO_FIELDS), 'a frame hello', HELLO_FIELDS);
  const text = (place: number, what: string): string => textOf(known[place], what, NAME_MAX);
  return {
    kind: 'hello',
    oldestVersion: countOf(known[0], 'oldestVersion'),
    newestVersion: countOf(known[1], 'newestVersion'),
    clusterId: text(2, 'clusterId'),
    datacenter: text(3, 'datacenter'),
    node: nodeOf(known[4], 'node'),
    id: text(5, 'id'),
    name: text(6, 'name'),
    programVersion: text(7, 'programVersion'),
    life: text(8, 'life'),
    lane: namedBy(known[9], 'the lane', LANES),
    hasKey: flagOf(known[10], 'hasKey'),
    nonce: exactBytesOf(known[11], 'nonce', NONCE_BYTES),
    federationId: textOf(fields[HELLO_FIELDS] ?? '', 'federationId', NAME_MAX),
    reads: countOf(fields[HELLO_FIELDS + 1] ?? FIRST_LEVEL, 'reads'),
    uses: countOf(fields[HELLO_FIELDS + 2] ?? FIRST_LEVEL, 'uses'),
  };
}

function acceptedOf([version, mac]: Fields): Accepted {
  return { kind: 'accepted', version: countOf(version, 'version'), mac: macOf(mac) };
}

function refusedOf(fields: Fields): Refused {
  const [code, why] = fieldsOf(fields.slice(0, REFUSED_FIELDS), 'a frame refused', REFUSED_FIELDS);
  return {
    kind: 'refused',
    // A later version may know more of them.
    code: REFUSED_CODES.get(countOf(code, 'code')) ?? 'refused',
    why: textOf(why, 'why', WHY_MAX),
  };
}

function callOf([id, method, hops, remainingMs, payload]: Fields): CallFrame {
  return {
    kind: 'call',
    id: countOf(id, 'id'),
    method: textOf(method, 'method', NAME_MAX),
    hops: countOf(hops, 'hops'),
    remainingMs: countOf(remainingMs, 'remainingMs'),
    payload: bytesOf(payload, 'payload'),
  };
}

function macOf(value: unknown): Uint8Array {
  const mac = bytesOf(value, 'mac');
  if (mac.length === 0 || mac.length === MAC_BYTES) return mac;
  throw new WireDamage(`mac has ${mac.length} bytes instead of ${MAC_BYTES}`);
}
