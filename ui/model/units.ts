// Numbers as people read them; the same as leadline.units in Python; both are held to tests/ui/rules.json.

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

/** With thousands separated; the same arithmetic as in Python, so that both round alike. */
function fixed(value: number, digits: number): string {
  const scale = 10 ** digits;
  return (Math.floor(value * scale + 0.5) / scale).toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

function threeDigits(value: number): string {
  return fixed(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

/** `12.3 ms`: three significant digits; minutes and hours above two minutes. */
export function duration(ns: number): string {
  if (!Number.isFinite(ns)) return "n/a";
  if (ns < 0) return "-" + duration(-ns);
  if (ns >= 120e9) {
    const two = (value: number) => String(value).padStart(2, "0");
    const seconds = Math.floor(ns / 1e9 + 0.5);
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
    const minutes = Math.floor(ns / 60e9 + 0.5);
    return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
  }
  for (const [scale, unit] of TIME_STEPS) if (ns >= scale * 0.9995) return `${threeDigits(ns / scale)} ${unit}`;
  return `${fixed(ns, 0)} ns`;
}

/** `1.50 GiB`: three significant digits, binary units. */
export function size(bytes: number): string {
  if (!Number.isFinite(bytes)) return "n/a";
  if (bytes < 0) return "-" + size(-bytes);
  for (const [scale, unit] of SIZE_STEPS) if (bytes >= scale * 0.9995) return `${threeDigits(bytes / scale)} ${unit}`;
  return `${fixed(bytes, 0)} B`;
}

export function number(value: number): string {
  if (!Number.isFinite(value)) return "n/a";
  return Number.isInteger(value) ? value.toLocaleString("en-US") : threeDigits(value);
}

/** `12 %`, `4.2 %`, `98.7 %`: two significant digits of the share or of what is missing to the whole. */
export function percent(fraction: number): string {
  if (!Number.isFinite(fraction)) return "n/a";
  if (fraction < 0) return "-" + percent(-fraction);
  const value = 100 * fraction;
  if (value > 0 && value < 0.05) return "<0.1 %";
  if (value >= 99.95 && value < 100) return ">99.9 %";
  const fine = (value > 0 && value < 9.95) || (value > 90.05 && value < 100);
  return `${fixed(value, fine ? 1 : 0)} %`;
}

export function share(part: number, whole: number): string {
  return whole && Number.isFinite(part) && Number.isFinite(whole) ? percent(part / whole) : "n/a";
}

/** `+1.8 %`, `-28.3 %`: how much more or less than before. */
export function change(fraction: number): string {
  if (!Number.isFinite(fraction)) return "n/a";
  const value = Math.abs(100 * fraction);
  const text = fixed(value, value < 99.95 ? 1 : 0);
  const sign = Number(text.replaceAll(",", "")) === 0 ? "" : fraction < 0 ? "-" : "+";
  return `${sign}${text} %`;
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
