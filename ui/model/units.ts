// Numbers as people read them; the rules of python/leadline/report/units.py, both tested against tests/ui/rules.json.

const TIME_STEPS: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
];
const SIZE_STEPS: [number, string][] = [
  [2 ** 40, "TiB"],
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
];

function threeDigits(value: number): string {
  if (value >= 99.95) return Math.round(value).toLocaleString("en-US");
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

export function duration(ns: number): string {
  if (!Number.isFinite(ns)) return "n/a";
  if (ns < 0) return "-" + duration(-ns);
  if (ns >= 120e9) {
    const two = (value: number) => String(value).padStart(2, "0");
    const seconds = Math.round(ns / 1e9);
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
    const minutes = Math.round(ns / 60e9);
    return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
  }
  for (const [scale, unit] of TIME_STEPS) if (ns >= scale * 0.9995) return `${threeDigits(ns / scale)} ${unit}`;
  return `${Math.round(ns)} ns`;
}

export function size(bytes: number): string {
  if (!Number.isFinite(bytes)) return "n/a";
  if (bytes < 0) return "-" + size(-bytes);
  for (const [scale, unit] of SIZE_STEPS) if (bytes >= scale * 0.9995) return `${threeDigits(bytes / scale)} ${unit}`;
  return `${Math.round(bytes)} B`;
}

export function number(value: number): string {
  if (!Number.isFinite(value)) return "n/a";
  return Number.isInteger(value) ? value.toLocaleString("en-US") : threeDigits(value);
}

export function share(part: number, whole: number): string {
  if (!whole || !Number.isFinite(part) || !Number.isFinite(whole)) return "n/a";
  const percent = (100 * part) / whole;
  return percent > 0 && percent < 0.05 ? "<0.1%" : `${percent.toFixed(1)}%`;
}

export function inUnit(value: number, unit: string): string {
  if (unit === "ns") return duration(value);
  if (unit === "bytes") return size(value);
  if (unit === "1e-3" || unit === "1e-6") return number(value * Number(unit));
  return number(value);
}

const MOST_SHOWN = 600;

/** Control and direction-changing characters as escapes: a name stays on its line and reads in its own order. Nobody reads
 * a name of thousands of letters: what is beyond `most` is left out. */
export function visible(text: string, most = MOST_SHOWN): string {
  const shown = text.length > most ? `${text.slice(0, most)}…` : text;
  return shown.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
}

const METRIC_NAMES: Record<string, string> = {
  time: "time",
  call_time: "call time",
  gpu_time: "GPU time",
  alloc_bytes: "allocated memory",
  free_bytes: "freed memory",
  peak_live_bytes: "memory at the peak",
  sync_time: "waiting for the device",
  gpu_idle_time: "device idle time",
  copy_bytes: "bytes copied",
  set_bytes: "bytes set",
  device_alloc_bytes: "memory taken from the driver",
  device_free_bytes: "memory given back to the driver",
  cpu_sample: "CPU time (samples)",
  wait: "waiting (samples)",
  count: "calls",
};

export function metricName(metric: string): string {
  return Object.hasOwn(METRIC_NAMES, metric) ? METRIC_NAMES[metric] : metric.replaceAll("_", " ");
}
