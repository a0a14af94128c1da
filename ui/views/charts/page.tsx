// Curves over the time of the window, drawn by uPlot.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { chartsOf, type Chart } from "../../model/series";
import { scopesOf } from "../../model/scopes";
import { duration, number, size, visible } from "../../model/units";
import type { Opened } from "../opened";
import { Card, Nothing } from "../widgets";

const COLOURS = ["--accent", "--kind-kernel", "--kind-module", "--kind-phase", "--kind-api", "--kind-region"];
const HEIGHT = 190;

export function ChartsPage({ opened, shown }: { opened: Opened; shown: boolean }) {
  const seen = useRef(false);
  if (shown) seen.current = true;
  return seen.current ? <Shown opened={opened} /> : null;
}

function Shown({ opened }: { opened: Opened }) {
  const charts = useMemo(() => chartsOf(opened.profile), [opened.profile]);
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const change = () => setTheme((old) => old + 1);
    addEventListener("themechange", change);
    return () => removeEventListener("themechange", change);
  }, []);
  return (
    <>
      <h2>Over time</h2>
      {charts.length ? (
        charts.map((chart) => (
          <Card key={`${chart.title} ${theme}`} title={chart.title} note={chart.note}>
            <Plot opened={opened} chart={chart} />
          </Card>
        ))
      ) : (
        <Nothing>
          This profile holds no trace window, so nothing is known over time. Record one with{" "}
          <code>leadline run --trace steps=3 …</code>
        </Nothing>
      )}
    </>
  );
}

function shownValue(value: number, unit: Chart["unit"]): string {
  if (unit === "bytes") return size(value);
  if (unit === "ns") return duration(value);
  if (unit === "share") return `${(100 * value).toFixed(0)}%`;
  return unit === "bytes/s" ? `${size(value)}/s` : number(Math.round(value * 100) / 100);
}

function Plot({ opened, chart }: { opened: Opened; chart: Chart }) {
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
    const bars = uPlot.paths.bars?.({ size: [0.7, 60] });
    const plot = new uPlot(
      {
        width: Math.max(200, element.clientWidth),
        height: HEIGHT,
        scales: {
          x: chart.steps ? { time: false, range: (_, min, max) => [min - 0.6, max + 0.6] } : { time: false },
        },
        legend: { live: true },
        cursor: { drag: { x: true, y: false } },
        axes: [
          {
            ...axis,
            values: (_, values) =>
              values.map((value) => (chart.steps ? (Number.isInteger(value) ? String(value) : "") : duration(value))),
          },
          { ...axis, size: 84, values: (_, values) => values.map((value) => shownValue(value, chart.unit)) },
        ],
        series: [
          {
            label: chart.steps ? "step" : "time",
            value: (_, value) => (value === null ? "" : chart.steps ? String(value) : duration(value)),
          },
          ...chart.lines.map((line, i) => ({
            label: visible(line.name),
            stroke: colour(COLOURS[i % COLOURS.length]),
            fill: line.bars ? colour(COLOURS[i % COLOURS.length]) : undefined,
            width: 1.5,
            points: { show: chart.x.length < 3 && !line.bars },
            paths: line.bars
              ? bars
              : chart.unit === "bytes" || chart.unit === "1"
                ? uPlot.paths.stepped?.({ align: 1 })
                : undefined,
            value: (_: uPlot, value: number | null) => (value === null ? "" : shownValue(value, chart.unit)),
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
      [chart.x, ...chart.lines.map((line) => line.values)] as uPlot.AlignedData,
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
