// The inside of kernels as source and as machine code: where samples of their instructions fell, and why they waited there.
// A line counts what was sampled of it and of what was inlined into it; one inlined into itself counts once.

import type { NodeRow, Profile } from "./profile";
import { isObject } from "./reader";

export interface Heat {
  samples: number;
  /** Samples by reason, "" where the instruction was issued or nobody told. */
  reasons: Map<string, number>;
}

export interface CodeLine extends Heat {
  offset: number;
  /** As the device's own language writes it; empty where no disassembler was there. */
  text: string;
  file: string;
  line: number;
}

export interface CodeFunction {
  name: string;
  lines: CodeLine[];
}

export interface SampledKernel {
  name: string;
  /** Its nodes; all launches of kernels of one name. */
  rows: NodeRow[];
  samples: number;
  gpu_time_ns: number;
}

export interface KernelCode extends Heat {
  /** Source files by name, the most samples first, with heat by line. */
  files: Map<string, Map<number, Heat>>;
  /** The functions of its machine code that were sampled, the most samples first. */
  functions: CodeFunction[];
}

/** Kernels whose instructions were sampled, the most samples first. */
export function sampledKernels(profile: Profile): SampledKernel[] {
  const samples = profile.metrics.values("instruction_samples").whole;
  const time = profile.metrics.values("gpu_time").own;
  const found = new Map<string, SampledKernel>();
  for (let row = 0; row < profile.size; row++) {
    const kind = profile.kind(row);
    if (!(samples[row] > 0) || (kind !== "kernel" && kind !== "collective")) continue;
    const name = profile.name(row);
    const one = found.get(name) ?? { name, rows: [], samples: 0, gpu_time_ns: 0 };
    found.set(name, one);
    one.rows.push(row);
    one.samples += samples[row];
    one.gpu_time_ns += time[row];
  }
  return [...found.values()].sort((a, b) => b.samples - a.samples || (a.name < b.name ? -1 : 1));
}

export function kernelCode(profile: Profile, kernel: SampledKernel): KernelCode {
  const { own, whole } = profile.metrics.values("instruction_samples");
  const code: KernelCode = { ...cold(), files: new Map(), functions: [] };
  const sampled = new Map<string, Map<number, CodeLine>>();
  const details = new Map<number, Said>();
  const stack: [NodeRow, [string, number][]][] = kernel.rows.map((row) => [row, []]);
  for (let next = stack.pop(); next; next = stack.pop()) {
    const [row, above] = next;
    const frame = profile.frame[row];
    const place: [string, number] = [profile.frameText("file", frame), profile.line(frame)];
    if (own[row] > 0 && profile.kindOfFrame(frame) === "instruction") {
      const column = profile.tables.frames.detail[frame];
      const said = details.get(column) ?? saidIn(profile.text(column));
      details.set(column, said);
      warm(code, said.stall, own[row]);
      const seen = new Set<string>();
      for (const [file, line] of [...above, place]) {
        if (!file || line <= 0 || seen.has(`${file}:${line}`)) continue;
        seen.add(`${file}:${line}`);
        const lines = at(code.files, file, () => new Map<number, Heat>());
        warm(at(lines, line, cold), said.stall, own[row]);
      }
      const offset = profile.tables.frames.address[frame];
      const lines = at(sampled, `${said.code}\n${said.function}`, () => new Map<number, CodeLine>());
      const name = profile.frameText("name", frame);
      const made = () => ({
        ...cold(),
        offset,
        text: name.startsWith("+0x") ? "" : name,
        file: place[0],
        line: place[1],
      });
      warm(at(lines, offset, made), said.stall, own[row]);
    }
    const below = profile.kindOfFrame(frame) === "instruction" ? [...above, place] : above;
    for (const child of profile.children(row)) if (whole[child] > 0) stack.push([child, below]);
  }
  code.files = new Map([...code.files].sort((a, b) => total(b[1]) - total(a[1])));
  code.functions = [...sampled]
    .map(([key, lines]) => ({ name: key.split("\n")[1], lines: wholeFunction(profile, key, lines) }))
    .sort((a, b) => total(b.lines) - total(a.lines));
  return code;
}

/** Every instruction of a function, as far as the file holds them. */
function wholeFunction(profile: Profile, key: string, sampled: Map<number, CodeLine>): CodeLine[] {
  const { hash, function: names, offset, text, file, line } = profile.tables.code_lines;
  const [code, name] = key.split("\n");
  for (let row = 0; row < offset.length; row++) {
    if (profile.text(names[row]) !== name || profile.text(hash[row]) !== code) continue;
    const place = offset[row];
    const known = sampled.get(place);
    const found = { text: profile.text(text[row]), file: profile.text(file[row]), line: line[row] };
    if (known) known.text ||= found.text;
    else sampled.set(place, { ...cold(), offset: place, ...found });
  }
  return [...sampled.values()].sort((a, b) => a.offset - b.offset);
}

/** Reasons of some heat, the most first; without what was issued. */
export function ranked(heat: Heat): [reason: string, samples: number][] {
  return [...heat.reasons].filter(([reason]) => reason).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

const cold = (): Heat => ({ samples: 0, reasons: new Map() });

function warm(heat: Heat, reason: string, samples: number): void {
  heat.samples += samples;
  heat.reasons.set(reason, (heat.reasons.get(reason) ?? 0) + samples);
}

function at<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

const total = (heats: Map<number, Heat> | Heat[]) =>
  [...heats.values()].reduce((sum, one) => Math.max(sum, one.samples), 0);

interface Said {
  stall: string;
  code: string;
  function: string;
}

function saidIn(detail: string): Said {
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  try {
    const said: unknown = JSON.parse(detail || "{}");
    if (isObject(said)) return { stall: text(said.stall), code: text(said.code), function: text(said.function) };
  } catch {
    // someone else's data
  }
  return { stall: "", code: "", function: "" };
}
