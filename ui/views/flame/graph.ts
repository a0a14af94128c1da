// The flame graph itself: rectangles on a canvas as large as what is seen, whatever the depth of the tree. It knows a view,
// what is zoomed, selected or found, and reports what the user does; it has no controls.

import type { TreeView, ViewNode } from "../../model/view";
import { Drawing, type Layers, type Sheet } from "../canvas";
import { fitted, palette, withAlpha, type Palette } from "../colours";
import { layout, ROW, spanOf, zoomedNode, type Box, type Layout, type Span } from "./boxes";

const TEXT_FROM = 26;
const NARROWEST = 1e-9;

export interface GraphEvents {
  select(node: ViewNode): void;
  /** Selected by pointing at it, not by a key. */
  clicked(node: ViewNode): void;
  /** The zoomed node has changed. */
  zoomed(node: ViewNode): void;
  hover(node: ViewNode | null, x: number, y: number): void;
  context?(node: ViewNode, event: MouseEvent): void;
}

export type Colouring = (node: ViewNode, palette: Palette) => number;

export class FlameGraph extends Drawing {
  zoom: ViewNode;
  selected: ViewNode | null = null;
  laid: Layout = { boxes: [], rows: [], depth: 0 };
  private span: Span = { from: 0, to: 1 };
  /** The span that was asked for by a node; a span that was panned to is zoomed to what fills it. */
  private asked: { span: Span; node: ViewNode };
  private hovered: ViewNode | null = null;
  private found: ((node: ViewNode) => boolean) | null = null;
  private colouring: Colouring | null = null;
  private badge: ((node: ViewNode) => boolean) | null = null;
  private drag: { x: number; y: number; span: Span } | null = null;
  private dragged = false;

  constructor(
    layers: Layers,
    private readonly minimap: HTMLCanvasElement,
    private view: TreeView,
    private readonly on: GraphEvents,
  ) {
    super(layers);
    this.zoom = view.root;
    this.asked = { span: this.span, node: view.root };
    const { canvas } = this;
    this.listen(canvas, "pointerdown", (event) => this.press(event));
    this.listen(canvas, "pointermove", (event) => this.move(event));
    this.listen(canvas, "pointerup", () => (this.drag = null));
    this.listen(canvas, "pointerleave", () => this.hover(null, 0, 0));
    this.listen(canvas, "click", (event) => this.click(event));
    this.listen(canvas, "dblclick", (event) => {
      const box = this.boxAt(event);
      if (box) this.zoomTo(box.node);
    });
    this.listen(canvas, "wheel", (event) => this.wheel(event), false);
    this.listen(canvas, "keydown", (event) => this.key(event), false);
    this.listen(minimap, "pointerdown", (event) => this.aim(event));
    this.listen(minimap, "pointermove", (event) => event.buttons && this.aim(event));
  }

  protected override resized(): void {
    this.refresh();
  }

  show(view: TreeView): void {
    this.view = view;
    this.selected = null;
    this.hover(null, 0, 0);
    this.span = { from: 0, to: 1 };
    this.asked = { span: this.span, node: view.root };
    this.scroll.scrollTop = 0;
    this.refresh();
  }

  colourBy(colouring: Colouring | null): void {
    this.colouring = colouring;
    this.refresh();
  }

  markBadges(badge: ((node: ViewNode) => boolean) | null): void {
    this.badge = badge;
    this.draw();
  }

  zoomTo(node: ViewNode): void {
    this.span = spanOf(this.view, node);
    if (this.span.to - this.span.from < NARROWEST) this.span.to = this.span.from + NARROWEST;
    this.asked = { span: this.span, node };
    this.refresh();
    this.reveal(node);
  }

  select(node: ViewNode | null): void {
    this.selected = node;
    if (node) this.reveal(node);
    this.draw();
  }

  search(found: ((node: ViewNode) => boolean) | null): void {
    this.found = found;
    this.refresh();
  }

  /** Lays out and draws; what is zoomed follows from what is in sight. */
  refresh(): void {
    const width = this.scroll.clientWidth;
    if (!width) return;
    this.laid = layout(this.view, this.span, width);
    const zoomed = this.asked.span === this.span ? this.asked.node : zoomedNode(this.laid, width);
    this.spacer.style.height = `${Math.max(1, this.laid.depth) * ROW}px`;
    if (zoomed !== this.zoom) {
      this.zoom = zoomed;
      this.on.zoomed(zoomed);
    }
    this.draw();
    this.drawMinimap();
  }

  protected fill(sheet: Sheet): void {
    const last = Math.ceil((sheet.top + sheet.height) / ROW);
    for (let row = Math.floor(sheet.top / ROW); row <= last; row++)
      for (const box of this.laid.rows[row] ?? []) this.drawBox(sheet, box, row * ROW - sheet.top);
  }

  private drawBox(sheet: Sheet, box: Box, y: number): void {
    const { context, colours } = sheet;
    const { node } = box;
    const hit = this.found !== null && node.parent !== null && this.found(node);
    const above = node.depth < this.zoom.depth;
    const dim = (this.found !== null && !hit) || above;
    const gap = box.width > 3 ? 1 : 0;
    const colour = hit ? colours.of("found") : this.colourOf(node, colours);
    const alpha = dim ? 0.32 : this.view.library(node) ? 0.62 : 1;
    this.rects.add(box.x, y, Math.max(box.width - gap, 0.5), ROW - 1, withAlpha(colour, alpha));
    if (box.width > TEXT_FROM) {
      context.globalAlpha = dim ? 0.75 : 1;
      context.fillStyle = dim && !above ? colours.muted : colours.ink;
      context.fillText(fitted(context, this.view.shortLabel(node), box.width - 9), box.x + 4, y + ROW / 2);
      context.globalAlpha = 1;
    }
    if (this.badge?.(node) && box.width > 6) {
      context.fillStyle = colours.outline;
      context.beginPath();
      context.arc(box.x + box.width - gap - 5, y + 5, 3, 0, 2 * Math.PI);
      context.fill();
    }
    if (node === this.selected || node === this.hovered)
      this.outline(sheet, { x: box.x, y, width: box.width - gap, height: ROW - 1 }, node === this.selected);
  }

  colourOf(node: ViewNode, colours: Palette): number {
    return this.colouring?.(node, colours) ?? colours.of(`kind-${this.view.shade(node)}`);
  }

  /** The whole view, small, with what is looked at. */
  private drawMinimap(): void {
    const width = this.scroll.clientWidth;
    const height = this.minimap.clientHeight;
    const context = this.minimap.getContext("2d");
    if (!height || !context) return;
    this.minimap.width = width; // its size on the page is the style sheet's
    this.minimap.height = height;
    const whole = layout(this.view, { from: 0, to: 1 }, width);
    const row = Math.max(1, Math.min(4, height / Math.max(1, whole.depth)));
    const colours = palette();
    context.clearRect(0, 0, width, height);
    for (const box of whole.boxes) {
      if (box.row * row > height) continue;
      const colour = colours.of(`kind-${this.view.shade(box.node)}`);
      context.fillStyle = `rgb(${colour & 255},${(colour >>> 8) & 255},${(colour >>> 16) & 255})`;
      context.fillRect(box.x, box.row * row, box.width, row);
    }
    context.fillStyle = "rgba(127,127,127,0.45)";
    context.fillRect(0, 0, this.span.from * width, height);
    context.fillRect(this.span.to * width, 0, width, height);
    context.strokeStyle = colours.outline;
    context.strokeRect(this.span.from * width, 0.5, Math.max(2, (this.span.to - this.span.from) * width), height - 1);
  }

  private aim(event: PointerEvent): void {
    const bounds = this.minimap.getBoundingClientRect();
    this.moveTo((event.clientX - bounds.left) / bounds.width - (this.span.to - this.span.from) / 2);
  }

  private moveTo(from: number): void {
    const wide = this.span.to - this.span.from;
    const start = Math.max(0, Math.min(1 - wide, from));
    this.span = { from: start, to: start + wide };
    this.refresh();
  }

  boxAt(event: { clientX: number; clientY: number }): Box | undefined {
    const bounds = this.canvas.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const row = Math.floor((event.clientY - bounds.top + this.scroll.scrollTop) / ROW);
    return (this.laid.rows[row] ?? []).find((box) => x >= box.x && x < box.x + box.width);
  }

  private press(event: PointerEvent): void {
    this.dragged = false;
    if (event.button === 0) this.drag = { x: event.clientX, y: this.scroll.scrollTop + event.clientY, span: this.span };
  }

  private move(event: PointerEvent): void {
    if (!this.drag) {
      const box = this.boxAt(event);
      this.hover(box?.node ?? null, event.clientX, event.clientY);
      return;
    }
    const moved = event.clientX - this.drag.x;
    if (!this.dragged && Math.abs(moved) + Math.abs(this.drag.y - this.scroll.scrollTop - event.clientY) < 5) return;
    this.dragged = true;
    this.canvas.setPointerCapture(event.pointerId);
    this.scroll.scrollTop = this.drag.y - event.clientY;
    const wide = this.drag.span.to - this.drag.span.from;
    this.moveTo(this.drag.span.from - (moved / this.scroll.clientWidth) * wide);
  }

  private hover(node: ViewNode | null, x: number, y: number): void {
    this.canvas.style.cursor = node ? "pointer" : "default";
    this.on.hover(node, x, y);
    if (node !== this.hovered) {
      this.hovered = node;
      this.draw();
    }
  }

  private click(event: MouseEvent): void {
    this.canvas.focus({ preventScroll: true });
    const box = this.dragged ? undefined : this.boxAt(event);
    if (!box) return;
    this.select(box.node);
    this.on.select(box.node);
    this.on.clicked(box.node);
    if (box.node.depth < this.zoom.depth) this.zoomTo(box.node);
  }

  /** With Ctrl (and by pinching) the wheel zooms where the pointer is; sideways it pans; else it scrolls. */
  private wheel(event: WheelEvent): void {
    const wide = this.span.to - this.span.from;
    if (event.ctrlKey || event.metaKey) {
      const bounds = this.canvas.getBoundingClientRect();
      const at = (event.clientX - bounds.left) / bounds.width;
      this.scale(Math.exp(Math.max(-50, Math.min(50, event.deltaY)) / 100), at);
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      const by = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
      this.moveTo(this.span.from + (by / this.scroll.clientWidth) * wide);
    } else return;
    event.preventDefault();
  }

  /** Zooms by a factor (above 1: out) around a point of the width, 0 to 1. */
  scale(factor: number, at = 0.5): void {
    const { from, to } = this.span;
    const wide = Math.min(1, Math.max(NARROWEST, (to - from) * factor));
    const start = Math.max(0, Math.min(1 - wide, from + at * (to - from) - at * wide));
    this.span = { from: start, to: start + wide };
    this.refresh();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const wide = this.span.to - this.span.from;
    const directions: Record<string, Direction> = {
      ArrowDown: "down",
      ArrowUp: "up",
      ArrowLeft: "left",
      ArrowRight: "right",
    };
    const next = directions[event.key];
    if (next) {
      const node = this.neighbour(next);
      if (node) {
        this.select(node);
        this.on.select(node);
      }
    } else if (event.key === "Enter") {
      if (this.selected) this.zoomTo(this.selected);
    } else if (event.key === "w" || event.key === "+") this.scale(0.6);
    else if (event.key === "s" || event.key === "-") this.scale(1 / 0.6);
    else if (event.key === "a") this.moveTo(this.span.from - 0.2 * wide);
    else if (event.key === "d" && this.span.to - this.span.from < 1) this.moveTo(this.span.from + 0.2 * wide);
    else if (event.key === "0") this.zoomTo(this.view.root);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private neighbour(direction: Direction): ViewNode | null {
    const node = this.selected;
    if (!node) return this.zoom;
    if (direction === "up") return node.parent;
    if (direction === "down") return this.view.children(node)[0] ?? null;
    if (!node.parent) return null;
    const siblings = this.view.children(node.parent);
    return siblings[siblings.indexOf(node) + (direction === "left" ? -1 : 1)] ?? null;
  }

  private reveal(node: ViewNode): void {
    this.scrollTo(node.depth * ROW, ROW);
  }
}

type Direction = "up" | "down" | "left" | "right";
