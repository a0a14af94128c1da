// What of the timeline the address says: where one looks, what is selected, sought and noted. Times are nanoseconds from the
// first event of the window, so a link holds in the same file wherever it lies.

import type { Range } from "./chart";

export interface Note {
  at: number;
  text: string;
}

export interface TimelineState {
  /** Null: the whole window. */
  view: Range | null;
  range: Range | null;
  search: string;
  /** Number of a finding that is shown, -1 for none. */
  finding: number;
  /** Row of the process that is shown alone, -1 for all. */
  process: number;
  /** What is shown of all ranks side by side; empty for everything, null for what is best to begin with. */
  role: string | null;
  /** Whether ranks that are side by side stand on one clock by their collectives. */
  aligned: boolean;
  notes: Note[];
}

export const FIRST: TimelineState = {
  view: null,
  range: null,
  search: "",
  finding: -1,
  process: -1,
  role: null,
  aligned: true,
  notes: [],
};
const MOST_NOTES = 50;

export function timelineLink(state: TimelineState): string {
  const parameters = new URLSearchParams();
  for (const name of ["view", "range"] as const) {
    const { [name]: place } = state;
    if (place) parameters.set(name, `${Math.round(place.from)}-${Math.round(place.to)}`);
  }
  if (state.search) parameters.set("search", state.search);
  if (state.finding >= 0) parameters.set("finding", String(state.finding));
  if (state.process >= 0) parameters.set("process", String(state.process));
  if (state.role !== null) parameters.set("role", state.role);
  if (!state.aligned) parameters.set("aligned", "no");
  for (const { at, text } of state.notes) parameters.append("note", `${Math.round(at)} ${text}`);
  const text = parameters.toString();
  return text ? `#timeline?${text}` : "#timeline";
}

/** What makes no sense is left out. */
export function timelineFrom(parameters: URLSearchParams): TimelineState {
  const place = (name: string): Range | null => {
    const found = /^(\d+)-(\d+)$/.exec(parameters.get(name) ?? "");
    const [from, to] = [Number(found?.[1]), Number(found?.[2])];
    return found && to > from ? { from, to } : null;
  };
  const whole = (name: string) => (/^\d{1,6}$/.test(parameters.get(name) ?? "") ? Number(parameters.get(name)) : -1);
  const notes = parameters
    .getAll("note")
    .map((text) => /^(\d+) ?(.*)$/s.exec(text))
    .filter((found) => found !== null)
    .slice(0, MOST_NOTES)
    .map((found) => ({ at: Number(found[1]), text: found[2].slice(0, 200) }));
  return {
    view: place("view"),
    range: place("range"),
    search: parameters.get("search") ?? "",
    finding: whole("finding"),
    process: whole("process"),
    role: parameters.get("role"),
    aligned: parameters.get("aligned") !== "no",
    notes,
  };
}
