import { change as changeOf } from "../../model/units";

/** `+12.3 %`, `new`, `gone`. */
export function change(before: number, after: number): string {
  if (!before && !after) return "none";
  if (!before) return "new";
  return after ? changeOf(after / before - 1) : "gone";
}
