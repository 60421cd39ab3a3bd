// Functions that the engine makes old from the start: it takes one that is written straight into a property for a
// method, and what it knows stays, garbage or not, until all old objects are looked through (decision 0047).

import ts from 'typescript';

/** Whether `node` writes the text of a function into a property. One that has a name first is made young. */
export function writesOldFunction(node: ts.Node): boolean {
  if (!ts.isBinaryExpression(node)) return false;
  const { left, operatorToken, right } = node;
  const isWrite =
    operatorToken.kind >= ts.SyntaxKind.FirstAssignment &&
    operatorToken.kind <= ts.SyntaxKind.LastAssignment;
  const isProperty = ts.isPropertyAccessExpression(left) || ts.isElementAccessExpression(left);
  return isWrite && isProperty && (ts.isArrowFunction(right) || ts.isFunctionExpression(right));
}
