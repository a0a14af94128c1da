// Every nn.Module by qualified name, with what its submodules took. A module inside one of the same name counts once.
// As python/leadline/analysis/breakdown.py.

import { foldedName } from "../frames";
import type { Profile } from "../profile";
import type { ModuleRow } from "../report";
import { nameOf, scopesOf } from "../scopes";
import { sums } from "./rows";

export function modules(profile: Profile): ModuleRow[] {
  const { module, phase } = scopesOf(profile);
  const { parent, size, frame, tables } = profile;
  const own = {
    time: sums(profile, "time"),
    gpu: sums(profile, "gpu_time"),
    alloc: sums(profile, "alloc_bytes"),
    backward: new Float64Array(size),
  };
  const backwardPhase = new Map<number, boolean>();
  const inBackward = (node: number) => {
    const at = phase[node];
    if (at < 0) return false;
    let is = backwardPhase.get(frame[at]);
    if (is === undefined) backwardPhase.set(frame[at], (is = nameOf(profile, at) === "backward"));
    return is;
  };
  for (let node = 0; node < size; node++) if (own.time[node] && inBackward(node)) own.backward[node] = own.time[node];

  const self = new Float64Array(size);
  const whole = { time: new Float64Array(size), gpu: new Float64Array(size), alloc: new Float64Array(size) };
  const backward = new Float64Array(size);
  for (let node = size - 1; node >= 0; node--) {
    const holder = module[node];
    if (holder < 0) continue;
    self[holder] += own.time[node];
    whole.time[holder] += own.time[node];
    whole.gpu[holder] += own.gpu[node];
    whole.alloc[holder] += own.alloc[node];
    backward[holder] += own.backward[node];
  }
  const above = (node: number) => (parent[node] >= 0 ? module[parent[node]] : -1);
  for (let node = size - 1; node >= 0; node--) {
    if (module[node] !== node || above(node) < 0) continue; // a module holds what its submodules took
    for (const column of [whole.time, whole.gpu, whole.alloc, backward]) column[above(node)] += column[node];
  }
  const groups = new Map<number, ModuleRow & { nodes: number }>();
  for (let node = 0; node < size; node++) {
    if (module[node] !== node) continue;
    const name = tables.frames.name[frame[node]];
    let row = groups.get(name);
    if (!row) {
      row = {
        name: profile.text(name), class_name: "", time_ns: 0, self_ns: 0, forward_ns: 0, backward_ns: 0, gpu_time_ns: 0,
        alloc_bytes: 0, modules: 1, nodes: 0,
      }; // prettier-ignore
      groups.set(name, row);
    }
    row.class_name = profile.frameText("module", frame[node]);
    row.self_ns += self[node];
    if (insideOfSameName(profile, above, node, name)) continue;
    row.time_ns += whole.time[node];
    row.backward_ns += backward[node];
    row.forward_ns += whole.time[node] - backward[node];
    row.gpu_time_ns += whole.gpu[node];
    row.alloc_bytes += whole.alloc[node];
  }
  return [...groups.values()]
    .filter((row) => row.time_ns || row.gpu_time_ns || row.alloc_bytes)
    .sort((a, b) => b.time_ns - a.time_ns || b.gpu_time_ns - a.gpu_time_ns || (a.name < b.name ? -1 : 1));
}

const MOST_NESTED = 2000;

function insideOfSameName(profile: Profile, above: (node: number) => number, node: number, name: number): boolean {
  let steps = 0;
  for (let at = above(node); at >= 0 && steps < MOST_NESTED; at = above(at), steps++)
    if (profile.tables.frames.name[profile.frame[at]] === name) return true;
  return false;
}

/** Rows whose names differ only in layer numbers, added up. Modules of one pattern never hold each other. */
export function foldedModules(rows: ModuleRow[]): ModuleRow[] {
  const groups = new Map<string, ModuleRow>();
  for (const row of rows) {
    const key = JSON.stringify([foldedName(row.name), row.class_name]);
    const sum = groups.get(key);
    if (!sum) {
      groups.set(key, { ...row });
      continue;
    }
    sum.name = foldedName(row.name);
    sum.modules += row.modules;
    sum.time_ns += row.time_ns;
    sum.self_ns += row.self_ns;
    sum.forward_ns += row.forward_ns;
    sum.backward_ns += row.backward_ns;
    sum.gpu_time_ns += row.gpu_time_ns;
    sum.alloc_bytes += row.alloc_bytes;
  }
  return [...groups.values()];
}
