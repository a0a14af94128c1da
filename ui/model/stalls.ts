// Samples of a device's program counter below a frame: at which instructions, and why they were not issued. What a provider does
// not know it leaves out, so a sample may have no reason, no line and no source.

import type { NodeRow, Profile } from "./profile";
import { isObject } from "./reader";

export interface SampledInstruction {
  /** As the device's own language writes it. */
  name: string;
  file: string;
  line: number;
  samples: number;
  /** Why most of its samples were not issued; empty where they were. */
  stall: string;
}

export interface Stalls {
  samples: number;
  /** Samples of instructions that were not issued, by reason, the most first. */
  reasons: [reason: string, samples: number][];
  instructions: SampledInstruction[];
}

/** Null where no instruction was sampled below these rows. */
export function stallsBelow(profile: Profile, rows: readonly NodeRow[]): Stalls | null {
  const { own, whole } = profile.metrics.values("instruction_samples");
  const reasons = new Map<string, number>();
  const places = new Map<string, SampledInstruction & { by: Map<string, number> }>();
  let samples = 0;
  const stack = rows.filter((row) => whole[row] > 0);
  for (let row = stack.pop(); row !== undefined; row = stack.pop()) {
    for (const child of profile.children(row)) if (whole[child] > 0) stack.push(child);
    if (!(own[row] > 0)) continue;
    samples += own[row];
    const frame = profile.frame[row];
    const stall = reasonOf(profile.frameText("detail", frame));
    if (stall) reasons.set(stall, (reasons.get(stall) ?? 0) + own[row]);
    const [name, file, line] = [
      profile.frameText("name", frame),
      profile.frameText("file", frame),
      profile.line(frame),
    ];
    const key = `${profile.tables.frames.address[frame]} ${name} ${file}:${line}`;
    const one = places.get(key) ?? { name, file, line, samples: 0, stall: "", by: new Map<string, number>() };
    places.set(key, one);
    one.samples += own[row];
    one.by.set(stall, (one.by.get(stall) ?? 0) + own[row]);
  }
  if (!samples) return null;
  const most = (counted: Map<string, number>) => [...counted].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const instructions = [...places.values()].map(({ by, ...one }) => ({ ...one, stall: most(by)[0][0] }));
  return { samples, reasons: most(reasons), instructions: instructions.sort((a, b) => b.samples - a.samples) };
}

function reasonOf(detail: string): string {
  try {
    const said: unknown = JSON.parse(detail || "{}");
    return isObject(said) && typeof said.stall === "string" ? said.stall : "";
  } catch {
    return ""; // someone else's data
  }
}
