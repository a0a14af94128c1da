// What the page's model costs on a profile, in milliseconds of CPU time, which a busy machine hardly changes:
//     node_modules/.bin/esbuild model/testing/cost.ts --bundle --platform=node > cost.cjs && node cost.cjs FILE.leadline

import { readFileSync } from "node:fs";
import { layout } from "../../views/flame/boxes";
import { openProfile } from "../reader";
import { Search } from "../search";
import { timelineOf } from "../timeline";
import { rangeFacts } from "../timeline_facts";
import { TreeView } from "../view";

declare const process: { argv: string[]; cpuUsage(): { user: number; system: number } };

const spent = () => (process.cpuUsage().user + process.cpuUsage().system) / 1000;

async function costs(file: string): Promise<Record<string, number>> {
  const made: Record<string, number> = {};
  const timed = <T>(name: string, act: () => T): T => {
    const before = spent();
    const result = act();
    made[name] = Math.round(spent() - before);
    return result;
  };
  const bytes = readFileSync(file);
  const before = spent();
  const profile = await openProfile(bytes);
  made.open = Math.round(spent() - before);
  const options = {
    metric: profile.metrics.main,
    inverted: false,
    hideLibrary: true,
    foldLayers: true,
    joinProcesses: false,
    collapseRecursion: false,
  };
  timed("flame graph", () => layout(new TreeView(profile, options), { from: 0, to: 1 }, 1200));
  timed("bottom-up", () => layout(new TreeView(profile, { ...options, inverted: true }), { from: 0, to: 1 }, 1200));
  const search = new Search(profile);
  timed("search, first", () => search.find("aten::op.77", options.metric));
  timed("search", () => search.find("forward.12", options.metric));
  const timeline = timed("timeline", () => timelineOf(profile, true));
  if (timeline) timed("its statistics", () => rangeFacts(profile, timeline, 0, timeline.length_ns));
  return made;
}

void costs(process.argv[2]).then((made) => console.log(JSON.stringify(made)));
