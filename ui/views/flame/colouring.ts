// What a box's colour says: its kind, its module, or how hot it is.

import { foldedName } from "../../model/frames";
import type { TreeView, ViewNode } from "../../model/view";
import { mixed } from "../colours";
import type { Colouring } from "./graph";

export const COLOURINGS = { kind: "Colour: kind", module: "Colour: module", heat: "Colour: heat" };
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
export function colouring(name: ColourName, view: TreeView): Colouring | null {
  if (name === "heat") return byHeat(view);
  return name === "module" ? byModule(view) : null;
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
