// Somebody called Jeff, as the selectors and templates of an auth method see him.

import type { AttributeNames, Attributes } from '../../src/auth-methods/identity.ts';

export const NAMES: AttributeNames = {
  selectable: {
    strings: ['serviceaccount.name', 'serviceaccount.namespace'],
    stringMaps: ['value'],
    listMaps: ['list'],
  },
  interpolatable: ['value.name', 'value.team', 'serviceaccount.name'],
};
export const FIELDS = NAMES.selectable;

export const JEFF: Attributes = {
  strings: new Map([
    ['serviceaccount.name', 'web'],
    ['value.name', 'jeff2'],
    ['value.primary_org', 'engineering'],
    ['value.age', '42'],
    ['value.odd key', 'x'],
    ['value.empty', ''],
  ]),
  lists: new Map([
    ['list.groups', ['foo', 'bar']],
    ['list.none', []],
  ]),
};
