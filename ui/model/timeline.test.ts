// A window drawn as text in, its lanes printed as text out.

import { expect, test } from "vitest";
import type { Profile } from "./profile";
import { drawn } from "./testing/drawing";
import { timelineOf, type Timeline } from "./timeline";
import { chromeTrace, linksOf, rangeFacts } from "./timeline_facts";
import { moved } from "./timeline_moves";

const TREE = `
  process a.py
    thread Main
      python main @ /u/t.py:3
        python call @ /x/site-packages/torch/m.py:9
          operator linear
            operator addmm
              kernel sgemm
        operator relu
`;
// [start, duration, kind, node, thread, device, stream, correlation, sequence, forward_thread, step]
type Row = [number, number, string, number, number, number, number, number, number, number, number];

async function window(rows: Row[]): Promise<Profile> {
  return drawn(TREE, {}, rows);
}

function lanes(profile: Profile, hide = true): string {
  const timeline = timelineOf(profile, hide);
  if (!timeline) return "none";
  const row = (spans: Int32Array) =>
    [...spans]
      .map((one) => `${profile.name(timeline.node[one])} ${timeline.start[one]}-${timeline.end[one]}`)
      .join(", ");
  return timeline.lanes
    .map((lane) => [`${lane.title}:`, ...lane.rows.map((one) => `  ${row(one)}`)].join("\n"))
    .join("\n");
}

const STEP: Row[] = [
  [100, 90, "operator", 5, 0, -1, -1, 0, 7, -1, 1],
  [110, 50, "operator", 6, 0, -1, -1, 3, -1, -1, 1],
  [140, 100, "kernel", 7, -1, 0, 7, 3, -1, -1, 1],
  [200, 10, "operator", 8, 0, -1, -1, 0, -1, -1, 1],
  [220, 10, "operator", 8, 0, -1, -1, 0, -1, -1, 1],
];

test("the call stack over time joins frames and keeps calls apart", async () => {
  expect(lanes(await window(STEP))).toBe(`GPU stream 7:
  sgemm 40-140
Main:
  main 0-130
  linear 0-90, relu 100-110, relu 120-130
  addmm 10-60`);
});

test("library frames are there when asked for", async () => {
  expect(lanes(await window(STEP), false)).toContain("call 0-90");
});

test("an event that still runs holds what another call path books below it", async () => {
  const rows: Row[] = [
    [0, 100, "operator", 8, 0, -1, -1, 0, -1, -1, 1],
    [10, 20, "operator", 6, 0, -1, -1, 0, -1, -1, 1],
    [40, 20, "operator", 6, 0, -1, -1, 0, -1, -1, 1],
  ];
  expect(lanes(await window(rows))).toBe(`Main:
  main 0-100
  relu 0-100
  linear 10-60
  addmm 10-30, addmm 40-60`);
});

test("what had not ended lasts to the end of the window", async () => {
  const rows: Row[] = [
    [0, -1, "operator", 5, 0, -1, -1, 0, -1, -1, 1],
    [10, 20, "operator", 6, 0, -1, -1, 0, -1, -1, 1],
  ];
  expect(lanes(await window(rows))).toContain("linear 0-30");
});

test("a range: what ran in it, cut to it, and how busy each lane was", async () => {
  const profile = await window(STEP);
  const timeline = timelineOf(profile, true)!;
  const facts = rangeFacts(profile, timeline, 50, 105);
  expect(facts.lanes).toEqual([
    { title: "GPU stream 7", busy_ns: 55, spans: 1 },
    { title: "Main", busy_ns: 45, spans: 3 },
  ]);
  expect(facts.names.map((one) => `${one.name} ${one.count} ${one.sum_ns}`)).toEqual([
    "sgemm 1 55", "linear 1 40", "addmm 1 10", "relu 1 5",
  ]); // prettier-ignore
  expect(rangeFacts(profile, timeline, 0, 1000).lanes[1].busy_ns).toBe(110);
});

test("arrows: launch to kernel", async () => {
  const profile = await window(STEP);
  expect(linksOf(profile, 1)).toEqual([{ what: "launch", from: 1, to: 2 }]);
  expect(linksOf(profile, 2)).toEqual([{ what: "launch", from: 1, to: 2 }]);
  expect(linksOf(profile, 0)).toEqual([{ what: "launch", from: 1, to: 2 }]); // by the call inside it
  expect(linksOf(profile, 3)).toEqual([]);
});

test("the file for Perfetto holds every span", async () => {
  const profile = await window(STEP);
  const trace = JSON.parse(chromeTrace(profile, timelineOf(profile, true)!)) as { traceEvents: { ph: string }[] };
  expect(trace.traceEvents.filter((one) => one.ph === "X")).toHaveLength(6);
});

test("no window, no timeline", async () => {
  expect(lanes(await drawn(TREE))).toBe("none");
});

test("keys lead along a row, over the rows of a lane and to other lanes", async () => {
  const profile = await window(STEP);
  const timeline = timelineOf(profile, true) as Timeline;
  const say = (span: number) =>
    span < 0 ? "nothing" : `${profile.name(timeline.node[span])} ${timeline.start[span]}-${timeline.end[span]}`;
  let at = -1;
  const walked = (["after", "down", "down", "after", "down", "before", "down", "laneUp"] as const).map((move) => {
    const next = moved(timeline, at, move, 0);
    if (next >= 0) at = next;
    return `${move}: ${say(next)}`;
  });
  expect(walked).toEqual([
    "after: sgemm 40-140",
    "down: main 0-130",
    "down: linear 0-90",
    "after: relu 100-110",
    "down: addmm 10-60",
    "before: nothing",
    "down: nothing",
    "laneUp: sgemm 40-140",
  ]);
  expect(say(moved(timeline, at, "up", 0))).toBe("nothing");
  expect(say(moved(timeline, -1, "up", 500))).toBe("sgemm 40-140");
});
