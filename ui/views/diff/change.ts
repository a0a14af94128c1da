/** `+12.3%`, `new`, `gone`. */
export function change(before: number, after: number): string {
  if (!before && !after) return "none";
  if (!before) return "new";
  if (!after) return "gone";
  const percent = 100 * (after / before - 1);
  return `${percent > 0 ? "+" : ""}${percent.toFixed(1)}%`;
}
