// Words that makers of devices have for the same things: sentences are written in NVIDIA's and turned into AMD's, as
// python/leadline/profiles/makers.py does with the same table.

import type { Profile } from "./profile";
import { isObject } from "./reader";
import { MakersWords } from "./schema.generated";

const NVIDIA_WARP = 32;

interface DeviceFacts {
  amd: boolean;
  /** Threads that it runs in step, 0 where the file does not tell: AMD makes devices of 32 and of 64. */
  lanes: number;
}

/** Whether any device is AMD's; imported traces tell no more than the name. */
export function isAmd(profile: Profile): boolean {
  return devicesOf(profile).some((device) => device.amd);
}

/** Threads that the devices run in step; 0 where it is not known, or differs. */
export function lanesOf(profile: Profile): number {
  const found = new Set(devicesOf(profile).map((device) => device.lanes));
  return found.size === 1 ? [...found][0] : found.size ? 0 : NVIDIA_WARP;
}

/** The sentence in the words of the devices' maker. */
export function inMakersWords(profile: Profile, text: string): string {
  return isAmd(profile) ? inAmdsWords(text) : text;
}

/** The same sentence as AMD's documents would put it. */
export function inAmdsWords(text: string): string {
  return MakersWords.amd.reduce((said, [pattern, word]) => said.replace(pattern, word), text);
}

function devicesOf(profile: Profile): DeviceFacts[] {
  const { name, detail } = profile.tables.devices;
  return [...name].map((text, row) => {
    const told = detailOf(profile.text(detail[row]));
    const amd = told.vendor === "AMD" || profile.text(text).startsWith("AMD ");
    const lanes = typeof told.wavefront === "number" ? Math.max(told.wavefront, 0) : amd ? 0 : NVIDIA_WARP;
    return { amd, lanes };
  });
}

function detailOf(text: string): Record<string, unknown> {
  try {
    const said: unknown = JSON.parse(text || "{}");
    return isObject(said) ? said : {};
  } catch {
    return {}; // someone else's data
  }
}
