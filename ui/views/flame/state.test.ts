import { expect, test } from "vitest";
import { drawn } from "../../model/testing/drawing";
import { firstState, fromLink } from "./state";

const profile = () =>
  drawn("process a\n  thread t\n    python main @ /u/a.py:3\n      operator mm | time=3 call_time=3");

test("a link says the whole state", async () => {
  const link =
    "metric=calls&inverted=1&hideLibrary=0&foldLayers=0&joinProcesses=1&collapseRecursion=1&colour=heat&search=mm&row=3&order=time&transform=drop+operator+mm&transform=cut";
  const state = { ...firstState(await profile()), ...fromLink(new URLSearchParams(link), await profile()) };
  expect(state).toEqual({
    metric: "calls", inverted: true, hideLibrary: false, foldLayers: false, joinProcesses: true, collapseRecursion: true,
    order: "time", transforms: [{ kind: "drop", of: "operator mm", name: "mm" }],
    colour: "heat", search: "mm", rank: -1, row: 3, asked: 0,
  }); // prettier-ignore
});

test("what makes no sense in a link is left out", async () => {
  for (const link of ["metric=nonsense", "colour=toString", "row=99", "row=-1", "row=1.5", "row=x", "other=1"])
    expect(fromLink(new URLSearchParams(link), await profile())).toEqual({});
});
