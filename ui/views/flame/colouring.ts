// What a box's colour says: its kind, its module, how hot it is, or whether it is more or less after a change.

import { besideOthers } from "../../model/alone";
import type { Diff } from "../../model/diff";
import { foldedName } from "../../model/frames";
import type { Profile } from "../../model/profile";
import type { TreeView, ViewNode } from "../../model/view";
import { mixed } from "../colours";
import type { Colouring } from "./graph";

export const COLOURINGS = {
  kind: "Colour: kind",
  module: "Colour: module",
  heat: "Colour: heat",
  diff: "Colour: change",
  ranks: "Colour: compared with other ranks",
};
export type ColourName = keyof typeof COLOURINGS;

const SHADES = [
  "python",
  "module",
  "operator",
  "api",
  "kernel",
  "copy",
  "collective",
  "instruction",
  "region",
  "phase",
];

/** Null for the kind, which is what boxes are coloured by when nothing else is said. */
export function colouring(name: ColourName, view: TreeView, diff: Diff | null, job: Profile): Colouring | null {
  if (name === "ranks") return byOtherRanks(view, job);
  if (name === "heat") return byHeat(view);
  if (name === "diff") return diff && byChange(view, diff);
  return name === "module" ? byModule(view) : null;
}

/** Red where there is more after a change, blue where there is less; `sums`: of a box before and after. */
export function redBlue(sums: (node: ViewNode) => [before: number, after: number]): Colouring {
  return (node, palette) => {
    const [a, b] = sums(node);
    const part = Math.max(-1, Math.min(1, (b - a) / Math.max(a, b, 1e-12) / 0.5)); // full colour at half as much again
    return mixed(palette.of("same"), palette.of(part < 0 ? "before" : "after"), Math.abs(part));
  };
}

/** This profile is the one before the change; by the metric of the view where both have it. */
function byChange(view: TreeView, diff: Diff): Colouring {
  const { metric, inverted } = view.options;
  const column = inverted ? "own" : "whole";
  const [before, after] = [diff.before, diff.after].map((one) => one.metrics.values(metric)[column]);
  const known = new WeakMap<ViewNode, [number, number]>();
  return redBlue((node) => {
    let made = known.get(node);
    if (!made) {
      made = [0, 0];
      const rows = new Set<number>();
      for (const row of node.rows) rows.add(diff.rowOf[0][row]);
      for (const row of rows) {
        made[0] += before[row];
        made[1] += after[row];
      }
      known.set(node, made);
    }
    return made;
  });
}

/** One rank, which the view is of, beside the average of the others. */
function byOtherRanks(view: TreeView, job: Profile): Colouring {
  const beside = besideOthers(job, view.profile, view.options.metric, view.options.inverted);
  const known = new WeakMap<ViewNode, [number, number]>();
  return redBlue((node) => {
    let made = known.get(node);
    if (!made) {
      const { here, others } = beside(node.rows);
      known.set(node, (made = [others, here]));
    }
    return made;
  });
}

/** The share of the whole that a frame spent itself, from pale to strong. */
function byHeat(view: TreeView): Colouring {
  let most = 0;
  const own = view.profile.metrics.values(view.options.metric).own;
  for (const value of own) if (value > most) most = value;
  return (node, palette) => {
    let self = 0;
    for (const row of node.at) self += own[row];
    const part = most > 0 ? Math.min(1, Math.sqrt(self / most)) : 0;
    return mixed(palette.of("heat-low"), palette.of("heat-high"), part);
  };
}

/** Boxes below one nn.Module (numbered layers are one) share a colour. */
function byModule(view: TreeView): Colouring {
  const { profile } = view;
  const known = new Map<number, string>();
  const moduleOf = (node: ViewNode): string => {
    for (let row = node.at[0]; row > 0; row = profile.parent[row])
      if (profile.kind(row) === "module") return foldedName(profile.name(row));
    return "";
  };
  return (node, palette) => {
    const row = node.at[0];
    let shade = known.get(row);
    if (shade === undefined) {
      const module = node.parent ? moduleOf(node) : "";
      let hash = 0;
      for (let i = 0; i < module.length; i++) hash = (hash * 31 + module.charCodeAt(i)) >>> 0;
      known.set(row, (shade = module ? SHADES[hash % SHADES.length] : "native"));
    }
    return palette.of(`kind-${shade}`);
  };
}
