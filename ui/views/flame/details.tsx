// The panel beside the flame graph: what the selected frame is, where it stands in the source, and what it cost.

import { useEffect, useMemo, useState } from "preact/hooks";
import { besideOthers, ranksMeasured } from "../../model/alone";
import { operatorName } from "../../model/frames";
import { bare } from "../../model/names";
import type { Profile } from "../../model/profile";
import type { TransformKind } from "../../model/transforms";
import { twins } from "../../model/twins";
import { duration, inUnit, metricName, number, share, visible } from "../../model/units";
import type { TreeView, ViewNode } from "../../model/view";
import type { Opened } from "../opened";
import { Dot, KindChip, Named, Prose } from "../widgets";
import { Origin } from "./origin";
import { SourceLine } from "../source_line";
import { Calls, PerStep, TransformButtons } from "./actions";
import { Hardware } from "./hardware";
import { Instructions } from "./instructions";

export interface DetailsActions {
  open(node: ViewNode): void;
  zoom(node: ViewNode): void;
  callers(node: ViewNode): void;
  sandwich(node: ViewNode): void;
  row(row: number): void;
  transform(kind: TransformKind, node: ViewNode): void;
  spenders(): { view: TreeView; nodes: ViewNode[] };
}

interface Props {
  opened: Opened;
  view: TreeView;
  node: ViewNode | null;
  /** The whole job where the view is of one rank; else the profile that is shown. */
  job: Profile;
  actions: DetailsActions;
}

export function Details({ opened, view, node, job, actions }: Props) {
  return (
    <aside class="details" tabIndex={0} aria-live="polite" aria-label="Selected frame">
      {node ? (
        <Frame opened={opened} view={view} node={node} job={job} actions={actions} />
      ) : (
        <Start view={view} actions={actions} />
      )}
    </aside>
  );
}

/** Before anything is selected: which frames spent it, wherever they stand. */
function Start({ view, actions }: { view: TreeView; actions: DetailsActions }) {
  const metric = view.profile.metrics.describe(view.options.metric);
  const [spenders, setSpenders] = useState<ReturnType<DetailsActions["spenders"]> | null>(null);
  useEffect(() => {
    setSpenders(null);
    const after = setTimeout(() => setSpenders(actions.spenders())); // when the boxes are there
    return () => clearTimeout(after);
  }, [view]);
  const { view: bottomUp, nodes } = spenders ?? { view, nodes: [] };
  return (
    <>
      <h3>
        {inUnit(view.total, metric?.unit ?? "1")} {metricName(view.options.metric)}
      </h3>
      <p class="quiet small">Click a box for its source line and its cost; double-click or Enter zooms in.</p>
      <h4>Spent in, wherever they were called (click for callers)</h4>
      <div class="frame-list">
        {nodes.map((one) => (
          <FrameLink
            key={one.group}
            kind={bottomUp.kind(one)}
            label={bottomUp.label(one)}
            value={share(one.value, view.total)}
            open={() => actions.callers(one)}
          />
        ))}
      </div>
    </>
  );
}

function Frame({ opened, view, node, job, actions }: Props & { node: ViewNode }) {
  const { profile } = view;
  const frame = view.frameOf(node);
  const file = profile.frameText("file", frame);
  return (
    <>
      <div class="details-head">
        <KindChip kind={view.kind(node)} />
        {view.library(node) ? <span class="chip">library</span> : null}
      </div>
      <h3>{view.label(node)}</h3>
      {node.parent && file ? <SourceLine opened={opened} file={file} line={profile.line(frame)} /> : null}
      {node.parent ? <Origin opened={opened} rows={profile.path(node.at[0]).reverse()} /> : null}
      <FindingsOf opened={opened} node={node} />
      <Costs view={view} node={node} />
      <PerStep view={view} node={node} steps={opened.report.start?.steps ?? 0} />
      {job === view.profile ? null : <OtherRanks view={view} node={node} job={job} />}
      {node.parent ? (
        <div class="finding-links">
          <button type="button" class="plain" onClick={() => actions.sandwich(node)}>
            All callers and callees
          </button>
          <TransformButtons view={view} node={node} act={actions.transform} />
        </div>
      ) : null}
      <Calls view={view} node={node} />
      <Twins view={view} node={node} actions={actions} />
      <Kernels view={view} node={node} />
      <Hardware view={view} node={node} />
      <Instructions opened={opened} node={node} />
      <Around view={view} node={node} actions={actions} />
      <Ranks view={view} node={node} />
    </>
  );
}

function FindingsOf({ opened, node }: { opened: Opened; node: ViewNode }) {
  const rows = new Set(node.at);
  const here = (opened.findings?.findings ?? []).filter((one) => one.paths.some((path) => rows.has(path)));
  if (!here.length) return null;
  return (
    <ul class="frame-findings">
      {here.slice(0, 5).map((one) => (
        <li class={one.severity}>
          <b>
            <Prose text={one.title} />
          </b>{" "}
          <Prose text={one.remedy} />
        </li>
      ))}
    </ul>
  );
}

function Costs({ view, node }: { view: TreeView; node: ViewNode }) {
  const { profile, options } = view;
  const self = options.inverted ? null : view.self(node);
  const current = profile.metrics.describe(options.metric);
  return (
    <table class="costs">
      <tbody>
        {profile.metrics.drawn.map((metric) => {
          const whole = view.valueOf(node, metric.name);
          if (!whole && metric.name !== options.metric) return null;
          const total = profile.metrics.values(metric.name).whole[0];
          return (
            <tr class={metric.name === options.metric ? "current" : ""}>
              <th scope="row" title={metric.doc}>
                {metricName(metric.name)}
              </th>
              <td>{inUnit(whole, metric.unit)}</td>
              <td>{share(whole, total)}</td>
            </tr>
          );
        })}
        {self === null || !current ? null : (
          <tr>
            <th scope="row">of it in the frame itself</th>
            <td>{inUnit(self, current.unit)}</td>
            <td>{share(self, node.value)}</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

/** The frame on the rank that is shown, and on the others. */
function OtherRanks({ view, node, job }: { view: TreeView; node: ViewNode; job: Profile }) {
  const { profile, options } = view;
  const rows = profile.metrics.drawn.flatMap((metric) => {
    const beside = besideOthers(job, profile, metric.name, options.inverted)(node.rows);
    return beside.here || beside.others ? [{ metric, ...beside }] : [];
  });
  return (
    <>
      <h4>Beside the other {number(ranksMeasured(job) - 1)} ranks</h4>
      <table class="costs beside-ranks">
        <thead>
          <tr>
            <th />
            <th scope="col">this rank</th>
            <th scope="col">mean of the others</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ metric, here, others }) => (
            <tr class={metric.name === options.metric ? "current" : ""}>
              <th scope="row">{metricName(metric.name)}</th>
              <td>{inUnit(here, metric.unit)}</td>
              <td>{inUnit(others, metric.unit)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

/** A forward operator's backward, and the other way round. */
function Twins({ view, node, actions }: { view: TreeView; node: ViewNode; actions: DetailsActions }) {
  const { profile } = view;
  const found = useMemo(() => twins(profile, node.at), [profile, node]);
  if (!found) return null;
  const { whole } = profile.metrics.values(view.options.metric);
  const unit = profile.metrics.describe(view.options.metric)?.unit ?? "1";
  return (
    <>
      <h4>{found.direction === "backward" ? "Its backward" : "Its forward"}</h4>
      <div class="frame-list">
        {found.rows.slice(0, 6).map((row) => (
          <FrameLink
            key={row}
            kind={profile.kind(row)}
            label={visible(operatorName(profile.name(row)))}
            value={inUnit(whole[row], unit)}
            open={() => actions.row(row)}
          />
        ))}
      </div>
    </>
  );
}

/** Device work below the frame, by name. */
function Kernels({ view, node }: { view: TreeView; node: ViewNode }) {
  const { profile } = view;
  const kernels = useMemo(() => {
    const gpu = profile.metrics.values("gpu_time");
    if (!(gpu.whole[0] > 0) || !node.parent) return [];
    const sums = new Map<string, number>();
    const stack = [...node.rows];
    for (let row = stack.pop(); row !== undefined; row = stack.pop()) {
      if (gpu.own[row] > 0) sums.set(profile.name(row), (sums.get(profile.name(row)) ?? 0) + gpu.own[row]);
      if (gpu.whole[row] > gpu.own[row]) for (const child of profile.children(row)) stack.push(child);
    }
    return [...sums].sort((a, b) => b[1] - a[1]);
  }, [profile, node]);
  if (!kernels.length) return null;
  return (
    <>
      <h4>Kernels {view.options.inverted ? "it ran" : "below it"}</h4>
      <div class="frame-list">
        {kernels.slice(0, 6).map(([name, ns]) => (
          <div class="frame-link still">
            <Dot kind="kernel" />
            <span class="grow">
              <Named text={bare(name)} title={name} />
            </span>
            <span class="number">{duration(ns)}</span>
          </div>
        ))}
        {kernels.length > 6 ? <span class="quiet small">and {number(kernels.length - 6)} more</span> : null}
      </div>
    </>
  );
}

function Around({ view, node, actions }: { view: TreeView; node: ViewNode; actions: DetailsActions }) {
  const unit = view.profile.metrics.describe(view.options.metric)?.unit ?? "1";
  const above: ViewNode[] = [];
  for (let at = node.parent; at?.parent && above.length < 30; at = at.parent) above.push(at);
  const titles = view.options.inverted ? ["Called from", "On top of it"] : ["Below it", "Called from"];
  const list = (title: string, nodes: ViewNode[]) =>
    nodes.length ? (
      <>
        <h4>{title}</h4>
        <div class="frame-list">
          {nodes.map((one) => (
            <FrameLink
              key={`${one.depth} ${one.group}`}
              kind={view.kind(one)}
              label={view.label(one)}
              value={inUnit(one.value, unit)}
              open={() => actions.open(one)}
            />
          ))}
        </div>
      </>
    ) : null;
  return (
    <>
      {list(titles[0], view.children(node).slice(0, 8))}
      {list(titles[1], above)}
    </>
  );
}

/** The frame in every process and thread it stands in, where there are several. */
function Ranks({ view, node }: { view: TreeView; node: ViewNode }) {
  const { profile } = view;
  const rows = useMemo(() => {
    if (!node.parent) return [];
    const values = profile.metrics.values(view.options.metric);
    const column = view.options.inverted ? values.own : values.whole;
    const sums = new Map<number, number>();
    for (const row of node.rows) {
      let thread = row;
      while (thread > 0 && profile.kind(thread) !== "thread" && profile.kind(thread) !== "process")
        thread = profile.parent[thread];
      sums.set(thread, (sums.get(thread) ?? 0) + column[row]);
    }
    return [...sums].sort((a, b) => a[0] - b[0]);
  }, [view, node]);
  if (rows.length < 2) return null;
  const unit = profile.metrics.describe(view.options.metric)?.unit ?? "1";
  const most = Math.max(...rows.map(([, value]) => value));
  const { rank, node: processNode } = profile.tables.processes;
  const nameOf = (thread: number) => {
    const process = profile.kind(thread) === "process" ? thread : profile.parent[thread];
    const at = processNode.indexOf(process);
    const name = at >= 0 && rank[at] >= 0 ? `rank ${rank[at]}` : `process ${at + 1}`;
    return `${name}, ${profile.name(thread)}`;
  };
  return (
    <>
      <h4>In {number(rows.length)} threads</h4>
      <table class="costs ranks">
        <tbody>
          {rows.slice(0, 64).map(([thread, value]) => (
            <tr>
              <th scope="row">{visible(nameOf(thread))}</th>
              <td>
                <meter min={0} max={most} value={value} aria-label="share" />
              </td>
              <td>{inUnit(value, unit)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function FrameLink(props: { kind: string; label: string; value: string; open: () => void }) {
  const { kind, label } = props;
  return (
    <button type="button" class="frame-link" onClick={props.open}>
      <Dot kind={kind} />
      <span class="grow">
        <Named text={kind === "kernel" || kind === "collective" ? bare(label) : label} title={label} />
      </span>
      <span class="number">{props.value}</span>
    </button>
  );
}
