// The few elements of XML that the answers of AWS need.

import t from 'tap';
import { parseXml, textAt } from '../../src/auth-methods/aws/xml.ts';

t.test('xml: reads elements and refuses all else', (t) => {
  const root = parseXml(
    '<?xml version="1.0"?>\n<a:R xmlns="u"><B> x&amp;&#x41; </B><C/><D>1</D><D>2</D></a:R>\n',
  );
  t.equal(root.name, 'R');
  t.equal(textAt(root, 'B'), ' x&A ');
  t.equal(textAt(root, 'C'), '');
  t.equal(textAt(root, 'D'), undefined, 'an element that stands twice is no answer');
  for (const text of [
    ...[
      '',
      'x',
      '{"a":"<R/>"}',
      '<R>',
      '</R>',
      '<R></S>',
      '<R/><R/>',
      'x<R/>',
      '<R/>x',
      '<R>&foo;</R>',
    ],
    ...[
      '<!DOCTYPE a [<!ENTITY x "y">]><R>&x;</R>',
      '<R><!-- c --></R>',
      '<R><![CDATA[x]]></R>',
      '<R>&amp</R>',
    ],
    ...['<a>'.repeat(100) + '</a>'.repeat(100), `<R>${'<b/>'.repeat(10_001)}</R>`],
  ]) {
    t.throws(() => parseXml(text), /expected XML/, text.slice(0, 30));
  }
  t.end();
});
