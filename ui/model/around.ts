// Callers and callees of a frame, summed over all its places: the sandwich view. Each part of the tree counts once: of a
// frame inside a call of itself only the outermost.

import { foldedName } from "./frames";
import type { TreeView, ViewNode } from "./view";
import { foldedFrames, frameLabel } from "./view";
import { visible } from "./units";

export interface Neighbour {
  label: string;
  kind: string;
  value: number;
}

export interface Around {
  whole: number;
  self: number;
  callers: Neighbour[];
  callees: Neighbour[];
}

export function around(view: TreeView, node: ViewNode): Around {
  const { profile, options } = view;
  const groups = options.foldLayers ? foldedFrames(profile) : null;
  const groupOf = (row: number) => (groups ? groups[profile.frame[row]] : profile.frame[row]);
  const wanted = groupOf(node.at[0]);
  const { own, whole } = profile.metrics.values(options.metric);
  const hidden = (row: number) => {
    const kind = profile.kind(row);
    if (options.joinProcesses && (kind === "process" || kind === "thread")) return true;
    return options.hideLibrary && profile.library(profile.frame[row]);
  };
  const inside = new Uint8Array(profile.size);
  const callers = new Map<number, number>();
  const callees = new Map<number, number>();
  const add = (into: Map<number, number>, group: number, value: number) =>
    into.set(group, (into.get(group) ?? 0) + value);
  const example = new Map<number, number>();
  let sum = 0;
  let self = 0;
  for (let row = 1; row < profile.size; row++) {
    inside[row] = inside[profile.parent[row]];
    if (groupOf(row) !== wanted || !(whole[row] > 0)) continue;
    self += own[row];
    if (!inside[row]) {
      sum += whole[row];
      let above = profile.parent[row];
      while (above > 0 && hidden(above)) above = profile.parent[above];
      if (above > 0) {
        example.set(groupOf(above), above);
        add(callers, groupOf(above), whole[row]);
      }
      inside[row] = 1;
    }
    const stack = [...profile.children(row)];
    for (let child = stack.pop(); child !== undefined; child = stack.pop()) {
      if (!(whole[child] > 0)) continue;
      if (hidden(child)) {
        self += own[child];
        stack.push(...profile.children(child));
      } else if (groupOf(child) !== wanted) {
        example.set(groupOf(child), child);
        add(callees, groupOf(child), whole[child]);
      }
    }
  }
  const listed = (sums: Map<number, number>): Neighbour[] =>
    [...sums]
      .sort((a, b) => b[1] - a[1])
      .map(([group, value]) => {
        const frame = profile.frame[example.get(group) as number];
        const name = profile.frameText("name", frame);
        const label = frameLabel(profile, frame, options.foldLayers ? foldedName(name) : name);
        return { label: visible(label), kind: profile.kindOfFrame(frame), value };
      });
  return { whole: sum, self, callers: listed(callers), callees: listed(callees) };
}
