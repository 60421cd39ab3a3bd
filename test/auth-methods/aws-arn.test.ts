// Which names of AWS are those of somebody who can log in, and which of them a method means.

import t from 'tap';
import { isBindableArn, matchesArn, principalOf } from '../../src/auth-methods/aws/aws-arn.ts';

const ROLE = 'arn:aws:iam::123456789012:role/ops';
const SESSION = 'arn:aws:sts::123456789012:assumed-role/ops/i-0f';

t.test('aws-iam: reads and matches ARNs by the table', (t) => {
  t.match(principalOf(SESSION), {
    kind: 'role',
    name: 'ops',
    accountId: '123456789012',
    canonicalArn: ROLE,
  });
  t.match(principalOf('arn:aws-cn:iam::123456789012:user/a/b/jeff'), {
    kind: 'user',
    name: 'jeff',
    canonicalArn: 'arn:aws-cn:iam::123456789012:user/jeff',
  });
  for (const arn of [
    '',
    'arn:aws:iam::123456789012:root',
    'arn:aws:sts::123456789012:federated-user/x',
    'arn:aws:sts::123456789012:assumed-role/a',
    'arn:aws:sts::123456789012:assumed-role/a/b/c',
    'arn:aws:sts::123456789012:role/x',
    'arn:aws:sts::123456789012:other-role/a/b',
    'arn:aws:iam::123456789012:assumed-role/a/b',
    'urn:aws:iam::123456789012:role/x',
    'arn:aws:iam::123456789012:group/x',
    'arn:aws:iam::12:role/x',
    'arn:aws:iam:eu:123456789012:role/x',
    'arn:aws:iam::123456789012:role/',
    'arn:evil:iam::123456789012:role/x',
    `${ROLE}:x`,
    `${ROLE} `,
  ]) {
    t.equal(principalOf(arn), undefined, arn);
  }
  for (const arn of [
    ROLE,
    'arn:aws:iam::123456789012:role/a/*',
    'arn:aws:iam::123456789012:user/*',
    'arn:aws:iam::123456789012:*',
    'arn:aws:iam::123456789012:role/op*',
  ]) {
    t.ok(isBindableArn(arn), arn);
  }
  for (const arn of [
    '*',
    'arn:aws:iam::*',
    'arn:aws:iam::*:role/x',
    'arn:aws:iam::123456789012:*/x',
    'arn:aws:iam::123456789012:role/*/x',
    'arn:aws:iam::123456789012:role/**',
    'arn:aws:iam::1234*',
    'x:arn:aws:iam::123456789012:*',
    SESSION,
  ]) {
    t.notOk(isBindableArn(arn), arn);
  }
  t.ok(matchesArn(ROLE, ROLE));
  t.notOk(matchesArn(ROLE, `${ROLE}2`));
  t.ok(matchesArn('arn:aws:iam::123456789012:role/o*', ROLE));
  t.notOk(matchesArn('arn:aws:iam::123456789012:role/x*', ROLE));
  t.notOk(matchesArn('arn:aws:iam::123456789012:role/o*', `x${ROLE}`));
  t.end();
});
