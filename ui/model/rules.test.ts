// Rules that Python has too, against the table that tests/ui/test_rules.py reads as well.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { foldedName, operatorName, origin, shortNames } from "./frames";
import { inAmdsWords } from "./makers";
import { bare, below, cut, parted } from "./names";
import { change, duration, number, share, size } from "./units";

const rules = JSON.parse(readFileSync(new URL("../../tests/ui/rules.json", import.meta.url), "utf8")) as {
  [name in "duration" | "size" | "number"]: [number, string][];
} & {
  share: [number, number, string][];
  change: [number, string][];
  bare: [string, string][];
  below: [string, string, string][];
  cut: [string, number, string][];
  origin: [string, number][];
  folded: [string, string][];
  operator: [string, string][];
  amd: [string, string][];
  short: { files: string[]; base: string; names: string[] }[];
};

test.each(rules.duration)("duration %d is %s", (value, text) => expect(duration(value)).toBe(text));
test.each(rules.size)("size %d is %s", (value, text) => expect(size(value)).toBe(text));
test.each(rules.number)("number %d is %s", (value, text) => expect(number(value)).toBe(text));
test.each(rules.share)("share %d of %d is %s", (part, whole, text) => expect(share(part, whole)).toBe(text));
test.each(rules.change)("change %d is %s", (value, text) => expect(change(value)).toBe(text));
test.each(rules.bare)("%s is shown as %s", (name, text) => expect(bare(name)).toBe(text));
test.each(rules.below)("%s below %s is %s", (name, parent, text) => expect(below(name, parent)).toBe(text));
test.each(rules.parted)("%s is begin and end", (name, begin, end) => expect(parted(name)).toEqual([begin, end]));
test.each(rules.cut)("%s in %d letters is %s", (name, most, text) => expect(cut(name, most)).toBe(text));
test.each(rules.origin)("code of %s has origin %d", (file, of) => expect(origin(file)).toBe(of));
test.each(rules.folded)("%s folds to %s", (name, text) => expect(foldedName(name)).toBe(text));
test.each(rules.operator)("%s is called %s", (name, text) => expect(operatorName(name)).toBe(text));
test.each(rules.amd)("AMD says %s as %s", (text, said) => expect(inAmdsWords(text)).toBe(said));
test.each(rules.short)("files are shown short: $names", ({ files, base, names }) =>
  expect(files.map((file) => shortNames(files, base).get(file))).toEqual(names),
);
