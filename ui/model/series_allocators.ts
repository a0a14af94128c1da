// What allocators of device memory say of themselves over the window (`meta.processes[].dataflow.allocators`).

import type { Profile } from "./profile";
import { isObject } from "./reader";
import { dataflowOf, movedOf, recordsOf } from "./records";
import { thinned, type Chart } from "./series";
import { processName } from "./timeline";

const MOST_CHARTS = 6;

/** What allocators reserved of their device, beside what of it was in use. */
export function reserved(profile: Profile, origin: number): Chart[] {
  const { devices, processes } = profile.tables;
  const made: Chart[] = [];
  for (const [process, record] of recordsOf(profile).entries())
    for (const told of dataflowOf(record, "allocators")) {
      if (!isObject(told) || !isObject(told.values) || !Array.isArray(told.time_ns)) continue;
      const times = told.time_ns as number[];
      const values = told.values as Record<string, number[]>;
      const held = values["bytes reserved"];
      const used = values["bytes in use"] ?? values["bytes requested"];
      if (times.length < 2 || held?.length !== times.length || used?.length !== times.length) continue;
      const row = devices.index.findIndex((index, at) => index === told.device && devices.process[at] === process);
      const where = row >= 0 ? profile.text(devices.name[row]) : `device ${told.device}`;
      const kept = thinned(held);
      made.push({
        title: `Reserved on ${processes.pid.length > 1 ? `${processName(profile, process)}, ` : ""}${where}`,
        note: `memory of the device that ${String(told.name)} reserves, in use or free`,
        unit: "bytes",
        x: kept.map((at) => times[at] + movedOf(record) - origin),
        lines: [
          { name: "in use", values: kept.map((at) => used[at]) },
          { name: "free", values: kept.map((at) => Math.max(0, held[at] - used[at])) },
        ],
        stacked: true,
      });
    }
  return made.slice(0, MOST_CHARTS);
}
