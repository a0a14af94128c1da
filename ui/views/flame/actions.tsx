// What can be done with the selected frame, and what one call and one step of it cost.

import { useMemo } from "preact/hooks";
import { MetricInfo } from "../../model/schema.generated";
import { TRANSFORMS, type TransformKind } from "../../model/transforms";
import { inUnit, metricName, number } from "../../model/units";
import type { TreeView, ViewNode } from "../../model/view";

const BUTTONS: [TransformKind, string, string][] = [
  ["focus", "Focus here", "Show only what is below this place; shares are of it"],
  ["function", "Focus on the frame", "Show this frame as one, from wherever it is called"],
  ["merge", "Merge", "Give its cost to its callers"],
  ["drop", "Drop", "Leave it out with all below it"],
];

interface Props {
  view: TreeView;
  node: ViewNode;
  act(kind: TransformKind, node: ViewNode): void;
}

export function TransformButtons({ view, node, act }: Props) {
  return (
    <>
      {BUTTONS.map(([kind, label, help]) =>
        kind === "focus" && view.options.inverted ? null : (
          <button type="button" class="plain" title={`${help} (${TRANSFORMS[kind]})`} onClick={() => act(kind, node)}>
            {label}
          </button>
        ),
      )}
    </>
  );
}

/** The mean of a call and of a step, where calls and steps are counted. */
export function PerStep({ view, node, steps }: { view: TreeView; node: ViewNode; steps: number }) {
  const metric = view.profile.metrics.describe(view.options.metric);
  if (!metric || metric.name === "calls" || metric.name.startsWith("peak")) return null;
  const calls = view.profile.metrics.describe("calls") ? view.valueOf(node, "calls") : 0;
  const own = node.at.reduce((sum, row) => sum + view.profile.metrics.values("calls").own[row], 0);
  const counted = view.kind(node) === "operator" && !view.options.inverted ? own : calls;
  const parts = [
    counted > 0 ? `${number(counted)} calls of ${inUnit(node.value / counted, metric.unit)}` : "",
    steps > 0 ? `${inUnit(node.value / steps, metric.unit)} a step` : "",
  ].filter(Boolean);
  return parts.length ? <p class="quiet small">{parts.join(" · ")}</p> : null;
}

/** What was measured at this very frame: one row per metric with its spread. */
export function Calls({ view, node }: { view: TreeView; node: ViewNode }) {
  const stats = useMemo(() => [...view.profile.metrics.stats(node.at.slice(0, 20_000))], [view, node]);
  const shown = stats.filter(([, one]) => one.count > 0);
  if (!shown.length) return null;
  return (
    <details class="spread">
      <summary>Each measurement at this frame</summary>
      <div class="scroll">
        <table class="costs">
          <thead>
            <tr>
              <th scope="col">metric</th>
              {["count", "min", "mean", "max", "std"].map((head) => (
                <th scope="col">{head}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map(([name, one]) => (
              <tr>
                <th scope="row" title={view.profile.metrics.doc(name)}>
                  {metricName(name)}
                </th>
                <td>{number(one.count)}</td>
                {[one.min, one.mean, one.max, one.std].map((value) => (
                  <td>{inUnit(value, MetricInfo[name].unit)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
