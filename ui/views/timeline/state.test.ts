import { expect, test } from "vitest";
import { FIRST, timelineFrom, timelineLink, type TimelineState } from "./state";

const parameters = (link: string) => new URLSearchParams(link.split("?")[1] ?? "");

test("a link holds what is looked at", () => {
  const state: TimelineState = {
    view: { from: 1e9, to: 2e9 },
    range: { from: 5, to: 7 },
    search: "/a&b/",
    finding: 2,
    process: 0,
    role: "stream 7",
    aligned: false,
    notes: [
      { at: 12, text: "here & there = 3" },
      { at: 90, text: "" },
    ],
  };
  expect(timelineFrom(parameters(timelineLink(state)))).toEqual(state);
  expect(timelineLink(FIRST)).toBe("#timeline");
});

test("what makes no sense in a link is left out", () => {
  const odd = "#timeline?view=9-3&range=a-b&finding=-4&process=1e9&note=soon&note=5+x";
  expect(timelineFrom(parameters(odd))).toEqual({ ...FIRST, notes: [{ at: 5, text: "x" }] });
});
