// What is sought on the timeline, and lanes of several ranks side by side.

import { expect, test } from "vitest";
import { Search } from "./search";
import { drawn } from "./testing/drawing";
import { timelineOf, type Timeline } from "./timeline";
import { ofRole, rolesOf } from "./timeline_roles";
import { below, searched } from "./timeline_search";

const TREE = `
  process a.py
    thread Main
      operator linear
        operator addmm
      operator relu
`;
type Row = [number, number, string, number, number, number, number, number, number, number, number];
const ROWS: Row[] = [
  [100, 90, "operator", 3, 0, -1, -1, 0, -1, -1, 1],
  [110, 50, "operator", 4, 0, -1, -1, 0, -1, -1, 1],
  [200, 10, "operator", 5, 0, -1, -1, 0, -1, -1, 1],
];

test("spans are found by name and below a finding's path; what is nested counts once", async () => {
  const profile = await drawn(TREE, {}, ROWS);
  const timeline = timelineOf(profile, true) as Timeline;
  const search = new Search(profile);
  expect(searched(profile, timeline, search, "relu")).toMatchObject({ sum_ns: 10 });
  expect(searched(profile, timeline, search, "/linear|addmm/")?.sum_ns).toBe(90);
  expect(searched(profile, timeline, search, "  ")).toBeNull();
  const found = below(profile, timeline, [3]);
  expect([...found.spans].map((span) => profile.name(timeline.node[span]))).toEqual(["linear", "addmm"]);
});

test("one process has no lane of all ranks", async () => {
  const profile = await drawn(TREE, {}, ROWS);
  const timeline = timelineOf(profile, true) as Timeline;
  expect(rolesOf(profile, timeline)).toEqual([]);
  expect(ofRole(profile, timeline, "")).toBe(timeline);
});
