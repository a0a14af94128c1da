import { expect, test } from "vitest";
import type { Profile } from "./profile";
import { samePath } from "./same_path";
import { drawn } from "./testing/drawing";

const rowOf = (profile: Profile, name: string) =>
  [...profile.parent.keys()].find((row) => profile.name(row) === name) as number;

test("a call path is found again in a later look, whatever its row", async () => {
  const early = await drawn(`
  process train.py
    thread Main
      python main @ t.py:10
        operator mm | time=100
`);
  const later = await drawn(`
  process train.py
    thread Other
      operator mm | time=1
    thread Main
      python main @ t.py:9
        operator mm | time=7
      python main @ t.py:10
        operator exp | time=7
        operator mm | time=200
`);
  const row = samePath(early, rowOf(early, "mm"), later);
  expect(later.name(row)).toBe("mm");
  expect(later.metrics.values("time").own[row]).toBe(200);
});

test("of a path that is there no more the part that is", async () => {
  const early = await drawn(`
  process train.py
    python main @ t.py:10
      operator mm | time=100
`);
  const later = await drawn(`
  process train.py
    python main @ t.py:10
      operator exp | time=7
`);
  expect(later.name(samePath(early, rowOf(early, "mm"), later))).toBe("main");
  expect(samePath(early, 0, later)).toBe(0);
});
