// Profiles drawn as text, for tests: the notation of python/leadline/profiles/build.py as far as the model's tests need it.
// `KIND NAME [MODULE] @ FILE:LINE {DETAIL} | metric=sum/count ...`, two spaces of indent per level.

import { openProfile } from "../reader";
import type { Profile } from "../profile";
import { EventKindNames, FrameKindNames, MetricKindNames, TABLES, type Tables } from "../schema.generated";
import { crc32 } from "../zip";

type Rows = Record<string, number>[];

/** start, duration, kind, node, thread, device, stream, correlation, sequence, forward thread, step */
export type EventRow = [number, number, string, number, number, number, number, number, number, number, number];

export function drawn(text: string, meta: object = {}, events: EventRow[] = []): Promise<Profile> {
  return openProfile(drawnFile(text, meta, events));
}

export function drawnFile(text: string, meta: object = {}, events: EventRow[] = []): Uint8Array {
  const strings = new Map<string, number>([["", 0]]);
  const intern = (one: string) => strings.get(one) ?? (strings.set(one, strings.size), strings.size - 1);
  const rows = Object.fromEntries(Object.keys(TABLES).map((name) => [name, []])) as unknown as Record<
    keyof Tables,
    Rows
  >;
  const frames = new Map<string, number>();
  const frame = (kind: string, name: string, module = "", file = "", line = 0, detail = "") => {
    const row = {
      kind: FrameKindNames.indexOf(kind as "root"), name: intern(name), file: intern(file), line, first_line: 0,
      module: intern(module), address: 0, detail: intern(detail),
    }; // prettier-ignore
    const key = JSON.stringify(row);
    const known = frames.get(key) ?? rows.frames.push(row) - 1;
    frames.set(key, known);
    return known;
  };
  rows.nodes.push({ parent: -1, frame: frame("root", "root") });
  const lines = text.split("\n").filter((line) => line.trim());
  const indent = Math.min(...lines.map((line) => line.length - line.trimStart().length));
  const path: number[] = [0];
  for (const line of lines) {
    const depth = (line.length - line.trimStart().length - indent) / 2 + 1;
    const [left, right = ""] = line.trim().split(" | ");
    const found = /^(\w+) (.*?)(?: \[(.*?)\])?(?: @ (.*?)(?::(\d+))?)?(?: (\{.*\}))?$/.exec(left);
    if (!found) throw new Error(`not a frame: ${line}`);
    const [, kind, name, module, file, number, detail] = found;
    const node =
      rows.nodes.push({
        parent: path[depth - 1], frame: frame(kind, name, module, file, Number(number ?? 0), detail),
      }) - 1; // prettier-ignore
    path[depth] = node;
    if (kind === "process")
      rows.processes.push({
        pid: rows.processes.length + 1, parent_pid: 0, rank: -1, local_rank: -1, node, name: intern(name), start_ns: 0,
        end_ns: 0, complete: 1,
      }); // prettier-ignore
    if (kind === "thread")
      rows.threads.push({
        process: rows.processes.length - 1, tid: 1, name: intern(name), node, operator_ns: 0, data_ns: 0, wall_ns: 0,
        cpu_ns: 0,
      }); // prettier-ignore
    for (const cell of right.split(" ").filter(Boolean)) {
      const [metric, value] = cell.split("=");
      const [sum, count = 1] = value.split("/").map(Number);
      rows.metrics.push({
        node, metric: MetricKindNames.indexOf(metric as "time"), device: -1, stream: -1, count, sum, min: sum / count,
        max: sum / count, sum_squares: (sum * sum) / count,
      }); // prettier-ignore
    }
  }
  for (const [
    start_ns,
    duration_ns,
    kind,
    node,
    thread,
    device,
    stream,
    correlation,
    sequence,
    forward_thread,
    step,
  ] of events) {
    rows.events.push({
      start_ns, duration_ns, kind: EventKindNames.indexOf(kind as "step"), node, thread, device, stream, correlation,
      sequence, forward_thread, bytes: 0, awaits: -1, awaits_correlation: 0, graph_node: 0, step,
    }); // prettier-ignore
    while (rows.devices.length <= device)
      rows.devices.push({ process: 0, index: 0, name: intern("GPU"), uuid: 0, memory_bytes: 0, detail: 0 });
  }
  const encoder = new TextEncoder();
  const texts = [...strings.keys()].map((one) => encoder.encode(one));
  const members: Record<string, Uint8Array | string> = {
    "meta.json": JSON.stringify({ format: { name: "leadline", version: 2 }, ...meta }),
  };
  for (const name of Object.keys(TABLES) as (keyof Tables)[]) {
    for (const [column, dtype] of TABLES[name]) {
      let values = rows[name].map((row) => row[column]);
      if (column === "offsets") values = texts.reduce((all, one) => [...all, all[all.length - 1] + one.length], [0]);
      if (column === "bytes" && name === "strings") values = texts.flatMap((one) => [...one]);
      members[`${name}.${column}.npy`] = npyOf(values, dtype);
    }
  }
  return zipOf(members);
}

export function npyOf(values: number[], dtype: string): Uint8Array {
  const bytes = Number(dtype.slice(2));
  const head = `{'descr': '${dtype}', 'fortran_order': False, 'shape': (${values.length},), }`.padEnd(117) + "\n";
  const made = new Uint8Array(10 + head.length + values.length * bytes);
  const view = new DataView(made.buffer);
  made.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0]);
  view.setUint16(8, head.length, true);
  made.set(new TextEncoder().encode(head), 10);
  values.forEach((value, i) => {
    const at = 10 + head.length + i * bytes;
    if (dtype === "<f8") view.setFloat64(at, value, true);
    else if (bytes === 8) view.setBigInt64(at, BigInt(value), true);
    else if (bytes === 4) view.setInt32(at, value, true);
    else if (bytes === 2) view.setInt16(at, value, true);
    else view.setUint8(at, value);
  });
  return made;
}

/** An archive of stored members. */
export function zipOf(members: Record<string, Uint8Array | string>): Uint8Array {
  const parts: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let at = 0;
  for (const [name, content] of Object.entries(members)) {
    const data = typeof content === "string" ? new TextEncoder().encode(content) : content;
    const title = new TextEncoder().encode(name);
    const local = new DataView(new ArrayBuffer(30));
    const central = new DataView(new ArrayBuffer(46));
    local.setUint32(0, 0x04034b50, true);
    central.setUint32(0, 0x02014b50, true);
    for (const [view, offset] of [
      [local, 14],
      [central, 16],
    ] as const) {
      view.setUint32(offset, crc32(data), true);
      view.setUint32(offset + 4, data.length, true);
      view.setUint32(offset + 8, data.length, true);
      view.setUint16(offset + 12, title.length, true);
    }
    central.setUint32(42, at, true);
    directory.push(new Uint8Array(central.buffer), title);
    parts.push(new Uint8Array(local.buffer), title, data);
    at += 30 + title.length + data.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const end = new DataView(new ArrayBuffer(22));
  end.setUint32(0, 0x06054b50, true);
  end.setUint16(8, Object.keys(members).length, true);
  end.setUint16(10, Object.keys(members).length, true);
  end.setUint32(12, size, true);
  end.setUint32(16, at, true);
  const all = [...parts, ...directory, new Uint8Array(end.buffer)];
  const made = new Uint8Array(at + size + 22);
  let place = 0;
  for (const part of all) {
    made.set(part, place);
    place += part.length;
  }
  return made;
}
