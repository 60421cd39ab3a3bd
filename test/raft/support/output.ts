// What a command prints: log lines by level, indented sections, and nothing at all at level NONE.

import type { EventLevel } from '../../../cluster/raft/events.ts';

const LEVELS = ['DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL', 'NONE'] as const;
const NAMES: readonly string[] = LEVELS;
const LEVEL_WORDS: Readonly<Record<EventLevel, (typeof LEVELS)[number]>> = {
  debug: 'DEBUG',
  info: 'INFO',
  warn: 'WARN',
  error: 'ERROR',
};

/** Collects the lines of one command. */
export class Output {
  #lines: string[] = [];
  #indent = '';
  #level: number;

  constructor() {
    this.#level = 0;
  }

  get isQuiet(): boolean {
    return LEVELS[this.#level] === 'NONE';
  }

  /** Sets the level by name, in any case; returns the one before. */
  setLevel(name: string): string {
    const before = NAMES[this.#level];
    const level = NAMES.indexOf(name.toUpperCase());
    if (level === -1) throw new Error(`no such log level: ${name}`);
    this.#level = level;
    return before ?? 'NONE';
  }

  log(level: EventLevel, words: string): void {
    const word = LEVEL_WORDS[level];
    if (LEVELS.indexOf(word) >= this.#level) this.print(`${word} ${words}`);
  }

  print(text: string): void {
    if (this.isQuiet) return;
    for (const line of text.split('\n')) this.#lines.push(this.#indent + line);
  }

  indented(print: () => void): void {
    const before = this.#indent;
    this.#indent = `${before}  `;
    try {
      print();
    } finally {
      this.#indent = before;
    }
  }

  /** Everything printed since the last take. */
  take(): string {
    const text = this.#lines.join('\n');
    this.#lines = [];
    return text;
  }
}

/** A transcript without its log lines: what happened, apart from how it was told. */
export function withoutLogLines(text: string): string {
  const kept = text.split('\n').filter((line) => !/^\s*(DEBUG|INFO|WARN|ERROR|FATAL) /.test(line));
  return kept.length === 0 ? 'ok' : kept.join('\n');
}
