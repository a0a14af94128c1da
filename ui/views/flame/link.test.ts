import { expect, test } from "vitest";
import { drawn } from "../../model/testing/drawing";
import { firstState, fromLink, toLink } from "./state";

const TREE =
  "process a\n  thread t\n    python main @ /u/a.py:3\n      operator add | time=1 call_time=1\n      operator mm | time=3 call_time=3";
/** Another file of the same program: rows are numbered otherwise. */
const OTHER = "process a\n  thread t\n    python main @ /u/a.py:3\n      operator mm | time=9 call_time=9";

test("what is shown at first needs no words", async () => {
  const profile = await drawn(TREE);
  expect(toLink(firstState(profile), profile, null)).toBe("#flame");
});

test("a link reads back, in another file of the program too, by its path", async () => {
  const [profile, other] = [await drawn(TREE), await drawn(OTHER)];
  const row = [...profile.parent.keys()].find((at) => profile.name(at) === "mm") as number;
  const state = { ...firstState(profile), colour: "heat" as const, search: "mm", foldLayers: false };
  const parameters = new URLSearchParams(toLink(state, profile, row).split("?")[1]);
  expect(fromLink(parameters, profile)).toEqual({ colour: "heat", search: "mm", foldLayers: false, row });
  const there = fromLink(parameters, other).row as number;
  expect(there).not.toBe(row);
  expect(other.name(there)).toBe("mm");
  expect(fromLink(new URLSearchParams("path=nonsense.1.2"), other)).toEqual({});
});
