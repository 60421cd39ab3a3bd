// The calls by name: `client.token.readSelf({…})` for the endpoint `token.read-self`. Both the types
// and the functions are made from the endpoint names, so a new endpoint appears here by itself.

import {
  type Answer,
  CALLABLE,
  type CallArguments,
  type CallName,
  type CallOutput,
} from './call-types.ts';

type Camel<Text extends string> = Text extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Text;

type NamedCall<Name extends CallName> = (
  ...input: CallArguments<Name>
) => Promise<Answer<CallOutput<Name>>>;

type GroupOf<Name extends string> = Name extends `${infer Group}.${string}` ? Camel<Group> : never;

type Members<Group extends string> = {
  readonly [Name in CallName as Name extends `${infer Head}.${infer Tail}`
    ? Camel<Head> extends Group
      ? Camel<Tail>
      : never
    : never]: NamedCall<Name>;
};

/** One function an endpoint: grouped by what stands before the dot, or alone. */
export type NamedCalls = {
  readonly [Group in GroupOf<CallName>]: Members<Group>;
} & {
  readonly [Name in CallName as Name extends `${string}.${string}`
    ? never
    : Camel<Name>]: NamedCall<Name>;
};

/** Builds the named calls over one generic `call`. */
export function namedCalls(
  call: (name: CallName, input?: unknown) => Promise<unknown>,
): NamedCalls {
  const calls: Record<string, unknown> = {};
  for (const name of Object.keys(CALLABLE) as CallName[]) {
    const named = (input?: unknown): Promise<unknown> => call(name, input);
    const [first, second] = name.split('.').map(camel);
    if (second === undefined) calls[first!] = named;
    else calls[first!] = { ...(calls[first!] as object | undefined), [second]: named };
  }
  return calls as unknown as NamedCalls;
}

function camel(text: string): string {
  return text.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
