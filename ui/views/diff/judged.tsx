// The comparison as `leadline diff` makes it: what hinders it, figures of a step with their intervals, paths that changed.

import { intervalText, type Comparison, type Figure, type PathChange } from "../../model/comparison";
import { inUnit, number, share, visible } from "../../model/units";
import { SortTable, type Column } from "../tables/table";
import { Card, cssWidth } from "../widgets";
import { change } from "./change";

export function Judged({ found }: { found: Comparison }) {
  const rows: [string, string, string, string, string, string][] = [["time of a step", ...figure(found.step)]];
  if (found.work.a !== found.step.a || found.work.b !== found.step.b)
    rows.push(["time in operators", ...figure(found.work)]);
  if (found.gpu) rows.push(["device time", ...figure(found.gpu)]);
  const plain: [string, [number, number], string][] = [
    ["allocated memory", found.alloc, "bytes"],
    ["peak memory (whole run)", found.peak, "bytes"],
    ["calls", found.calls, "1"],
  ];
  for (const [name, [a, b], unit] of plain)
    if (a || b) rows.push([name, inUnit(a, unit), inUnit(b, unit), change(a, b), "", ""]);
  return (
    <>
      <Headline step={found.step} />
      {found.differences.length ? (
        <div class="banner hindrances">
          <b>Not the same conditions.</b>
          {found.differences.map(([, sentence]) => (
            <div>{visible(sentence)}</div>
          ))}
        </div>
      ) : null}
      <Card title="A step" note={`${number(found.steps[0])} and ${number(found.steps[1])} steps`}>
        <table class="costs judged">
          <thead>
            <tr>
              <td />
              {["before", "after", "change", "interval", "verdict"].map((head) => (
                <th scope="col">{head}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, ...cells]) => (
              <tr>
                <th scope="row">{name}</th>
                {cells.map((cell) => (
                  <td>{cell}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        <p class="small quiet">{visible([found.smallest, found.doubt].filter(Boolean).join(" "))}</p>
      </Card>
      <Changes found={found} />
    </>
  );
}

/** The answer in one sentence, and both steps as bars from zero. */
function Headline({ step }: { step: Figure }) {
  if (!step.a || !step.b) return null;
  const most = Math.max(step.a, step.b);
  const interval = intervalText(step);
  const sure = step.verdict && step.verdict !== "noise" ? `, ${step.verdict}` : "";
  return (
    <section class="card verdict headline">
      <div class="step-figure">
        <div class="huge">{change(step.a, step.b)}</div>
        <div class="quiet">a step</div>
      </div>
      <div class="grow">
        <h2 class="sentence">
          A step takes {inUnit(step.b, "ns")} instead of {inUnit(step.a, "ns")}
          {visible(sure)}
          {interval ? <span class="quiet"> ({interval})</span> : null}
        </h2>
        <div class="step-bars">
          {[["before", step.a] as const, ["after", step.b] as const].map(([name, ns]) => (
            <>
              <div class="bar-name">{name}</div>
              <div class="step-bar">
                <span class={`step-part ${name === "before" ? "was" : "is"}`} style={{ width: cssWidth(ns / most) }}>
                  {inUnit(ns, "ns")}
                </span>
              </div>
            </>
          ))}
        </div>
      </div>
    </section>
  );
}

function figure(one: Figure): [string, string, string, string, string] {
  return [inUnit(one.a, "ns"), inUnit(one.b, "ns"), change(one.a, one.b), intervalText(one), one.verdict];
}

function Changes({ found }: { found: Comparison }) {
  const delta = (row: PathChange) => row.time.b - row.time.a;
  const total = Math.max(found.work.a, found.work.b, 1);
  const columns: Column<PathChange>[] = [
    { title: "Path", value: (row) => row.path.join(" › "), text: true },
    { title: "", value: (row) => (row.status === "both" ? "" : row.status), text: true },
    {
      title: "Change",
      value: delta,
      cell: (row) => `${delta(row) > 0 ? "+" : ""}${inUnit(delta(row), "ns")}`,
    },
    {
      title: "Of a step",
      value: (row) => Math.abs(delta(row)) / total,
      cell: (row) => share(Math.abs(delta(row)), total),
    },
    { title: "Before", value: (row) => row.time.a, cell: (row) => inUnit(row.time.a, "ns") },
    { title: "After", value: (row) => row.time.b, cell: (row) => inUnit(row.time.b, "ns") },
    {
      title: "Calls before",
      value: (row) => row.calls[0],
      cell: (row) => number(Math.round(row.calls[0] * 100) / 100),
    },
    { title: "Calls after", value: (row) => row.calls[1], cell: (row) => number(Math.round(row.calls[1] * 100) / 100) },
    {
      title: "Verdict",
      value: (row) => (row.status === "added" || row.status === "removed" ? "" : row.time.verdict),
      text: true,
    },
  ];
  return (
    <Card title="What changed" note="time per step by path; the change of each path's self time">
      <SortTable title="" what="changes" columns={columns} rows={found.changes} sort={3} empty="No path changed." />
    </Card>
  );
}
