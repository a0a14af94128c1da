// One chart, drawn by uPlot.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { scopesOf } from "../../model/scopes";
import type { Chart } from "../../model/series";
import { duration, number, percent, size, visible } from "../../model/units";
import type { Opened } from "../opened";

const COLOURS = ["--accent", "--kind-kernel", "--kind-module", "--kind-phase", "--kind-api", "--kind-region"];
const HEIGHT = 190;
const POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power); // sizes read best in powers of two

function shownValue(value: number, unit: Chart["unit"]): string {
  if (unit === "bytes") return size(value);
  if (unit === "ns") return duration(value);
  if (unit === "share") return percent(value);
  return unit === "bytes/s" ? `${size(value)}/s` : number(Math.round(value * 100) / 100);
}

/** A bar is as long as what it stands for. */
const FROM_ZERO: uPlot.Scale = { range: (_, __, max) => [0, max > 0 ? 1.05 * max : 1] };

/** All of the window until somebody zooms in. */
function rangeOf({ counted, until, x }: Chart): (plot: uPlot, min: number, max: number) => [number, number] {
  return (_, min, max) => {
    if (counted) return [min - 0.6, max + 0.6];
    return until !== undefined && min === x[0] && max === x[x.length - 1] ? [0, until] : [min, max];
  };
}

/** The lines in the order in which they are drawn: of those that stand upon each other the topmost first. */
function linesOf({ lines, stacked }: Chart): { line: Chart["lines"][number]; i: number; values: (number | null)[] }[] {
  if (!stacked) return lines.map((line, i) => ({ line, i, values: line.values }));
  const below = new Array<number>(lines[0].values.length).fill(0);
  const made = lines.map((line, i) => ({ line, i, values: line.values.map((value, at) => (below[at] += value ?? 0)) }));
  return made.reverse();
}

export function Plot({ opened, chart }: { opened: Opened; chart: Chart }) {
  const place = useRef<HTMLDivElement>(null);
  const [held, setHeld] = useState("");
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour("--muted"),
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { stroke: colour("--line") },
    };
    const drawn = linesOf(chart);
    const bars = uPlot.paths.bars?.({ size: [0.7, 60] });
    const plot = new uPlot(
      {
        width: Math.max(200, element.clientWidth),
        height: HEIGHT,
        scales: {
          x: { time: false, range: rangeOf(chart) },
          y: chart.lines.some((line) => line.bars) ? FROM_ZERO : {},
        },
        legend: { live: true },
        cursor: { drag: { x: true, y: false } },
        axes: [
          {
            ...axis,
            values: (_, values) =>
              values.map((value) => (chart.counted ? (Number.isInteger(value) ? String(value) : "") : duration(value))),
          },
          {
            ...axis,
            size: 84,
            incrs: chart.unit === "bytes" ? POWERS : undefined,
            values: (_, values) => values.map((value) => shownValue(value, chart.unit)),
          },
        ],
        series: [
          {
            label: chart.counted ?? "time",
            value: (_, value) => (value === null ? "" : chart.counted ? String(value) : duration(value)),
          },
          ...drawn.map(({ line, i }) => ({
            label: visible(line.name),
            stroke: colour(COLOURS[i % COLOURS.length]),
            fill: line.bars || chart.stacked ? colour(COLOURS[i % COLOURS.length]) : undefined,
            width: 1.5,
            points: { show: chart.x.length < 3 && !line.bars },
            paths: line.bars
              ? bars
              : chart.unit === "bytes" || chart.unit === "1"
                ? uPlot.paths.stepped?.({ align: 1 })
                : undefined,
            value: (_: uPlot, __: number | null, ___: number, at: number | null) => {
              const value = at === null ? null : line.values[at]; // its own, where lines stand upon each other
              return value === null || value === undefined ? "" : shownValue(value, chart.unit);
            },
          })),
        ],
        hooks: {
          setCursor: [
            (one) => {
              const node =
                one.cursor.idx === null || one.cursor.idx === undefined ? -1 : (chart.nodes?.[one.cursor.idx] ?? -1);
              if (chart.nodes) setHeld(node >= 0 ? pathText(opened, node) : "");
            },
          ],
        },
      },
      [chart.x, ...drawn.map(({ values }) => values)] as uPlot.AlignedData,
      element,
    );
    const watch = new ResizeObserver(() => plot.setSize({ width: Math.max(200, element.clientWidth), height: HEIGHT }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [chart]);
  return (
    <>
      <div ref={place} class="plot" role="img" aria-label={`${chart.title}: ${chart.note}`} />
      {chart.nodes ? (
        <p class="quiet small held">{held || "Point at the curve to see which call path allocated or freed there."}</p>
      ) : null}
    </>
  );
}

/** The user's line and the operator of a node. */
function pathText(opened: Opened, node: number): string {
  const { profile } = opened;
  const { user, outer, phase } = scopesOf(profile);
  const frame = profile.frame[Math.max(0, user[node])];
  const line = user[node] >= 0 ? `${opened.shortFile(profile.frameText("file", frame))}:${profile.line(frame)}` : "";
  const names = [phase[node], outer[node], node].filter((row) => row >= 0).map((row) => profile.name(row));
  return visible([line, ...new Set(names)].filter(Boolean).join(" › "));
}
