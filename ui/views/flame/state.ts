// What the flame graph shows, as far as a link can say it.

import { ranksAlone } from "../../model/alone";
import type { Profile } from "../../model/profile";
import { pathText, rowOfPath } from "../../model/same_path";
import { transformFrom, transformText, type Transform } from "../../model/transforms";
import { COLOURINGS, type ColourName } from "./colouring";

export interface FlameState {
  metric: string;
  inverted: boolean;
  hideLibrary: boolean;
  foldLayers: boolean;
  joinProcesses: boolean;
  collapseRecursion: boolean;
  order: "size" | "time";
  transforms: Transform[];
  colour: ColourName;
  search: string;
  /** The rank of a merged job that is shown alone; -1: all together. */
  rank: number;
  /** The row of the tree that is asked for. */
  row: number | null;
  /** Grows with each request, so that the same row can be asked for again. */
  asked: number;
}

export function firstState(profile: Profile): FlameState {
  return {
    metric: profile.metrics.main, // not the report's, which may come later or not at all
    inverted: false,
    hideLibrary: hasOwnCode(profile),
    foldLayers: true,
    joinProcesses: profile.tables.processes.pid.length > 1,
    collapseRecursion: false,
    order: "size",
    transforms: [],
    colour: "kind",
    search: "",
    rank: -1,
    row: null,
    asked: 0,
  };
}

const MOST_TRANSFORMS = 20;

/** What a link has to say, beside what is shown at first: the row by its path, which other files of the program have too. */
export function toLink(state: FlameState, profile: Profile, row: number | null): string {
  const first = firstState(profile);
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (name === "asked" || name === "row" || name === "transforms" || value === first[name as keyof FlameState])
      continue;
    parameters.set(name, typeof value === "boolean" ? (value ? "1" : "0") : String(value));
  }
  for (const one of state.transforms) parameters.append("transform", transformText(one));
  if (row) parameters.set("path", pathText(profile, row));
  const text = parameters.toString();
  return text ? `#flame?${text}` : "#flame";
}

/** What a link asks for; anything it says that makes no sense is left out. */
export function fromLink(parameters: URLSearchParams, profile: Profile): Partial<FlameState> {
  const asked: Partial<FlameState> = {};
  for (const name of ["inverted", "hideLibrary", "foldLayers", "joinProcesses", "collapseRecursion"] as const)
    if (parameters.has(name)) asked[name] = parameters.get(name) === "1";
  const metric = parameters.get("metric");
  if (metric && profile.metrics.describe(metric)) asked.metric = metric;
  const colour = parameters.get("colour");
  if (colour && Object.hasOwn(COLOURINGS, colour)) asked.colour = colour as ColourName;
  if (parameters.get("order") === "time") asked.order = "time";
  const transforms = parameters.getAll("transform").map(transformFrom);
  if (transforms.length) asked.transforms = transforms.filter((one) => one !== null).slice(0, MOST_TRANSFORMS);
  const search = parameters.get("search");
  if (search) asked.search = search;
  const rank = Number(parameters.get("rank") ?? NaN);
  if (ranksAlone(profile).includes(rank)) asked.rank = rank;
  const path = parameters.get("path");
  const atPath = path ? rowOfPath(profile, path) : null;
  if (atPath !== null) asked.row = atPath;
  const row = Number(parameters.get("row") ?? NaN); // as links of before say it
  if (Number.isInteger(row) && row >= 0 && row < profile.size) asked.row = row;
  return asked;
}

/** Whether there is any Python frame outside libraries: only then can the others be left out. */
function hasOwnCode(profile: Profile): boolean {
  const { kind } = profile.tables.frames;
  for (let frame = 0; frame < kind.length; frame++)
    if (profile.kindOfFrame(frame) === "python" && !profile.library(frame)) return true;
  return false;
}
