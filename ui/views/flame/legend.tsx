// What stands over and below the flame graph: the meaning of its colours, and the tip at the pointer.

import { useMemo } from "preact/hooks";
import { inUnit, metricName, number, share, visible } from "../../model/units";
import type { TreeView, ViewNode } from "../../model/view";
import type { Opened } from "../opened";
import { DiffLegend, Dot } from "../widgets";
import type { ColourName } from "./colouring";

/** `changes`: boxes are coloured by what a change did; `others`: by how much more the rank has than so many others. */
export function Beside(props: {
  opened: Opened;
  view: TreeView;
  changes: boolean;
  others: number;
  colour: ColourName;
}) {
  const { opened, view, changes, others, colour } = props;
  if (others) return <RankLegend others={others} />;
  if (colour === "heat")
    return (
      <div class="legend">
        <span>
          <span class="scale" />
          {`self ${metricName(view.options.metric)}: from zero to the maximum of any frame (square-root scale)`}
        </span>
      </div>
    );
  if (colour === "module")
    return (
      <div class="legend">
        <span>one colour for all that runs below one module; grey is outside of modules</span>
      </div>
    );
  return changes ? <ChangeLegend opened={opened} view={view} /> : <Legend opened={opened} />;
}

function Legend({ opened }: { opened: Opened }) {
  const { profile } = opened;
  const kinds = useMemo(() => {
    const used = new Set<number>();
    for (const frame of profile.frame) used.add(profile.tables.frames.kind[frame]);
    const backward = profile.tables.frames.kind.some(
      (_, frame) => profile.kindOfFrame(frame) === "phase" && profile.frameText("name", frame) === "backward",
    );
    const shown = [...used]
      .sort((a, b) => a - b)
      .map((kind) => profile.kindOfFrame(profile.tables.frames.kind.indexOf(kind)))
      .filter((kind) => !["root", "process", "thread", "pruned"].includes(kind)) as string[];
    return backward ? [...shown, "backward"] : shown;
  }, [profile]);
  return (
    <div class="legend">
      {kinds.map((kind) => (
        <span>
          <Dot kind={kind} />
          {kind}
        </span>
      ))}
      {opened.findings?.findings.length ? (
        <span>
          <span class="dot finding-dot" />a finding is about this frame
        </span>
      ) : null}
    </div>
  );
}

function RankLegend({ others }: { others: number }) {
  return (
    <div class="legend">
      <span>
        <span class="dot more" />
        {`more than the mean of the ${number(others)} other ranks`}
      </span>
      <span>
        <span class="dot less" />
        less
      </span>
    </div>
  );
}

/** What is new after the change has no box here. */
function ChangeLegend({ opened: { comparison, go }, view }: { opened: Opened; view: TreeView }) {
  const { diff, said, name } = comparison;
  const { metric } = view.options;
  return (
    <div class="legend">
      {!diff ? (
        <span role="status">{visible(said)}</span>
      ) : diff.metrics.includes(metric) ? (
        <DiffLegend />
      ) : (
        <span>{visible(`${name} has no ${metricName(metric)}, so no change is known.`)}</span>
      )}
      <button type="button" class="plain" onClick={() => go.page("diff")}>
        What changed, with what is new
      </button>
    </div>
  );
}

export function Tip({
  opened,
  view,
  tip,
}: {
  opened: Opened;
  view: TreeView;
  tip: { node: ViewNode; x: number; y: number };
}) {
  const { profile } = opened;
  const unit = profile.metrics.describe(view.options.metric)?.unit ?? "1";
  const frame = view.frameOf(tip.node);
  const file = tip.node.parent ? profile.frameText("file", frame) : "";
  const line = profile.line(frame);
  const right = tip.x > innerWidth / 2;
  const low = tip.y > innerHeight - 120;
  const style = {
    left: right ? undefined : `${tip.x + 14}px`,
    right: right ? `${innerWidth - tip.x + 14}px` : undefined,
    top: low ? undefined : `${tip.y + 18}px`,
    bottom: low ? `${innerHeight - tip.y + 12}px` : undefined,
  };
  return (
    <div class="tip" style={style} aria-hidden="true">
      <b>{view.label(tip.node)}</b>
      {file ? <div class="quiet">{visible(opened.shortFile(file)) + (line > 0 ? `:${line}` : "")}</div> : null}
      <div>
        {inUnit(tip.node.value, unit)}, {share(tip.node.value, view.total)}
      </div>
    </div>
  );
}
