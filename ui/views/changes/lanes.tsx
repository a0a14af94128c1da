// How busy each lane is along two steps, measured above and predicted below, on one axis.

import type { ChangeLane, Changes } from "../../model/changes";
import { visible } from "../../model/units";
import { Card } from "../widgets";

const KINDS: Record<string, string> = { thread: "operator", stream: "kernel", channel: "collective" };

export function Busy({ lanes }: { lanes: NonNullable<Changes["lanes"]> }) {
  return (
    <Card title="Measured and predicted" note={lanes.said}>
      <table class="data busy">
        <tbody>
          {lanes.lanes.map((lane) => (
            <tr>
              <th scope="row" class="text">
                {visible(lane.name)}
              </th>
              <td class="text">
                <Strip lane={lane} which="before" bins={lanes.bins} levels={lanes.levels} />
                <Strip lane={lane} which="after" bins={lanes.bins} levels={lanes.levels} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Strip(props: { lane: ChangeLane; which: "before" | "after"; bins: number; levels: number }) {
  const { lane, which, bins, levels } = props;
  const label = `${visible(lane.name)}, ${which === "before" ? "measured" : "predicted"}`;
  return (
    <svg
      class={`strip ${KINDS[lane.kind] ?? "native"}`}
      viewBox={`0 0 ${bins} 10`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      {lane[which].map(([first, width, level]) => (
        <rect x={first} y="0" width={width} height="10" fill-opacity={level / levels} />
      ))}
    </svg>
  );
}
