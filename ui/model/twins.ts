// The backward operators of a forward operator, and the other way round: backward hangs below its forward operator under a
// phase frame `backward`.

import type { NodeRow, Profile } from "./profile";

export interface Twins {
  direction: "forward" | "backward";
  rows: NodeRow[];
}

const MOST = 200;

/** Null where a node has no twin. */
export function twins(profile: Profile, nodes: Iterable<NodeRow>): Twins | null {
  const backward: NodeRow[] = [];
  const forward = new Set<NodeRow>();
  for (const node of nodes) {
    if (profile.kind(node) !== "operator") continue;
    for (const child of profile.children(node))
      if (isBackward(profile, child)) for (const one of profile.children(child)) backward.push(one);
    const phase = profile.parent[node];
    if (phase > 0 && isBackward(profile, phase) && profile.kind(profile.parent[phase]) === "operator")
      forward.add(profile.parent[phase]);
    if (backward.length + forward.size > MOST) break;
  }
  if (backward.length) return { direction: "backward", rows: backward };
  return forward.size ? { direction: "forward", rows: [...forward] } : null;
}

function isBackward(profile: Profile, node: NodeRow): boolean {
  return profile.kind(node) === "phase" && profile.name(node) === "backward";
}
