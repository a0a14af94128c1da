// The timeline itself: lanes of spans on a canvas as large as what is seen. Spans that share a pixel are mixed by their share
// of it, found by search, so a million events cost what is drawn of them and no short one looks longer than it is.

import type { Profile } from "../../model/profile";
import { firstEndingAfter, type Timeline } from "../../model/timeline";
import type { Link } from "../../model/timeline_facts";
import { moved, placeOfSpan, type Move } from "../../model/timeline_moves";
import type { Hits } from "../../model/timeline_search";
import { visible } from "../../model/units";
import { Drawing, type Layers, type Sheet } from "../canvas";
import { fitted, withAlpha } from "../colours";
import type { CounterFact, Counters } from "./counters";
import { ROW, Rows } from "./rows";
import { drawNotes, drawRuler, RULER } from "./ruler";
import type { Note } from "./state";

const HEAD = 20;
const GAP = 8;
const NARROWEST_NS = 50;

export interface Range {
  from: number;
  to: number;
}

export interface ChartEvents {
  select(span: number): void;
  range(range: Range | null): void;
  /** A span, a counter, or neither. */
  hover(span: number, x: number, y: number, counter?: CounterFact | null): void;
  /** Another part is looked at. */
  viewed(view: Range): void;
  /** A note is wanted at a time. */
  note(at: number): void;
}

export class TimelineChart extends Drawing {
  view: Range;
  private readonly tops: number[] = [];
  private readonly height: number;
  /** Pixels that the drawing is wide; asking the page for it costs a layout. */
  private width = 1;
  private selected = -1;
  /** Where a range began that Shift and the arrows extend. */
  private anchor = -1;
  private links: Link[] = [];
  private range: Range | null = null;
  private notes: readonly Note[] = [];
  private drag: { from: number; x: number; y: number; top: number; view: Range; pans: boolean; moved: boolean } | null =
    null;
  private readonly rows: Rows;

  constructor(
    layers: Layers,
    profile: Profile,
    private readonly timeline: Timeline,
    private readonly counters: Counters,
    private readonly on: ChartEvents,
  ) {
    super(layers);
    const { canvas } = this;
    this.view = { from: 0, to: timeline.length_ns };
    this.rows = new Rows(profile, timeline, this.rects);
    let top = RULER + counters.height;
    for (const lane of timeline.lanes) {
      this.tops.push(top);
      top += HEAD + lane.rows.length * ROW + GAP;
    }
    this.height = top;
    this.spacer.style.height = `${this.height}px`;
    this.listen(canvas, "pointerdown", (event) => this.press(event));
    this.listen(canvas, "pointermove", (event) => this.move(event));
    this.listen(canvas, "pointerup", (event) => this.release(event));
    this.listen(canvas, "pointerleave", () => this.on.hover(-1, 0, 0));
    this.listen(this.scroll, "scroll", () => this.on.hover(-1, 0, 0));
    this.listen(canvas, "dblclick", (event) => {
      const span = this.spanAt(event);
      if (span >= 0) this.lookAt(this.timeline.start[span], this.timeline.end[span]);
    });
    this.listen(canvas, "wheel", (event) => this.wheel(event), false);
    this.listen(canvas, "keydown", (event) => this.key(event), false);
  }

  mark(span: number, links: Link[]): void {
    this.selected = span;
    if (span < 0) this.anchor = -1;
    this.links = links;
    this.draw();
  }

  /** What is sought, what findings are about, what was noted. */
  say(hits: Hits | null, found: ReadonlySet<number>, notes: readonly Note[]): void {
    this.notes = notes;
    this.rows.seek(hits, found);
    this.draw();
  }

  /** As an address asks for it. */
  place(view: Range | null, range: Range | null): void {
    this.range = range;
    if (view) this.show(view.from, view.to);
    else this.show(0, this.timeline.length_ns);
  }

  /** A span brought into sight, wide enough to be seen. */
  goTo(span: number): void {
    const [start, end] = [this.timeline.start[span], this.timeline.end[span]];
    const wide = this.view.to - this.view.from;
    if ((end - start) * this.scale < 12) this.show(start - 20 * (end - start), start + 60 * (end - start));
    else if (end - start > wide) this.lookAt(start, end);
    this.reveal(span);
  }

  lookAt(from: number, to: number): void {
    const wide = Math.max(NARROWEST_NS, to - from);
    this.show(from - 0.1 * wide, from + 1.1 * wide);
  }

  lookAround(at: number): void {
    const wide = this.view.to - this.view.from;
    this.show(at - wide / 2, at + wide / 2);
  }

  show(from: number, to: number): void {
    const whole = this.timeline.length_ns;
    const wide = Math.min(whole, Math.max(NARROWEST_NS, to - from));
    const start = Math.max(0, Math.min(whole - wide, from));
    this.view = { from: start, to: start + wide };
    this.on.viewed(this.view);
    this.draw();
  }

  /** Pixels per nanosecond. */
  private get scale(): number {
    return this.width / (this.view.to - this.view.from);
  }

  protected fill(sheet: Sheet): void {
    const { context, colours, width, height, top } = sheet;
    this.rows.begin(this.view, this.selected);
    this.width = width;
    this.counters.draw(sheet, this.rects, this.view, RULER - top);
    this.timeline.lanes.forEach((lane, i) => {
      const y = this.tops[i] - top;
      const bottom = y + HEAD + lane.rows.length * ROW;
      if (y > height || bottom < 0) return;
      lane.rows.forEach((row, depth) => {
        const at = y + HEAD + depth * ROW;
        if (at < height && at > -ROW) this.rows.draw(sheet, lane, row, at);
      });
      context.fillStyle = colours.muted;
      // the name stays in sight as long as anything of the lane does
      const pinned = Math.max(y, Math.min(RULER - 4, bottom - HEAD));
      const title = fitted(context, visible(lane.title), width - 12);
      if (pinned > y) {
        context.fillStyle = getComputedStyle(this.scroll).backgroundColor;
        context.fillRect(0, pinned + 3, context.measureText(title).width + 14, HEAD - 4);
        context.fillStyle = colours.muted;
      }
      context.fillText(title, 6, pinned + HEAD / 2 + 2);
    });
    if (this.rows.outlined) this.outline(sheet, this.rows.outlined, true);
    if (this.range) {
      // what is outside is dimmed, so colours inside keep their meaning
      const dim = withAlpha(colours.of("card"), 0.62);
      const from = Math.max(0, (this.range.from - this.view.from) * this.scale);
      const to = Math.min(width, (this.range.to - this.view.from) * this.scale);
      this.rects.add(0, 0, from, height, dim);
      this.rects.add(to, 0, Math.max(0, width - to), height, dim);
      this.rects.add(from - 1, 0, 1, height, colours.of("accent"));
      this.rects.add(to, 0, 1, height, colours.of("accent"));
    }
  }

  protected override finish(sheet: Sheet): void {
    this.drawLinks(sheet);
    const ground = getComputedStyle(this.scroll).backgroundColor;
    drawRuler(sheet, this.view, ground);
    drawNotes(sheet, this.view, this.notes, ground);
  }

  private drawLinks({ context, colours, top }: Sheet): void {
    context.lineWidth = 1.5;
    context.strokeStyle = colours.outline;
    context.fillStyle = colours.outline;
    for (const link of this.links) {
      const [a, b] = [this.placeOf(link.from, "end", top), this.placeOf(link.to, "start", top)];
      if (!a || !b) continue;
      context.beginPath();
      context.moveTo(a.x, a.y);
      context.bezierCurveTo(a.x + 20, a.y, b.x - 20, b.y, b.x, b.y);
      context.stroke();
      context.beginPath();
      context.moveTo(b.x, b.y);
      context.lineTo(b.x - 7, b.y - 4);
      context.lineTo(b.x - 7, b.y + 4);
      context.fill();
    }
  }

  private placeOf(event: number, side: "start" | "end", top: number): { x: number; y: number } | null {
    const span = this.timeline.spanOf[event];
    const place = span < 0 ? null : placeOfSpan(this.timeline, span);
    if (!place) return null;
    const x = (this.timeline[side][span] - this.view.from) * this.scale;
    return { x, y: this.tops[place.lane] - top + HEAD + (place.depth + 0.5) * ROW };
  }

  /** The span under the pointer, or -1. */
  spanAt(event: { clientX: number; clientY: number }): number {
    const bounds = this.canvas.getBoundingClientRect();
    const time = this.view.from + (event.clientX - bounds.left) / this.scale;
    const y = event.clientY - bounds.top + this.scroll.scrollTop;
    if (event.clientY - bounds.top < RULER) return -1;
    for (let i = 0; i < this.timeline.lanes.length; i++) {
      const { rows } = this.timeline.lanes[i];
      const depth = Math.floor((y - this.tops[i] - HEAD) / ROW);
      if (depth < 0 || depth >= rows.length) continue;
      const slack = 1 / this.scale;
      const at = firstEndingAfter(this.timeline, rows[depth], time - slack);
      const span = at < rows[depth].length ? rows[depth][at] : -1;
      return span >= 0 && this.timeline.start[span] <= time + slack ? span : -1;
    }
    return -1;
  }

  private counterAt(event: { clientX: number; clientY: number }): CounterFact | null {
    const y = event.clientY - this.canvas.getBoundingClientRect().top;
    return y < RULER ? null : this.counters.at(y + this.scroll.scrollTop - RULER, this.timeAt(event.clientX));
  }

  private timeAt(clientX: number): number {
    return this.view.from + (clientX - this.canvas.getBoundingClientRect().left) / this.scale;
  }

  private press(event: PointerEvent): void {
    if (event.button > 1) return;
    const pans = event.button === 1 || event.shiftKey;
    const { clientX: x, clientY: y } = event;
    this.drag = { from: this.timeAt(x), x, y, top: this.scroll.scrollTop, view: this.view, pans, moved: false };
  }

  private move(event: PointerEvent): void {
    const { drag } = this;
    if (!drag) {
      const span = this.spanAt(event);
      this.on.hover(span, event.clientX, event.clientY, span < 0 ? this.counterAt(event) : null);
      return;
    }
    if (!drag.moved && Math.abs(event.clientX - drag.x) < 4) return;
    if (!drag.moved) this.canvas.setPointerCapture(event.pointerId);
    drag.moved = true;
    this.on.hover(-1, 0, 0);
    if (drag.pans) {
      const by = (event.clientX - drag.x) / this.scale;
      this.show(drag.view.from - by, drag.view.to - by);
      this.scroll.scrollTop = drag.top - (event.clientY - drag.y);
    } else {
      const now = this.timeAt(event.clientX);
      this.range = {
        from: Math.max(0, Math.min(drag.from, now)),
        to: Math.min(this.timeline.length_ns, Math.max(drag.from, now)),
      };
      this.draw();
    }
  }

  private release(event: PointerEvent): void {
    const { drag } = this;
    this.drag = null;
    this.canvas.focus({ preventScroll: true });
    if (drag?.moved) {
      if (!drag.pans) this.on.range(this.range);
      return;
    }
    const span = this.spanAt(event);
    this.select(null);
    if (span >= 0) this.on.select(span);
  }

  private select(range: Range | null): void {
    this.range = range;
    this.on.range(range);
    this.draw();
  }

  private wheel(event: WheelEvent): void {
    if (event.ctrlKey || event.metaKey)
      this.zoom(Math.exp(Math.max(-50, Math.min(50, event.deltaY)) / 100), this.timeAt(event.clientX));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const by = (event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX) / this.scale;
      this.show(this.view.from + by, this.view.to + by);
    } else return;
    event.preventDefault();
  }

  /** By a factor (above 1: out) around a time. */
  zoom(factor: number, at = (this.view.from + this.view.to) / 2): void {
    const { from, to } = this.view;
    const wide = Math.min(this.timeline.length_ns, Math.max(NARROWEST_NS, (to - from) * factor));
    const part = (at - from) / (to - from);
    this.show(at - part * wide, at + (1 - part) * wide);
  }

  pan(part: number): void {
    const by = part * (this.view.to - this.view.from);
    this.show(this.view.from + by, this.view.to + by);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = MOVES[event.key];
    if (move) this.step(move, event.shiftKey);
    else if (event.key === "w" || event.key === "+") this.zoom(0.6);
    else if (event.key === "s" || event.key === "-") this.zoom(1 / 0.6);
    else if (event.key === "a") this.pan(-0.2);
    else if (event.key === "d") this.pan(0.2);
    else if (event.key === "f") {
      if (this.range) this.show(this.range.from, this.range.to);
      else if (this.selected >= 0) this.lookAt(this.timeline.start[this.selected], this.timeline.end[this.selected]);
      else this.show(0, this.timeline.length_ns);
    } else if (event.key === "m" && this.selected >= 0)
      this.select({ from: this.timeline.start[this.selected], to: this.timeline.end[this.selected] });
    else if (event.key === "n") this.on.note(this.momentOfNote());
    else if (event.key === "0") this.show(0, this.timeline.length_ns);
    else if (event.key === "Enter" && this.range) this.show(this.range.from, this.range.to);
    else if (event.key === "Enter" && this.selected >= 0)
      this.lookAt(this.timeline.start[this.selected], this.timeline.end[this.selected]);
    else if (event.key === "Escape") {
      if (this.range) this.select(null);
      else this.on.select(-1);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Where a note belongs: where what is selected begins, else the middle of what is seen. */
  momentOfNote(): number {
    if (this.range) return this.range.from;
    return this.selected >= 0 ? this.timeline.start[this.selected] : (this.view.from + this.view.to) / 2;
  }

  /** Selects the span that a key leads to; with `extend` the range from where that began. */
  private step(move: Move, extend: boolean): void {
    const { start, end } = this.timeline;
    const next = moved(this.timeline, this.selected, move, this.view.from);
    if (next < 0) return;
    if (!extend || this.anchor < 0) this.anchor = extend && this.selected >= 0 ? this.selected : next;
    const { anchor } = this;
    this.selected = next;
    this.on.select(next);
    this.select(extend ? { from: Math.min(start[anchor], start[next]), to: Math.max(end[anchor], end[next]) } : null);
    this.reveal(next);
  }

  /** Pans and scrolls so that a span can be seen. */
  private reveal(span: number): void {
    const { from, to } = this.view;
    const [start, end] = [this.timeline.start[span], this.timeline.end[span]];
    if (end <= from || start >= to) this.show(start - 0.3 * (to - from), start + 0.7 * (to - from));
    const place = placeOfSpan(this.timeline, span);
    if (place) this.scrollTo(this.tops[place.lane] + HEAD + place.depth * ROW, ROW, RULER + HEAD);
  }
}

const MOVES: Partial<Record<string, Move>> = {
  ArrowLeft: "before",
  ArrowRight: "after",
  ArrowUp: "up",
  ArrowDown: "down",
  PageUp: "laneUp",
  PageDown: "laneDown",
};
