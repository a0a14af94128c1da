// What stands over the lanes of the timeline: the axis, and notes at their moments.

import { visible } from "../../model/units";
import type { Sheet } from "../canvas";
import { fitted } from "../colours";
import type { Range } from "./chart";
import { niceStep, tickText } from "./scale";
import type { Note } from "./state";

export const RULER = 22;

export function drawRuler({ context, colours, width }: Sheet, view: Range, ground: string): void {
  const scale = width / (view.to - view.from);
  context.fillStyle = ground;
  context.fillRect(0, 0, width, RULER - 2);
  const wide = view.to - view.from;
  const step = niceStep((wide * 110) / width);
  context.fillStyle = colours.muted;
  context.strokeStyle = colours.muted;
  context.lineWidth = 0.5;
  const first = Math.ceil(view.from / step) * step;
  for (let at = first; at < view.to; at += step) {
    const x = (at - view.from) * scale;
    const text = tickText(Math.round(at), Math.round(first), step);
    if (x + 4 + context.measureText(text).width <= width) context.fillText(text, x + 4, RULER / 2);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, RULER - 2);
    context.stroke();
  }
}

export function drawNotes(
  { context, colours, width, height }: Sheet,
  view: Range,
  notes: readonly Note[],
  ground: string,
): void {
  const scale = width / (view.to - view.from);
  for (const { at, text } of notes) {
    const x = Math.round((at - view.from) * scale) + 0.5;
    if (x < 0 || x > width) continue;
    context.strokeStyle = context.fillStyle = colours.outline;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height);
    context.stroke();
    const shown = fitted(context, visible(text), Math.min(220, width - x - 12));
    if (!shown) continue;
    context.fillRect(x, 1, context.measureText(shown).width + 10, RULER - 4);
    context.fillStyle = ground;
    context.fillText(shown, x + 5, RULER / 2);
  }
}
