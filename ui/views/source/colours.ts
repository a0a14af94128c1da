// A source text as coloured pieces, line by line. Prism reads it; what it makes stays text, never markup.

import "./prism_manual";
import Prism from "prismjs/components/prism-core";
import "prismjs/components/prism-clike";
import "prismjs/components/prism-c";
import "prismjs/components/prism-cpp";
import "prismjs/components/prism-python";

export type Piece = [kind: string, text: string];

/** Names of Prism that have a colour here. */
const KINDS: Record<string, string> = {
  comment: "comment",
  string: "string",
  "triple-quoted-string": "string",
  "string-interpolation": "string",
  char: "string",
  keyword: "keyword",
  boolean: "keyword",
  builtin: "builtin",
  number: "number",
  function: "function",
  "class-name": "function",
  decorator: "decorator",
  macro: "decorator",
};

const MOST_LETTERS = 1_000_000;

/** Lines of pieces; a language that is not known is text of one colour. */
export function coloured(text: string, file: string): Piece[][] {
  const grammar = Prism.languages[/\.(?:cu|cuh|c|cc|cpp|h|hpp)$/.test(file) ? "cpp" : "python"];
  const lines: Piece[][] = [[]];
  const put = (kind: string, piece: string) => {
    piece.split("\n").forEach((part, i) => {
      if (i) lines.push([]);
      if (part) lines[lines.length - 1].push([kind, part]);
    });
  };
  const walk = (token: string | Prism.Token, kind: string) => {
    if (typeof token === "string") return put(kind, token);
    const own = KINDS[token.type] ?? (token.type === "interpolation" ? "" : kind);
    for (const part of Array.isArray(token.content) ? token.content : [token.content]) walk(part, own);
  };
  const known = text.length <= MOST_LETTERS ? Prism.tokenize(text, grammar) : [text];
  for (const token of known) walk(token, "");
  return lines;
}
