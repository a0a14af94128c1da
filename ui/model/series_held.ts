// Curves of what is held over time: live tensor memory by the phase and the line that allocated it, and the batches of data loaders.

import { baseName } from "./frames";
import type { Profile } from "./profile";
import { dataflowOf, movedOf, recordsOf } from "./records";
import { EventKindNames } from "./schema.generated";
import { scopesOf } from "./scopes";
import { thinned, type Chart } from "./series";
import { processName } from "./timeline";

const MOST_CHARTS = 6;
const MOST_BANDS = 6;
const OUTSIDE = "outside of phases";
const SINCE =
  ", since the window began; a release counts for the latest allocation of its size, since a window holds no addresses";

/** A chart per process and device, twice: what each phase, and what each line has allocated that is not yet freed, one upon
 * the other. */
export function memoryByOwner(profile: Profile, origin: number): Chart[] {
  const { user, phase } = scopesOf(profile);
  const lineOf = (node: number) => {
    const frame = user[node] >= 0 ? profile.frame[user[node]] : -1;
    return frame < 0 ? profile.name(node) : `${baseName(profile.frameText("file", frame))}:${profile.line(frame)}`;
  };
  return [
    ...heldBy(profile, origin, "phase", (node) => (phase[node] >= 0 ? profile.name(phase[node]) : OUTSIDE)),
    ...heldBy(profile, origin, "line", lineOf),
  ];
}

function heldBy(profile: Profile, origin: number, what: string, ownerOf: (node: number) => string): Chart[] {
  const { kind, bytes, start_ns, node, thread, device } = profile.tables.events;
  const { threads, devices, processes } = profile.tables;
  const wanted = EventKindNames.indexOf("allocate");
  const exact = "import" in profile.meta.available; // there a release stands at the call path that allocated
  const owners = new Map<number, string>();
  const places = new Map<string, Held>();
  for (let i = 0; i < kind.length; i++) {
    if (kind[i] !== wanted || !bytes[i]) continue;
    const process = thread[i] >= 0 ? threads.process[thread[i]] : device[i] >= 0 ? devices.process[device[i]] : 0;
    const where = device[i] >= 0 ? profile.text(devices.name[device[i]]) : "CPU";
    const key = processes.pid.length > 1 ? `${processName(profile, process)}, ${where}` : where;
    let held = places.get(key);
    if (!held) places.set(key, (held = new Held(exact)));
    let owner = owners.get(node[i]);
    if (owner === undefined) owners.set(node[i], (owner = ownerOf(node[i])));
    held.change(start_ns[i] - origin, bytes[i], owner, node[i]);
  }
  return [...places]
    .filter(([, held]) => held.owners.length > 1)
    .slice(0, MOST_CHARTS)
    .map(([name, held]) => ({
      title: `Live tensor memory by ${what}, ${name}`,
      note: `who allocated what was alive${exact ? "" : SINCE}`,
      unit: "bytes" as const,
      ...held.stacked(),
    }));
}

/** What is alive of one place, by who allocated it. */
class Held {
  readonly owners: string[] = [];
  private readonly at: number[] = [];
  /** Which phase changed, and to what. */
  private readonly which: number[] = [];
  private readonly nodes: number[] = [];
  private readonly total: number[] = [];
  private readonly values: number[] = [];
  private readonly live: number[] = [];
  private readonly most: number[] = [];
  private readonly bySize = new Map<number, number[]>();
  private all = 0;

  constructor(private readonly exact: boolean) {}

  change(time: number, bytes: number, owner: string, node: number): void {
    let of: number | undefined;
    if (bytes > 0 || this.exact) of = this.owners.indexOf(owner);
    if (bytes > 0) {
      if (of === -1) of = this.owners.push(owner) - 1;
      const same = this.bySize.get(bytes);
      if (same) same.push(of as number);
      else this.bySize.set(bytes, [of as number]);
    } else if (!this.exact) of = this.bySize.get(-bytes)?.pop();
    if (of === undefined || of < 0) return; // from before the window
    this.live[of] = (this.live[of] ?? 0) + bytes;
    this.most[of] = Math.max(this.most[of] ?? 0, this.live[of]);
    this.all += bytes;
    this.at.push(time);
    this.which.push(of);
    this.nodes.push(node);
    this.values.push(this.live[of]);
    this.total.push(this.all);
  }

  /** The owners that held most at some moment, and all others together. */
  stacked(): Pick<Chart, "x" | "lines" | "stacked" | "nodes"> {
    const kept = thinned(this.total);
    const order = this.owners.map((_, of) => of).sort((a, b) => this.most[b] - this.most[a]);
    const shown = order.slice(0, order.length > MOST_BANDS ? MOST_BANDS - 1 : MOST_BANDS);
    const lineOf = this.owners.map((_, of) => (shown.includes(of) ? shown.indexOf(of) : shown.length));
    const names = shown.map((of) => this.owners[of]);
    if (order.length > shown.length) names.push(`${order.length - shown.length} others`);
    const lines = names.map((name) => ({ name, values: new Array<number>(kept.length).fill(0) }));
    const now = this.owners.map(() => 0);
    const sums = names.map(() => 0);
    let next = 0;
    kept.forEach((row, point) => {
      for (; next <= row; next++) {
        const of = this.which[next];
        sums[lineOf[of]] += this.values[next] - now[of];
        now[of] = this.values[next];
      }
      lines.forEach((line, at) => (line.values[point] = sums[at]));
    });
    const nodes = kept.map((row) => this.nodes[row]);
    return { x: kept.map((row) => this.at[row]), lines, nodes, stacked: true };
  }
}

/** Of each loader with workers: batches that were asked for, and those that lay ready, when the loop asked for one. */
export function loaderQueues(profile: Profile, origin: number, end: number): Chart[] {
  const made: Chart[] = [];
  const { pid } = profile.tables.processes;
  for (const [process, record] of recordsOf(profile).entries()) {
    const moved = movedOf(record);
    const loaders = new Map<number, [time: number, asked: number, ready: number][]>();
    for (const row of dataflowOf(record, "batches")) {
      if (!Array.isArray(row) || row.length !== 7 || row.some((value) => typeof value !== "number")) continue;
      const [loader, , , queued, received, , used] = row as number[];
      const changes = loaders.get(loader) ?? [];
      loaders.set(loader, changes);
      const put = (time: number, asked: number, ready: number) => {
        if (time > 0) changes.push([Math.max(0, time + moved - origin), asked, ready]);
      };
      put(queued, 1, 0);
      put(received > 0 ? received : used, 0, 1);
      put(used, -1, -1);
    }
    for (const [loader, changes] of loaders) {
      changes.sort((a, b) => a[0] - b[0]);
      let [asked, ready] = [0, 0];
      const points = changes.map(([time, a, r]) => [time, (asked += a), (ready += r)]).filter(([time]) => time <= end);
      if (points.length < 2) continue;
      const several = pid.length > 1 ? `, ${processName(profile, process)}` : "";
      const which = loaders.size > 1 ? ` ${loader + 1}` : "";
      const kept = thinned(points.map(([, count]) => count));
      made.push({
        title: `Queue of data loader${which}${several}`,
        note: "batches asked of the workers and not yet used, and those of them that lay ready; at none, the loop waits",
        unit: "1",
        x: kept.map((i) => points[i][0]),
        lines: [
          { name: "asked for", values: kept.map((i) => points[i][1]) },
          { name: "ready", values: kept.map((i) => points[i][2]) },
        ],
      });
    }
  }
  return made.slice(0, MOST_CHARTS);
}
