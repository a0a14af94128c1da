// One hot path or holder of memory: a button that opens it in the flame graph.

import { operatorName } from "../../model/frames";
import type { HotPath, Place } from "../../model/report";
import { inUnit, number, share, visible } from "../../model/units";
import type { Opened } from "../opened";
import { Bar, Dot } from "../widgets";

interface Props {
  opened: Opened;
  path: HotPath;
  metric: string;
  total?: { sum: number; unit: string };
  most: number;
}

export function PathEntry({ opened, path, metric, total, most }: Props) {
  const value = path.values[metric] ?? 0;
  const head = headOf(opened, path);
  const steps: [string, string, string][] = [
    [
      "module",
      path.module && `${path.module}${path.modules > 1 ? ` · ${path.modules} modules` : ""}`,
      path.module_class,
    ],
    ["phase", path.module && path.phase === "forward" ? "" : path.phase, "phase"],
    ["operator", operatorName(path.operator), "operator"],
  ];
  return (
    <li>
      <button type="button" class="path" onClick={() => opened.go.frame(path.node, metric)}>
        <span class="path-share">{share(value, total?.sum ?? 0)}</span>
        <span class="path-what">
          <span class="place">
            {visible(head)}
            {path.place?.function ? <span class="quiet"> {visible(path.place.function)}</span> : null}
          </span>
          <span class="steps">
            {steps.map(([kind, step, title]) =>
              step && step !== head ? (
                <span class="chip kind" title={visible(title)}>
                  <Dot kind={kind} />
                  {visible(step)}
                </span>
              ) : null,
            )}
            {path.calls ? (
              <span class="quiet small">
                {number(path.calls)} call{path.calls === 1 ? "" : "s"}
              </span>
            ) : null}
            {(path.callers ?? 1) > 1 ? <span class="quiet small">{number(path.callers ?? 1)} callers</span> : null}
          </span>
        </span>
        <span class="path-value">{inUnit(value, total?.unit ?? "1")}</span>
        <span class="path-bar">
          <Bar parts={[[value / most, path.phase === "backward" ? "phase" : "operator"]]} />
        </span>
      </button>
    </li>
  );
}

/** The line; where none is known the best name there is. */
function headOf({ profile }: Opened, path: HotPath): string {
  if (path.place) return placeText(path.place);
  const named = path.module || operatorName(path.operator) || path.phase;
  if (named || profile.kind(path.node) !== "thread") return named || placeText(null);
  return `(no Python, thread ${profile.name(path.node)})`;
}

export function placeText(place: Place | null): string {
  if (!place) return "(no Python line)";
  return place.line > 0 ? `${place.short}:${place.line}` : place.short;
}
