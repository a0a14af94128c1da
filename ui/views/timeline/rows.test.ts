// Known shares in, pixels out: what is drawn of spans that are narrower than a pixel covers what they last.

import { expect, test } from "vitest";
import { drawn } from "../../model/testing/drawing";
import { timelineOf, type Timeline } from "../../model/timeline";
import type { Sheet } from "../canvas";
import type { Palette } from "../colours";
import { Rects } from "../gl";
import { Rows } from "./rows";

const TREE = `
  process a.py
    thread Main
      operator short
      region long
      python main @ /u/t.py:3
        operator rare
`;
const RED = 0xff0000ff;
const GREEN = 0xff00ff00;
const BLUE = 0xffff0000;
const WIDTH = 1000;

type Row = [number, number, string, number, number, number, number, number, number, number, number];
const event = (start: number, length: number, kind: string, node: number): Row => [start, length, kind, node, 0, -1, -1, 0, -1, -1, 1]; // prettier-ignore

/** Areas of red, green and blue in pixels of one row, each by how much of a pixel it is. */
async function areas(rows: Row[], row = 0, from = 0, to = 1): Promise<[red: number, green: number, blue: number]> {
  const profile = await drawn(TREE, {}, rows);
  const timeline = timelineOf(profile, true) as Timeline;
  const rects = new Rects();
  const of = (name: string) => ({ "kind-operator": RED, "kind-region": GREEN, "kind-python": BLUE })[name] ?? 0;
  const colours = { of, ink: "", muted: "", outline: "" } as unknown as Palette;
  const context = { fillText: () => {}, measureText: () => ({ width: 1e9 }), fillStyle: "" };
  const drawer = new Rows(profile, timeline, rects);
  const length = timeline.length_ns;
  drawer.begin({ from: from * length, to: to * length }, -1);
  const [lane] = timeline.lanes;
  drawer.draw({ context, colours, width: WIDTH } as unknown as Sheet, lane, lane.rows[row], 0);
  const sums: [number, number, number] = [0, 0, 0];
  for (let i = 0; i < rects.count; i++) {
    const [x, , width] = rects.boxes.subarray(4 * i, 4 * i + 4);
    const pixels = Math.min(WIDTH, x + width) - Math.max(0, x);
    const colour = rects.colours[i];
    for (const channel of [0, 1, 2])
      sums[channel] += (pixels * ((colour >>> (8 * channel)) & 255) * (colour >>> 24)) / 255 / 255;
  }
  return sums;
}

test.each([
  [15, 84], // what a picture of the first pixel of each would draw as 50 and 50
  [1, 98],
  [50, 0],
])("%d ns of one kind and %d of another in each 100 are drawn as that, within 2 %", async (short, long) => {
  const rows: Row[] = [];
  for (let i = 0; i < 20_000; i++) {
    rows.push(event(100 * i, short, "operator", 3));
    if (long) rows.push(event(100 * i + short, long, "region", 4));
  }
  const [red, green] = await areas(rows);
  expect(Math.abs(red / WIDTH - short / 100)).toBeLessThan(0.02);
  expect(Math.abs(green / WIDTH - long / 100)).toBeLessThan(0.02);
});

test("a frame that was inferred is full only where events below it ran", async () => {
  const rows: Row[] = [];
  for (let i = 0; i < 5_000; i++) rows.push(event(1000 * i, 10, "operator", 6)); // at work 1 % of the time
  const [, , blue] = await areas(rows);
  const hollow = 0.22;
  const ofFrames = 0.72;
  expect(Math.abs(blue / WIDTH - ofFrames * (hollow + 0.01))).toBeLessThan(0.02);
});
