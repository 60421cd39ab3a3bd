// What an operator asked for, as it may stand in the log of a server: people put secrets where ids belong.

import type { SecretId } from '../../acl/ids.ts';
import { idsIn, secretsMeant } from '../../acl/values/ids-in-text.ts';
import { excerpt } from '../../rules/source-text.ts';
import type { StateView } from '../../state/view.ts';

/** Texts and values made of them, without what of `input` is the secret of a token, and each of them short. */
export function loggable(
  view: Pick<StateView, 'tokenBySecret'>,
  input: unknown,
): (value: unknown) => unknown {
  const isSecret = (text: string): boolean =>
    secretsMeant(text).some((each) => view.tokenBySecret(each as SecretId) !== undefined);
  const secrets = textsIn(input).filter(isSecret);
  const shown = (value: unknown): unknown => {
    if (typeof value === 'string') {
      return excerpt(secrets.reduce((text, each) => text.replaceAll(each, HIDDEN), value));
    }
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shown(each)]));
  };
  return shown;
}

const HIDDEN = '<hidden>';

/** Each text in it, without the blanks around it, and what in it looks like an id. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value.trim(), ...idsIn(value)].filter(Boolean);
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
