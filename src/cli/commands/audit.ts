// `conclave audit check`: whether audit logs are what their server wrote.

import type { Command } from 'commander';
import { messageOf } from '../../../cluster/base/message-of.ts';
import { type AuditCheck, AuditChecker, AuditMismatch } from '../../audit/check-audit-log.ts';
import { addGroup, addLocalLeaf } from '../command-line.ts';
import { CommandFailed } from '../failed.ts';
import { field, type Part } from '../show/block.ts';
import type { Surroundings } from '../surroundings.ts';
import { UsageError } from '../usage-error.ts';

/** No record is as long. */
const LINE_CHARS_MAX = 1024 * 1024;

const ORDER =
  'name the files of one server in the order in which they were written, and none twice: audit.log.2 audit.log.1 audit.log';

/** Adds `audit` and its command to the program. */
export function addAuditCommands(program: Command, surroundings: Surroundings): void {
  const audit = addGroup(program, 'audit', 'check audit logs');
  addLocalLeaf(audit, surroundings, {
    name: 'check',
    says: 'check that every record is linked with the one before it; asks no server',
    argument: ['[files...]', 'audit logs of one server, the oldest first, or - for standard input'],
    run: async (printer, _options, ...paths) => {
      const given = paths.filter((path) => path !== undefined);
      if (given.length === 0) throw new UsageError('say which one: a file');
      const check = await checked(printer.surroundings, given);
      await printer.show(fieldsOf(check), () => partsOf(check));
    },
  });
}

async function checked(surroundings: Surroundings, paths: readonly string[]): Promise<AuditCheck> {
  const checker = new AuditChecker();
  let number = 0;
  try {
    for (const path of paths) {
      number = 0;
      checker.beginFile();
      for await (const { text, isEnded } of linesOf(surroundings, path)) {
        number += 1;
        checker.line(text, `${path}, line ${number}`, isEnded);
      }
    }
    return checker.end();
  } catch (error) {
    if (!(error instanceof AuditMismatch)) throw error;
    // Names sort the newest first.
    const next = number === 1 && paths.length > 1 ? `\nNext: ${ORDER}` : '';
    throw new CommandFailed(`${error.message}${next}`, { cause: error });
  }
}

interface Line {
  readonly text: string;
  readonly isEnded: boolean;
}

async function* linesOf(surroundings: Surroundings, path: string): AsyncGenerator<Line> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunksOf(surroundings, path)) {
    // No record has a zero in it; a power cut leaves very many.
    const text = decoder.decode(chunk, { stream: true }).replaceAll(/\0+/g, '\0');
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LINE_CHARS_MAX) throw new CommandFailed(`${path} is no audit log`);
    for (const text of lines) yield { text, isEnded: true };
  }
  if (rest !== '') yield { text: rest, isEnded: false };
}

async function* chunksOf(surroundings: Surroundings, path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* surroundings.readChunks(path);
  } catch (error) {
    throw new UsageError(`cannot read ${path}: ${messageOf(error)}`);
  }
}

function partsOf(check: AuditCheck): readonly Part[] {
  return [
    field('Records', check.records),
    field('Lost', check.lost),
    field('Torn', check.torn),
    field('Unfinished', check.unfinished),
    field('Linked With', check.firstPrevious),
    field('Last Link', check.lastLink),
  ];
}

function fieldsOf(check: AuditCheck): object {
  return {
    Records: check.records,
    Lost: check.lost,
    Torn: check.torn,
    Unfinished: check.unfinished,
    LinkedWith: check.firstPrevious,
    LastLink: check.lastLink,
  };
}
