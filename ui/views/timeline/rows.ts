// Rows of the timeline as rectangles. Spans that share a pixel are mixed by their share of it, found by search, so a million
// events cost what is drawn of them and no short one looks longer than it is. Frames without an event of their own are hollow
// and filled only where events below them ran.

import { Coverage } from "../../model/coverage";
import { kindName } from "../../model/frames";
import { bare } from "../../model/names";
import type { Profile } from "../../model/profile";
import { EventKindNames } from "../../model/schema.generated";
import type { Hits } from "../../model/timeline_search";
import { firstEndingAfter, firstStartingAt, spanText, type Lane, type Timeline } from "../../model/timeline";
import { visible } from "../../model/units";
import type { Rectangle, Sheet } from "../canvas";
import { fitted, withAlpha, type Palette } from "../colours";
import type { Rects } from "../gl";
import type { Range } from "./chart";
import { shownKind } from "./scale";

export const ROW = 17;
const TEXT_FROM = 28;
const HOLLOW = 0.22;
const FAINTEST = 0.06;
const DIMMED = 0.28; // what is not sought
const BADGE_FROM = 9;

export class Rows {
  /** Where the selected span was drawn. */
  outlined: Rectangle | null = null;
  private view: Range = { from: 0, to: 1 };
  private selected = -1;
  private scale = 1;
  private hits: Hits | null = null;
  private found: ReadonlySet<number> = new Set();
  private readonly labels = new Map<number, string>();
  private readonly coverages = new Map<Int32Array, Coverage>();
  /** Colours of this drawing, by kind of event and of frame. */
  private readonly shades = new Map<number, number>();
  private readonly kinds: string[] = [];

  constructor(
    private readonly profile: Profile,
    private readonly timeline: Timeline,
    private readonly rects: Rects,
  ) {}

  /** Spans that stand out, and nodes that findings are about. */
  seek(hits: Hits | null, found: ReadonlySet<number>): void {
    if (hits !== this.hits) this.coverages.clear(); // they go by colour
    this.hits = hits;
    this.found = found;
  }

  /** Before the rows of a drawing. */
  begin(view: Range, selected: number): void {
    this.view = view;
    this.selected = selected;
    this.outlined = null;
    this.shades.clear();
  }

  draw(sheet: Sheet, lane: Lane, row: Int32Array, y: number): void {
    const { context, colours, width } = sheet;
    const { timeline } = this;
    const { from, to } = this.view;
    const scale = (this.scale = width / (to - from));
    const gap = lane.kind === "states" ? 0 : 1; // between boxes, which states are not: there a length is a share
    for (let i = firstEndingAfter(timeline, row, from); i < row.length;) {
      const span = row[i];
      const start = timeline.start[span];
      if (start >= to) break;
      const x = Math.max(0, (start - from) * scale);
      const wide = Math.min(width, (timeline.end[span] - from) * scale) - x;
      if (wide < 1) {
        const pixel = Math.floor(x);
        this.mixedPixel(
          this.coverage(row, (one) => this.shade(one)),
          pixel,
          y,
          (shade) => this.shades.get(shade) ?? this.colourOfShade(colours, row, shade),
        );
        i = this.afterPixel(row, i, pixel);
        continue;
      }
      const colour = this.colour(colours, span);
      if (this.isInferred(span) && lane.events.length) this.drawInferred(lane, x, wide, y, colour);
      else this.rects.add(x, y, Math.max(wide - (wide > 3 ? gap : 0), 1), ROW - 1, colour);
      if (wide > TEXT_FROM) {
        context.fillStyle = colours.ink;
        context.fillText(fitted(context, this.label(span), wide - 8), x + 4, y + ROW / 2);
      }
      if (wide > BADGE_FROM && this.found.has(timeline.node[span])) {
        context.fillStyle = colours.outline;
        context.beginPath();
        context.arc(x + wide - 5, y + 5, 2.5, 0, 2 * Math.PI);
        context.fill();
      }
      if (span === this.selected) this.outlined = { x, y, width: wide, height: ROW - 1 };
      i++;
    }
  }

  /** A frame without an event of its own: hollow, and filled where events below it ran. */
  private drawInferred(lane: Lane, x: number, wide: number, y: number, colour: number): void {
    this.rects.add(x, y, Math.max(wide - 1, 1), ROW - 1, withAlpha(colour, HOLLOW));
    const events = this.coverage(lane.events, () => 0);
    for (let pixel = Math.floor(x); pixel < x + wide - 0.5; pixel++) {
      const begin = this.view.from + pixel / this.scale;
      events.shares(begin, begin + 1 / this.scale, (_, share) => {
        const part = Math.round(Math.min(1, share) * 32) / 32; // neighbours of one shade are one rectangle
        if (part > 0) this.rects.add(pixel, y, 1, ROW - 1, withAlpha(colour, part));
      });
    }
  }

  private coverage(row: Int32Array, groupOf: (span: number) => number): Coverage {
    let made = this.coverages.get(row);
    if (!made) this.coverages.set(row, (made = new Coverage(this.timeline, row, groupOf)));
    return made;
  }

  /** One pixel over several spans: their colours by the share of it that each covers, what is empty stays so. */
  private mixedPixel(coverage: Coverage, pixel: number, y: number, colourOf: (group: number) => number): void {
    const begin = this.view.from + pixel / this.scale;
    let [r, g, b, alpha] = [0, 0, 0, 0];
    coverage.shares(begin, begin + 1 / this.scale, (group, share) => {
      const colour = colourOf(group);
      const weight = (share * (colour >>> 24)) / 255;
      r += weight * (colour & 255);
      g += weight * ((colour >>> 8) & 255);
      b += weight * ((colour >>> 16) & 255);
      alpha += weight;
    });
    if (alpha <= 0) return;
    const a = Math.round(255 * Math.min(1, Math.max(alpha, FAINTEST))); // nothing that happened is invisible
    const colour =
      ((a << 24) | (Math.round(b / alpha) << 16) | (Math.round(g / alpha) << 8) | Math.round(r / alpha)) >>> 0;
    this.rects.add(pixel, y, 1, ROW - 1, colour);
  }

  /** The first span that is not in this pixel alone. */
  private afterPixel(row: Int32Array, i: number, pixel: number): number {
    const pixelEnd = this.view.from + (pixel + 1) / this.scale;
    const next = firstStartingAt(this.timeline, row, pixelEnd, i + 1);
    return next - 1 > i && this.timeline.end[row[next - 1]] > pixelEnd ? next - 1 : next;
  }

  private numberOf(kind: string): number {
    const known = this.kinds.indexOf(kind);
    return known < 0 ? this.kinds.push(kind) - 1 : known;
  }

  private isInferred(span: number): boolean {
    return this.timeline.event[span] < 0 && this.timeline.node[span] >= 0;
  }

  /** A number for each colour that a span may have; `shades` knows it once it was drawn or asked for. */
  private shade(span: number): number {
    const event = this.timeline.event[span];
    const node = this.timeline.node[span];
    const { events, frames } = this.profile.tables;
    const kind =
      node < 0
        ? -1 - this.numberOf(this.timeline.texts[-1 - node].kind)
        : (event >= 0 ? events.kind[event] + 1 : 0) * 256 + frames.kind[this.profile.frame[node]];
    return 2 * kind + (this.hits?.is(span) ? 1 : 0);
  }

  private colour(colours: Palette, span: number): number {
    const event = this.timeline.event[span];
    const node = this.timeline.node[span];
    const { events, frames } = this.profile.tables;
    const frame = node < 0 ? -1 : frames.kind[this.profile.frame[node]];
    const key = this.shade(span);
    let colour = this.shades.get(key);
    if (colour === undefined) {
      const kind = node < 0 ? this.timeline.texts[-1 - node].kind : kindName(frame);
      colour =
        event >= 0 || node < 0
          ? colours.of(`kind-${shownKind(event < 0 ? undefined : EventKindNames[events.kind[event]], kind)}`)
          : withAlpha(colours.of(`kind-${kind}`), 0.72);
      if (this.hits) colour = this.hits.is(span) ? colours.of("found") : withAlpha(colour, DIMMED);
      this.shades.set(key, colour);
    }
    return colour;
  }

  /** Of a shade that no box of this drawing had yet. */
  private colourOfShade(colours: Palette, row: Int32Array, shade: number): number {
    for (const span of row) if (this.shade(span) === shade) return this.colour(colours, span);
    return 0;
  }

  private label(span: number): string {
    let label = this.labels.get(span);
    if (label === undefined) {
      const event = this.timeline.event[span];
      const { kind, step } = this.profile.tables.events;
      const { name, kind: frame } = spanText(this.profile, this.timeline, span);
      const isStep = event >= 0 && EventKindNames[kind[event]] === "step";
      this.labels.set(
        span,
        (label = isStep ? `step ${step[event]}` : visible(frame === "module" ? tail(name) : bare(name))),
      );
    }
    return label;
  }
}

/** The last two parts of a module's name; those before stand in the rows above. */
function tail(name: string): string {
  const parts = name.split(".");
  return parts.length > 2 ? `…${parts.slice(-2).join(".")}` : name;
}
