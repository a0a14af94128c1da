// Small rules of the timeline: which colour an event has, where the ruler has marks.

import { duration } from "../../model/units";

/** The kind of frame whose colour an event has. */
export function shownKind(kind: string | undefined, frame: string): string {
  if (kind === "copy" || kind === "set") return "copy";
  if (kind === "synchronize" || kind === "stream_wait" || kind === "event_record" || kind === "graph_launch")
    return "api";
  return kind === "step" ? "thread" : frame;
}

/** 1, 2 or 5 times a power of ten, at least `least`. */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least) ?? 10 * power;
}

/** What stands at a tick of the ruler: the time, and where ticks lie too close to be told apart by it, at the first of them with
 * as many digits as it takes and at the others how much later they are. */
export function tickText(at: number, first: number, step: number): string {
  if (step >= first / 200) return duration(at);
  if (at > first) return `+${duration(at - first)}`;
  const [unit, name] = first >= 1e9 ? [1e9, "s"] : first >= 1e6 ? [1e6, "ms"] : [1e3, "µs"];
  return `${(first / unit).toFixed(Math.min(9, Math.ceil(Math.log10(unit / step))))} ${name}`;
}
