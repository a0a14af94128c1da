// The ranks of a merged job: the matrix of ranks and parts as how far each value lies from what is usual in its column.

/** One quantity over ranks; `unit` is ns or bytes. */
export interface RankSpread {
  name: string;
  unit: string;
  ranks: number;
  mean: number;
  std: number;
  min: number;
  min_rank: string;
  max: number;
  max_rank: string;
}

export interface Ranks {
  by: string;
  count: number;
  world_size: number;
  hosts: number;
  missing: string;
  partial: string;
  steps: number;
  spreads: RankSpread[];
  late: { who: string; ranks: number[]; cause: string; sentence: string }[];
  lawful: string[];
  compared: number;
  arrival: string[];
  names: string[];
  rows: { rank: number; host: string; role: Record<string, number>; status: string; values: number[] }[];
}

const NOT_PARTS = new Set(["wall", "cpu", "peak", "steps", "collectives"]);
const WEIGHTY = 0.005; // of the wall time: what takes less is not drawn

/** A quantity as a person reads it. */
export function quantityName(name: string): string {
  const known: Record<string, string> = {
    wall: "wall time",
    cpu: "CPU time",
    peak: "memory at the peak",
    steps: "between steps",
    collectives: "issuing collectives",
  };
  if (known[name]) return known[name];
  if (name.startsWith("gpu_time ")) return `GPU ${name.slice(9)}`;
  const plain = name.startsWith("time ") ? name.slice(5) : name;
  return plain === "other" ? "operators outside phases" : plain;
}

/** Columns that are a noticeable part of the time, as numbers into `names`. */
export function heatColumns(ranks: Ranks): number[] {
  const sum = (column: number) => ranks.rows.reduce((total, row) => total + row.values[column], 0);
  const wall = ranks.names.indexOf("wall");
  const whole = wall >= 0 ? sum(wall) : 0;
  return ranks.names
    .map((name, column) => ({ name, column }))
    .filter(({ name, column }) => !NOT_PARTS.has(name) && sum(column) > WEIGHTY * whole)
    .map(({ column }) => column);
}

/** How far the value of a rank lies from the median of its column: -1 (much less) to 1 (twice as much, or more). */
export function deviations(ranks: Ranks, columns: number[]): Float32Array {
  const heat = new Float32Array(ranks.rows.length * columns.length);
  columns.forEach((column, place) => {
    const values = ranks.rows.map((row) => row.values[column]);
    const middle = [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)] || 0;
    values.forEach((value, row) => {
      const off = middle > 0 ? value / middle - 1 : value > 0 ? 1 : 0;
      heat[row * columns.length + place] = Math.max(-1, Math.min(1, off));
    });
  });
  return heat;
}
