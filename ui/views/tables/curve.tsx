// A curve that an event tool has found, drawn as SVG: a value holds until the next.

import type { ToolOutput } from "../../model/tools";
import { duration, number, size, visible } from "../../model/units";

const COLOURS = ["--accent", "--kind-kernel", "--kind-module", "--kind-phase", "--kind-api", "--kind-region"];
const [WIDTH, HEIGHT] = [1000, 160];
const MOST_POINTS = 4000;

function shown(value: number, unit: string): string {
  if (unit === "bytes") return size(value);
  return unit === "ns" ? duration(value) : number(Math.round(value * 100) / 100);
}

export function Curve({ output }: { output: Extract<ToolOutput, { kind: "curve" }> }) {
  const series = output.series.slice(0, COLOURS.length);
  const { x, unit, xUnit } = output;
  const most = Math.max(...series.flatMap(([, values]) => values.map((value) => value ?? 0)), 0) || 1;
  const [first, last] = [x[0] ?? 0, x[x.length - 1] ?? 1];
  const stride = Math.max(1, Math.ceil(x.length / MOST_POINTS));
  const path = (values: readonly (number | null)[]) => {
    let made = "";
    for (let i = 0; i < x.length; i += stride) {
      const at = ((x[i] - first) / (last - first || 1)) * WIDTH;
      const y = HEIGHT - ((values[i] ?? 0) / most) * HEIGHT;
      made += i ? `H${at.toFixed(1)}V${y.toFixed(1)}` : `M${at.toFixed(1)} ${y.toFixed(1)}`;
    }
    return made;
  };
  return (
    <figure class="curve">
      <figcaption class="legend">
        {series.map(([name, values], i) => (
          <span>
            <span class="dot" style={{ background: `var(${COLOURS[i]})` }} />
            {visible(`${name}, at most ${shown(Math.max(...values.map((value) => value ?? 0), 0), unit)}`)}
          </span>
        ))}
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={visible(`${output.name}: ${series.map(([name]) => name).join(", ")}`)}
      >
        {series.map(([, values], i) => (
          <path d={path(values)} style={{ stroke: `var(${COLOURS[i]})` }} />
        ))}
      </svg>
      <div class="quiet small curve-ends">
        <span>{shown(first, xUnit)}</span>
        <span>{shown(last, xUnit)}</span>
      </div>
    </figure>
  );
}
