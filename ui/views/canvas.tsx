// What every large drawing shares: two canvases as large as what is seen, boxes below and texts above, that stand still while
// what scrolls is as high as the whole; one drawing a frame; listeners that are let go together.

import { palette, type Palette } from "./colours";
import { painter, Rects, resize, type Painter } from "./gl";

/** The elements of a drawing. */
export interface Layers {
  scroll: HTMLDivElement;
  spacer: HTMLDivElement;
  under: HTMLCanvasElement;
  canvas: HTMLCanvasElement;
}

/** What there is to draw with during one drawing. */
export interface Sheet {
  context: CanvasRenderingContext2D;
  colours: Palette;
  width: number;
  height: number;
  /** How far it is scrolled. */
  top: number;
}

export abstract class Drawing {
  protected readonly rects = new Rects();
  protected readonly scroll: HTMLElement;
  protected readonly spacer: HTMLElement;
  protected readonly canvas: HTMLCanvasElement;
  private readonly painter: Painter;
  private readonly text: CanvasRenderingContext2D | null;
  private readonly stop = new AbortController();
  private scheduled = 0;
  private drawings = 0;
  private marked = "";

  constructor(layers: Layers) {
    this.scroll = layers.scroll;
    this.spacer = layers.spacer;
    this.canvas = layers.canvas;
    this.painter = painter(layers.under, () => this.draw());
    this.text = this.canvas.getContext("2d");
    this.listen(this.scroll, "scroll", () => this.draw());
    const watch = new ResizeObserver(() => this.resized());
    watch.observe(this.scroll);
    this.stop.signal.addEventListener("abort", () => watch.disconnect());
  }

  protected listen<K extends keyof HTMLElementEventMap>(
    target: HTMLElement,
    name: K,
    act: (event: HTMLElementEventMap[K]) => void,
    passive = true,
  ): void {
    target.addEventListener(name, act, { signal: this.stop.signal, passive });
  }

  close(): void {
    this.stop.abort();
    cancelAnimationFrame(this.scheduled);
  }

  get painterKind(): string {
    return this.painter.kind;
  }

  protected resized(): void {
    this.draw();
  }

  /** What is drawn now, on the page's ground. */
  picture(): Promise<Blob> {
    const made = document.createElement("canvas");
    made.width = this.canvas.width;
    made.height = this.canvas.height;
    const context = made.getContext("2d");
    const ground = getComputedStyle(this.scroll).backgroundColor;
    if (context) {
      context.fillStyle = ground;
      context.fillRect(0, 0, made.width, made.height);
      context.drawImage(this.painter.canvas, 0, 0);
      context.drawImage(this.canvas, 0, 0);
    }
    return new Promise((done, failed) =>
      made.toBlob((blob) => (blob ? done(blob) : failed(new Error("The browser made no picture.")))),
    );
  }

  draw(): void {
    if (!this.scheduled)
      this.scheduled = requestAnimationFrame(() => {
        this.scheduled = 0;
        this.drawNow();
      });
  }

  private drawNow(): void {
    const { clientWidth: width, clientHeight: height, scrollTop: top } = this.scroll;
    const context = this.text;
    if (!width || !height || !context) return;
    const ratio = window.devicePixelRatio || 1;
    const sheet = { context, colours: palette(), width, height, top };
    resize(this.canvas, width, height, ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.rects.clear();
    this.marked = "";
    this.fill(sheet);
    this.painter.paint(this.rects, width, height, ratio);
    this.finish(sheet);
    // for who measures, and for tests: how often it was drawn, and where what is selected stands
    this.canvas.dataset.drawn = String(++this.drawings);
    this.canvas.dataset.selected = this.marked;
  }

  /** Puts boxes into `rects` and writes texts. */
  protected abstract fill(sheet: Sheet): void;

  /** Draws what stands above all boxes. */
  protected finish(_sheet: Sheet): void {}

  /** The frame of a box that is selected or pointed at. */
  protected outline({ context, colours }: Sheet, box: Rectangle, selected: boolean): void {
    const { x, y, width, height } = box;
    context.strokeStyle = colours.outline;
    context.lineWidth = selected ? 2 : 1;
    context.strokeRect(x + 1, y + 1, Math.max(width - 2, 1), height - 2);
    if (selected) this.marked = [x, y, width, height].map(Math.round).join(" ");
  }

  /** Scrolls until a row, by its place in the whole height, can be seen below `head` pixels. */
  protected scrollTo(y: number, row: number, head = 0): void {
    const { scrollTop, clientHeight } = this.scroll;
    if (y < scrollTop + head || y + row > scrollTop + clientHeight)
      this.scroll.scrollTop = Math.max(0, y - clientHeight / 3);
  }
}

export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The elements of a drawing; `layers` is filled when they are on the page. */
export function DrawingLayers({
  layers,
  name,
  label,
}: {
  layers: Partial<Layers>;
  /** `flame` gives the classes `flame-boxes` and `flame-canvas`. */
  name: string;
  label: string;
}) {
  const into =
    <K extends keyof Layers>(key: K) =>
    (element: Layers[K] | null) => {
      layers[key] = element ?? undefined;
    };
  return (
    <div class="flame-scroll" ref={into("scroll")}>
      <div class="flame-spacer" ref={into("spacer")}>
        <div class="flame-canvases">
          <canvas class={`${name}-boxes`} ref={into("under")} aria-hidden="true" />
          <canvas class={`${name}-canvas`} ref={into("canvas")} tabIndex={0} role="img" aria-label={label} />
        </div>
      </div>
    </div>
  );
}
