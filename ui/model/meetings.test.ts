// Two ranks on clocks that are 1,000 ns apart, the second of which comes late; and what captured graphs ran, by role.

import { expect, test } from "vitest";
import { alignedAt, meetingsOf } from "./meetings";
import { drawn, type EventRow } from "./testing/drawing";
import { timelineOf } from "./timeline";
import { firstRole, ofRole } from "./timeline_roles";

const RANK = `
  process a.py
    thread main
      operator mm
      thread gloo
        region gloo:all_reduce
`;
// rows of nodes: 0 root, 1 process, 2 thread, 3 mm, 4 thread, 5 gloo; 6 the second process, ...
const STEPS: EventRow[] = [1, 2, 3].flatMap((step) => {
  const at = step * 100;
  return [
    [at, 90, "step", 2, 0, -1, -1, 0, -1, -1, step],
    [at + 5, 20, "operator", 3, 0, -1, -1, 0, -1, -1, step],
    [at + 30, 50, "region", 5, 1, -1, -1, 0, -1, -1, -1],
    [at + 1000, 90, "step", 7, 2, -1, -1, 0, -1, -1, step],
    [at + 1005, 60, "operator", 8, 2, -1, -1, 0, -1, -1, step],
    [at + 1070, 10, "region", 10, 3, -1, -1, 0, -1, -1, -1],
  ] satisfies EventRow[];
});

async function ranks() {
  const profile = await drawn(
    RANK + RANK,
    {},
    [...STEPS].sort((a, b) => a[0] - b[0]),
  );
  profile.tables.processes.rank.set([0, 1]);
  return profile;
}

test("collectives put two clocks on one, and say who comes last", async () => {
  const met = meetingsOf(await ranks());
  expect(met?.count).toBe(3);
  expect(met?.shift_ns).toEqual(new Map([[0, 0], [1, -1000]])); // prettier-ignore
  expect(met?.last).toEqual(new Map([[1, 3]]));
});

test("ranks stand one above the other, aligned where they meet, the late one marked", async () => {
  const profile = await ranks();
  const timeline = timelineOf(profile, true)!;
  expect(firstRole(profile, timeline)).toBe("main");
  const met = meetingsOf(profile)!;
  const { lanes, end, start } = alignedAt(ofRole(profile, timeline, "main", met), met);
  expect(lanes.map(({ title }) => title)).toEqual(["rank 0", "rank 1 · last to 3 of 3 collectives"]);
  const [first, second] = lanes.map(({ rows }) => [...rows[rows.length - 1]]);
  expect(first.map((span) => end[span])).toEqual(second.map((span) => end[span]));
  expect(start[second[0]] - start[first[0]]).toBe(40);
});

test("one process meets nobody", async () => {
  expect(meetingsOf(await drawn(RANK, {}, STEPS.slice(0, 3)))).toBeNull();
});

const GRAPH = `
  process a.py
    thread main
      graph_launch cudaGraphLaunch
        kernel sgemm
        kernel ncclAllReduce
        copy Memcpy
`;

async function lanesOfGraph(streams: number): Promise<string[]> {
  const kinds = ["kernel", "collective", "copy"];
  const rows = Array.from({ length: 12 }, (_, i): EventRow => {
    const kind = i % 3;
    return [100 + 10 * i, 15, kinds[kind], 4 + kind, -1, 0, 20 + (i % streams), 1, -1, -1, 1];
  });
  rows.push([400, 10, "kernel", 4, -1, 0, 7, 2, -1, -1, 1]);
  const profile = await drawn(GRAPH.replace("graph_launch", "api"), {}, rows);
  profile.tables.events.graph_node.set(rows.map((_, i) => (i < 12 ? i + 1 : 0)));
  return timelineOf(profile, true)!.lanes.map(({ title }) => title);
}

test("kernels of a captured graph are in few lanes by role, whatever streams the driver chose", async () => {
  expect(await lanesOfGraph(12)).toEqual([
    "GPU stream 7", "GPU, graphs: compute", "GPU, graphs: communication", "GPU, graphs: copies",
  ]); // prettier-ignore
});

test("few streams of a graph stay what they are", async () => {
  expect(await lanesOfGraph(2)).toEqual(["GPU stream 7", "GPU stream 20", "GPU stream 21"]);
});
