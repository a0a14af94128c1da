// Small rules of the timeline: which colour an event has, where the ruler has marks.

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
