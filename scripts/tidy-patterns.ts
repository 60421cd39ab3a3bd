// Regular expressions that an input can make slow. The built-in engine tries again and again; what is
// sent to a server must never decide how often. scslre finds patterns whose time grows faster than
// the text, and it reads literals alone, so the product has no other ones.

import { analyse } from 'scslre';
import ts from 'typescript';

export interface PatternFault {
  readonly node: ts.Node;
  readonly says: string;
}

/** What is wrong with the pattern that `node` is; undefined when nothing is, or it is none. */
export function patternFaultOf(node: ts.Node): PatternFault | undefined {
  if (ts.isNewExpression(node) && node.expression.getText() === 'RegExp')
    return { node, says: 'a pattern that is made while running cannot be checked' };
  if (!ts.isRegularExpressionLiteral(node)) return undefined;
  const end = node.text.lastIndexOf('/');
  const pattern = { source: node.text.slice(1, end), flags: node.text.slice(end + 1) };
  const [report] = analyse(pattern).reports;
  if (report === undefined) return undefined;
  const growth = report.exponential ? 'exponential' : 'quadratic';
  return { node, says: `${node.text} takes ${growth} time on some texts` };
}
