// Numbers as people read them; the same rules as report/units.py, so that text and page never disagree.

const TIME_STEPS = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
];
const SIZE_STEPS = [
  [2 ** 40, "TiB"],
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
];

function threeDigits(value) {
  if (value >= 99.95) return Math.round(value).toLocaleString("en-US");
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function duration(ns) {
  if (!Number.isFinite(ns)) return "n/a";
  if (ns < 0) return "-" + duration(-ns);
  if (ns >= 120e9) {
    const two = (value) => String(value).padStart(2, "0");
    const seconds = Math.round(ns / 1e9);
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
    const minutes = Math.round(ns / 60e9);
    return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
  }
  for (const [scale, unit] of TIME_STEPS) if (ns >= scale * 0.9995) return `${threeDigits(ns / scale)} ${unit}`;
  return `${Math.round(ns)} ns`;
}

function size(bytes) {
  if (!Number.isFinite(bytes)) return "n/a";
  if (bytes < 0) return "-" + size(-bytes);
  for (const [scale, unit] of SIZE_STEPS) if (bytes >= scale * 0.9995) return `${threeDigits(bytes / scale)} ${unit}`;
  return `${Math.round(bytes)} B`;
}

function number(value) {
  if (!Number.isFinite(value)) return "n/a";
  return Number.isInteger(value) ? value.toLocaleString("en-US") : threeDigits(value);
}

function share(part, whole) {
  if (!whole || !Number.isFinite(part)) return "n/a";
  const percent = (100 * part) / whole;
  return percent > 0 && percent < 0.05 ? "<0.1%" : `${percent.toFixed(1)}%`;
}

function inUnit(value, unit) {
  if (unit === "ns") return duration(value);
  if (unit === "bytes") return size(value);
  return number(value);
}

// Control and direction-changing characters as escapes: a name stays on its line and reads in its own order.
function visible(text) {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}
