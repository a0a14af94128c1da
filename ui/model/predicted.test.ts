// A prediction in, its lanes below the measured ones out.

import { expect, test } from "vitest";
import { withPrediction, type Chosen } from "./predicted";
import { drawn, type EventRow } from "./testing/drawing";
import { spanText, timelineOf, type Timeline } from "./timeline";

const TREE = `
  process a.py
    thread Main
      operator linear
        kernel sgemm
`;
const EVENTS: EventRow[] = [
  [100, 50, "operator", 3, 0, -1, -1, 3, -1, -1, 1],
  [120, 100, "kernel", 4, -1, 0, 7, 3, -1, -1, 1],
];
const CHOSEN: Chosen = {
  title: "amp",
  said: "likely",
  assumptions: [],
  trouble: "",
  begin_ns: 110,
  texts: [
    { name: "linear", kind: "operator" },
    { name: "sgemm", kind: "kernel" },
  ],
  lanes: [
    { title: "stream 7", process: 0, of: 0, stream: 7, start_ns: [10], end_ns: [300], text: [1] },
    { title: "Main", process: 0, of: 0, stream: -1, start_ns: [0, 5], end_ns: [40, 20], text: [0, 0] },
    { title: "channel", process: 0, of: -1, stream: -1, start_ns: [], end_ns: [], text: [] },
  ],
};

test("predicted lanes stand below those they are of, on their own time", async () => {
  const profile = await drawn(TREE, {}, EVENTS);
  const timeline = withPrediction(timelineOf(profile, true) as Timeline, CHOSEN);
  const told = timeline.lanes.map((lane) =>
    [
      lane.title,
      ...lane.rows.map((row) =>
        [...row]
          .map((span) => `${spanText(profile, timeline, span).name} ${timeline.start[span]}-${timeline.end[span]}`)
          .join(),
      ),
    ].join("; "),
  );
  expect(told).toEqual([
    "GPU stream 7; sgemm 20-120",
    "stream 7, predicted: amp; sgemm 20-310",
    "Main; linear 0-50",
    "Main, predicted: amp; linear 10-50; linear 15-30",
    "channel, predicted: amp",
  ]);
  expect(timeline.length_ns).toBe(310);
});
