// Two profiles compared: what hinders it, a flame graph in red and blue, and the paths that changed.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Diff } from "../../model/diff";
import { baseName } from "../../model/frames";
import type { Profile } from "../../model/profile";
import { inUnit, metricName, number, visible } from "../../model/units";
import { TreeView, type ViewNode } from "../../model/view";
import { DrawingLayers, type Layers } from "../canvas";
import { redBlue } from "../flame/colouring";
import { FlameGraph, type Colouring } from "../flame/graph";
import type { Opened } from "../opened";
import { change } from "./change";
import { Judged } from "./judged";
import { DiffLegend, KindChip, Nothing, Toggle } from "../widgets";

export function DiffPage({ opened, shown }: { opened: Opened; shown: boolean }) {
  const { host, comparison } = opened;
  const { diff, said } = comparison;
  useEffect(() => {
    if (shown) comparison.wanted();
  }, [shown]);
  return (
    <>
      <div class="toolbar">
        <h2>Comparison</h2>
        <span class="quiet">
          {diff ? `${visible(baseName(host.names[0]))} before, ${visible(baseName(comparison.name))} after` : ""}
        </span>
      </div>
      <p role="status" aria-busy={comparison.reading} class={said ? "banner" : "offscreen"}>
        {visible(said)}
      </p>
      {diff ? (
        <Shown diff={diff} shown={shown} />
      ) : said ? null : (
        <Nothing>
          One profile is open; <code>leadline view BEFORE AFTER</code> compares two.
        </Nothing>
      )}
    </>
  );
}

/** The time in which the profiles differ most; where they do not, the one that a profile opens with. */
function changedMost(diff: Diff): string {
  const main = diff.after.metrics.main;
  const first = diff.metrics.includes(main) ? main : (diff.metrics[0] ?? "time");
  const by = (name: string) => {
    const [a, b] = [diff.before, diff.after].map((one) => one.metrics.values(name).whole[0]);
    return Math.abs(b - a);
  };
  const times = ["time", "gpu_time", "cpu_sample"].filter((name) => diff.metrics.includes(name));
  return times.reduce(
    (best, name) => (by(name) > 1.05 * by(best) ? name : best),
    times.includes(first) ? first : (times[0] ?? first),
  );
}

function Shown({ diff, shown }: { diff: Diff; shown: boolean }) {
  const { found } = diff;
  const [metric, setMetric] = useState(() => changedMost(diff));
  const [widthAfter, setWidth] = useState(true);
  const [selected, select] = useState<ViewNode | null>(null);
  const base = widthAfter ? diff.after : diff.before;
  const view = useMemo(
    () =>
      new TreeView(base, {
        metric,
        inverted: false,
        hideLibrary: true,
        foldLayers: true,
        joinProcesses: true,
        collapseRecursion: false,
      }),
    [base, metric],
  );
  const unit = unitOf(diff, metric);
  const [a, b] = [diff.before, diff.after].map((one) => one.metrics.values(metric).whole);
  const colouring = useMemo(() => redBlue((node) => sums(node.rows, a, b)), [a, b]);
  if (!diff.metrics.length) return <Nothing>The two profiles have no measurement in common.</Nothing>;
  return (
    <>
      <Judged found={found} />
      <div class="toolbar">
        <select aria-label="Metric" value={metric} onChange={(event) => setMetric(event.currentTarget.value)}>
          {diff.metrics.map((name) => (
            <option value={name}>{metricName(name)}</option>
          ))}
        </select>
        <Toggle
          label="Width: after"
          title="Boxes as wide as after the change, or as before it"
          on={widthAfter}
          flip={() => setWidth(!widthAfter)}
        />
        <span>
          <b>{inUnit(a[0], unit)}</b> before, <b>{inUnit(b[0], unit)}</b> after, {change(a[0], b[0])}{" "}
          {Math.max(...found.steps) > 1 ? "a step, without set-up" : "of the whole run"}
        </span>
        <span class="grow" />
        <DiffLegend />
      </div>
      <Renamed renamed={found.renamed} />
      <div class="flame-main diff-main">
        <DiffGraph view={view} colouring={colouring} select={select} shown={shown} />
        <Selected diff={diff} view={view} node={selected} />
      </div>
    </>
  );
}

function unitOf(diff: Diff, metric: string): string {
  return (diff.after.metrics.describe(metric) ?? diff.before.metrics.describe(metric))?.unit ?? "1";
}

function sums(rows: readonly number[], before: Float64Array, after: Float64Array): [before: number, after: number] {
  let [a, b] = [0, 0];
  for (const row of rows) {
    a += before[row];
    b += after[row];
  }
  return [a, b];
}

const MOST_RENAMED = 6;

/** What is one thing with two names. */
function Renamed({ renamed }: { renamed: [string, string][] }) {
  if (!renamed.length) return null;
  const more = renamed.length - MOST_RENAMED;
  return (
    <p class="small renamed">
      <span class="quiet">Renamed: </span>
      {renamed
        .slice(0, MOST_RENAMED)
        .map(([from, to]) => visible(`${from} → ${to}`))
        .join(", ")}
      {more > 0 ? <span class="quiet"> and {number(more)} more</span> : null}
    </p>
  );
}

interface GraphProps {
  view: TreeView;
  colouring: Colouring;
  select(node: ViewNode | null): void;
  shown: boolean;
}

function DiffGraph({ view, colouring, select, shown }: GraphProps) {
  const layers = useRef<Partial<Layers>>({});
  const minimap = useRef<HTMLCanvasElement>(null);
  const graph = useRef<FlameGraph | null>(null);
  useEffect(() => {
    const made = new FlameGraph(layers.current as Layers, minimap.current as HTMLCanvasElement, view, {
      select,
      clicked: () => undefined,
      zoomed: () => undefined,
      hover: () => undefined,
    });
    graph.current = made;
    return () => made.close();
  }, []);
  useEffect(() => {
    graph.current?.colourBy(colouring);
    graph.current?.show(view);
    select(null);
  }, [view]);
  useEffect(() => {
    if (shown) graph.current?.refresh();
  }, [shown]);
  return (
    <div class="flame-left">
      <canvas class="minimap" ref={minimap} hidden aria-hidden="true" />
      <DrawingLayers
        layers={layers.current}
        name="diff"
        label="Flame graph of the comparison; arrow keys move, Enter zooms, 0 zooms out; the panel next to it describes the selection"
      />
    </div>
  );
}

function Selected({ diff, view, node }: { diff: Diff; view: TreeView; node: ViewNode | null }) {
  if (!node)
    return (
      <aside class="details" tabIndex={0} aria-live="polite" aria-label="Selected frame">
        <p class="quiet">Click a box to see what it cost before and after; double-click zooms in.</p>
      </aside>
    );
  const sum = (profile: Profile, name: string) => {
    const { whole } = profile.metrics.values(name);
    return node.rows.reduce((all, row) => all + whole[row], 0);
  };
  return (
    <aside class="details" tabIndex={0} aria-live="polite" aria-label="Selected frame">
      <div class="details-head">
        <KindChip kind={view.kind(node)} />
      </div>
      <h3>{view.label(node)}</h3>
      <table class="costs">
        <thead>
          <tr>
            <th scope="col">metric</th>
            <th scope="col">before</th>
            <th scope="col">after</th>
            <th scope="col">change</th>
          </tr>
        </thead>
        <tbody>
          {diff.metrics.map((name) => {
            const unit = unitOf(diff, name);
            const [a, b] = [sum(diff.before, name), sum(diff.after, name)];
            return (
              <tr>
                <th scope="row">{metricName(name)}</th>
                <td>{inUnit(a, unit)}</td>
                <td>{inUnit(b, unit)}</td>
                <td>{change(a, b)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </aside>
  );
}
