// Kernels of captured graphs by role. A graph runs its branches on streams that the driver chose, often dozens, and which one
// says nothing: where a device has more of them than there are roles, the timeline has a lane for each role instead.

import type { Profile } from "./profile";
import { EventKindNames, type EventKind } from "./schema.generated";

export const GRAPH_ROLES = ["compute", "communication", "copies"] as const;
export type GraphRole = (typeof GRAPH_ROLES)[number];

const OTHERS: Partial<Record<EventKind, GraphRole>> = { collective: "communication", copy: "copies", set: "copies" };

/** The role of an event that is drawn by role, null for all others. */
export function rolesInGraphs(profile: Profile): (event: number) => GraphRole | null {
  const { device, stream, graph_node, kind } = profile.tables.events;
  const streams = new Map<number, Set<number>>();
  for (let event = 0; event < device.length; event++) {
    if (device[event] < 0 || !(graph_node[event] > 0)) continue;
    const known = streams.get(device[event]);
    if (known) known.add(stream[event]);
    else streams.set(device[event], new Set([stream[event]]));
  }
  return (event) =>
    graph_node[event] > 0 && (streams.get(device[event])?.size ?? 0) > GRAPH_ROLES.length
      ? (OTHERS[EventKindNames[kind[event]]] ?? "compute")
      : null;
}
