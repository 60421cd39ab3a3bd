// One object of the service as clients see it: made, read, replaced on condition, deleted, and made
// anew under the same name. What it says and its ModifyIndex tell its versions apart.

import { hashText, type Model, partitionBy, unknownOutput } from '../linearizability/model.ts';

/** A version of an object; null while there is none. */
export type Version = { readonly value: string; readonly index: number } | null;

export type ObjectInput =
  | { readonly kind: 'create'; readonly key: string; readonly value: string }
  | {
      readonly kind: 'update';
      readonly key: string;
      readonly value: string;
      /** Only on this version. */
      readonly cas: number | undefined;
    }
  | { readonly kind: 'delete'; readonly key: string; readonly cas: number | undefined }
  | { readonly kind: 'read'; readonly key: string };

export type ObjectOutput =
  | { readonly kind: 'written'; readonly index: number }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'taken' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'mismatch' }
  /** For a reason outside of the object: what it links to is not there, or it holds something. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'found'; readonly value: string; readonly index: number };

export const objectModel: Model<Version, ObjectInput, ObjectOutput> = {
  init: () => null,
  step: (version, input, output) => {
    if (output === unknownOutput) return [version];
    const next = after(version, input, output);
    return next === 'impossible' ? [] : [next];
  },
  equal: (left, right) => left?.value === right?.value && left?.index === right?.index,
  hash: (version) => (version === null ? 0 : hashText(version.value) ^ version.index),
  partition: (operations) => partitionBy(operations, ({ input }) => input.key),
  describe: (input, output) =>
    `${JSON.stringify(input)} -> ${output === unknownOutput ? 'unknown' : JSON.stringify(output)}`,
  describeState: (version) => JSON.stringify(version),
};

function after(version: Version, input: ObjectInput, output: ObjectOutput): Version | 'impossible' {
  switch (output.kind) {
    case 'written':
      if (input.kind !== 'create' && input.kind !== 'update') return 'impossible';
      if ((input.kind === 'create') !== (version === null)) return 'impossible';
      if (input.kind === 'update' && !isExpected(version, input.cas)) return 'impossible';
      if (version !== null && output.index <= version.index) return 'impossible';
      return { value: input.value, index: output.index };
    case 'deleted':
      if (input.kind !== 'delete' || version === null) return 'impossible';
      return isExpected(version, input.cas) ? null : 'impossible';
    case 'taken':
      return input.kind === 'create' && version !== null ? version : 'impossible';
    case 'missing':
      return input.kind !== 'create' && version === null ? version : 'impossible';
    case 'mismatch':
      return 'cas' in input && !isExpected(version, input.cas) ? version : 'impossible';
    case 'refused':
      return version;
    case 'found':
      if (input.kind !== 'read' || version === null) return 'impossible';
      return version.value === output.value && version.index === output.index
        ? version
        : 'impossible';
    default:
      return 'impossible';
  }
}

function isExpected(version: Version, cas: number | undefined): boolean {
  return cas === undefined || (version?.index ?? 0) === cas;
}
