// What both notations (HCL and JSON) are parsed into before their meaning is read: objects of items,
// lists and literals, each with its place.

import type { Position } from './rule-set.ts';

export interface KeyNode {
  readonly text: string;
  readonly position: Position;
}

/** `key "label" … value`; at least one key. */
export interface ItemNode {
  readonly keys: readonly [KeyNode, ...KeyNode[]];
  readonly value: ValueNode;
}

export interface ObjectNode {
  readonly kind: 'object';
  readonly items: readonly ItemNode[];
  readonly position: Position;
}

export interface ListNode {
  readonly kind: 'list';
  readonly elements: readonly ValueNode[];
  /** Whether it may stand where blocks are wanted: in HCL it is none, but was taken for them. */
  readonly mayBeBlocks: boolean;
  readonly position: Position;
}

export interface LiteralNode {
  /** `number` is a whole one; a number with a fraction is a `float`. */
  readonly kind: 'string' | 'number' | 'float' | 'bool' | 'null';
  /** Decoded text of a string; other literals as they were written. */
  readonly text: string;
  readonly position: Position;
}

export type ValueNode = ObjectNode | ListNode | LiteralNode;

/**
 * Whether somebody gives the text, or it was taken before: what is refused of the one stays in the other, whose tokens
 * would lose all that they may.
 */
export type Standing = 'given' | 'stored';
