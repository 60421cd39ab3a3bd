// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is how templates look.
// Templates, the little language that makes names out of attributes, and the names that both may use.

import t from 'tap';
import {
  bindingTargetOf,
  checkNamespaceRules,
} from '../../src/auth-methods/binding/binding-names.ts';
import {
  checkTemplate,
  interpolate,
  sampleOf,
} from '../../src/auth-methods/binding/interpolate.ts';
import { NAMES } from './attributes.ts';

t.test('template: fills in attributes in lower case', (t) => {
  const attributes = new Map([
    ['value.name', 'JeFF'],
    ['value.kelvin', '\u212aate'],
    ['__proto__', 'P'],
  ]);
  const table: readonly (readonly [string, string])[] = [
    ['plain-Text', 'plain-Text'],
    ['a-${value.name}-${ value.name }', 'a-jeff-jeff'],
    ['$${value.name}', '${value.name}'],
    ['$5 ${value.name}', '$5 jeff'],
    ['${value.kelvin}', '\u212aate'],
    ['${__proto__}', 'p'],
  ];
  for (const [template, expected] of table) t.equal(interpolate(template, attributes), expected);
  for (const template of [
    '${value.other}',
    '${constructor}',
    '${value.name',
    '${}',
    '${a b}',
    '${${value.name}}',
  ]) {
    t.throws(
      () => interpolate(template, attributes),
      { code: 'login-refused', message: /^error interpreting template: / },
      template,
    );
  }
  t.throws(() => checkTemplate('x${value.nope}', ['value.name']), {
    code: 'invalid',
    message: '2: unknown variable "value.nope"',
  });
  t.equal(sampleOf('x-${value.name}', ['value.name']), 'x-sample');
  t.end();
});

t.test('template: neither it nor what it becomes is longer than a name can be', (t) => {
  t.equal(interpolate('x'.repeat(4096), new Map()).length, 4096);
  t.throws(() => interpolate('x'.repeat(4097), new Map()), { code: 'login-refused' });
  t.throws(() => checkTemplate('x'.repeat(4097), []), { code: 'invalid' });
  const attributes = new Map([['a', 'x'.repeat(1024)]]);
  t.equal(interpolate('${a}'.repeat(4), attributes).length, 4096);
  t.throws(() => interpolate(`${'${a}'.repeat(4)}x`, attributes), { code: 'login-refused' });
  t.end();
});

t.test('written rules: selectors and templates are tried against the names of the method', (t) => {
  const target = bindingTargetOf('m', NAMES);
  target.requireSelector('value.anything == x');
  t.throws(() => target.requireSelector('nope == x'), { code: 'invalid' });
  t.equal(target.sampleOf('svc-${value.team}'), 'svc-sample');
  t.throws(() => target.sampleOf('${value.unmapped}'), { code: 'invalid' });
  checkNamespaceRules([{ selector: '', bindNamespace: 'team-${value.team}' }], NAMES);
  t.throws(() => checkNamespaceRules([{ selector: 'x', bindNamespace: 'a' }], NAMES), {
    message: /^Invalid Auth Method: NamespaceRules\[0\]\.Selector is invalid: 1:2: /,
  });
  t.throws(() => checkNamespaceRules([{ selector: '', bindNamespace: 'A_b' }], NAMES), {
    message: /^Invalid Auth Method: NamespaceRules\[0\]\.BindNamespace is invalid: /,
  });
  t.end();
});
