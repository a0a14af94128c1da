// Counters as lanes on the timeline's axis: what is alive, queued, busy or moved, one above the other. A pixel shows the
// largest value in it, so no short peak is lost.

import type { NodeRow } from "../../model/profile";
import type { Chart } from "../../model/series";
import { duration, number, percent, size, visible } from "../../model/units";
import type { Sheet } from "../canvas";
import { fitted, withAlpha } from "../colours";
import type { Rects } from "../gl";
import type { Range } from "./chart";

const HEAD = 16;
const HIGH = 26;
const HIGH_STACKED = 46;
const GAP = 6;
const ALONE = 5;
const COLOURS = ["kind-module", "kind-operator", "kind-phase", "kind-region", "kind-python", "kind-api"];

interface Row {
  chart: Chart;
  title: string;
  lines: Chart["lines"];
  most: number;
  top: number;
  high: number;
}

export interface CounterFact {
  text: string;
  /** Who changed it last before that moment, -1 for nobody that is known. */
  node: NodeRow | -1;
}

export class Counters {
  readonly height: number;
  private readonly rows: Row[] = [];

  /** `alone`: there are no lanes, so there is room. */
  constructor(charts: readonly Chart[], alone = false) {
    let top = 0;
    for (const chart of charts)
      for (const lines of chart.stacked ? [chart.lines] : chart.lines.map((line) => [line])) {
        const sums = lines[0].values.map((_, at) => lines.reduce((sum, line) => sum + Math.max(0, line.values[at]), 0));
        const largest = sums.reduce((a, b) => Math.max(a, b), 0);
        if (!(largest > 0)) continue;
        const high = (chart.stacked ? HIGH_STACKED : HIGH) * (alone ? ALONE : 1);
        const name = chart.stacked || (chart.lines.length === 1 && chart.unit === "bytes") ? "" : `: ${lines[0].name}`;
        const title = visible(`${chart.title}${name}, at most ${counted(largest, chart.unit)}`);
        this.rows.push({ chart, title, lines, most: chart.unit === "share" ? 1 : largest, top, high });
        top += HEAD + high + GAP;
      }
    this.height = top;
  }

  get count(): number {
    return this.rows.length;
  }

  /** `y`: where the first row begins. */
  draw({ context, colours, width, height }: Sheet, rects: Rects, view: Range, y: number): void {
    const perPixel = (view.to - view.from) / width;
    for (const row of this.rows) {
      const top = y + row.top;
      if (top > height || top + HEAD + row.high < 0) continue;
      const base = top + HEAD + row.high;
      rects.add(0, base, width, 1, withAlpha(colours.of("line"), 1));
      const { x } = row.chart;
      let at = lastUntil(x, view.from);
      for (let pixel = 0; pixel < width; pixel++) {
        const end = view.from + (pixel + 1) * perPixel;
        let best = at;
        while (at + 1 < x.length && x[at + 1] < end) if (sum(row, ++at) > sum(row, best)) best = at;
        if (best < 0) continue;
        let floor = base;
        row.lines.forEach((line, i) => {
          const high = Math.round((Math.max(0, line.values[best]) / row.most) * row.high * 2) / 2;
          if (high > 0) rects.add(pixel, (floor -= high), 1, high, colours.of(COLOURS[i % COLOURS.length]));
        });
      }
      context.fillStyle = colours.muted;
      context.fillText(fitted(context, row.title, width - 12), 6, top + HEAD / 2 + 1);
      if (row.lines.length > 1) this.legend(context, colours, row, top, width);
    }
  }

  private legend(context: CanvasRenderingContext2D, colours: Sheet["colours"], row: Row, top: number, width: number) {
    let x = 18 + context.measureText(row.title).width;
    row.lines.forEach((line, i) => {
      const name = visible(line.name);
      const wide = context.measureText(name).width;
      if (x + wide + 12 > width) return;
      const colour = colours.of(COLOURS[i % COLOURS.length]);
      context.fillStyle = `rgb(${colour & 255},${(colour >>> 8) & 255},${(colour >>> 16) & 255})`;
      context.fillRect(x, top + 4, 8, 8);
      context.fillStyle = colours.muted;
      context.fillText(name, x + 12, top + HEAD / 2 + 1);
      x += wide + 24;
    });
  }

  /** What stands at a place, `y` from the first row. */
  at(y: number, time: number): CounterFact | null {
    const row = this.rows.find((one) => y >= one.top && y < one.top + HEAD + one.high);
    if (!row) return null;
    const { chart, lines } = row;
    const at = lastUntil(chart.x, time);
    const said = at < 0 ? [] : lines.map((line) => `${line.name} ${counted(line.values[at], chart.unit)}`);
    const text = [`${chart.title} at ${duration(time)}`, ...said, chart.note].map((one) => visible(one)).join("\n");
    return { text, node: at < 0 ? -1 : (chart.nodes?.[at] ?? -1) };
  }
}

const sum = ({ lines }: Row, at: number) =>
  at < 0 ? -Infinity : lines.reduce((all, line) => all + Math.max(0, line.values[at]), 0);

function counted(value: number, unit: Chart["unit"]): string {
  if (unit === "bytes") return size(value);
  if (unit === "ns") return duration(value);
  if (unit === "share") return percent(value);
  return unit === "bytes/s" ? `${size(value)}/s` : number(Math.round(value * 100) / 100);
}

/** The last of rising numbers that is no larger than `time`, -1 for none. */
function lastUntil(x: readonly number[], time: number): number {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
