// The whole window in a strip, with what is looked at: how full each of the busiest lanes was.

import { Coverage } from "../../model/coverage";
import { busyShare, type Lane, type Timeline } from "../../model/timeline";
import { palette } from "../colours";
import type { Range } from "./chart";

const MOST_LANES = 8;

export class Minimap {
  private readonly lanes: Lane[];
  private readonly coverages: Coverage[];
  private picture: { key: string; canvas: HTMLCanvasElement } | null = null;
  private readonly stop = new AbortController();

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly timeline: Timeline,
    aim: (middle: number) => void,
  ) {
    const measured = timeline.lanes.filter(({ kind }) => kind === "stream" || kind === "thread");
    const busiest = [...measured].sort((a, b) => busyShare(timeline, b) - busyShare(timeline, a)).slice(0, MOST_LANES);
    this.lanes = measured.filter((lane) => busiest.includes(lane));
    this.coverages = this.lanes.map((lane) => new Coverage(timeline, lane.events, () => 0));
    const act = (event: PointerEvent) => {
      const bounds = canvas.getBoundingClientRect();
      if (event.buttons) aim(((event.clientX - bounds.left) / bounds.width) * timeline.length_ns);
    };
    const { signal } = this.stop;
    canvas.addEventListener("pointerdown", act, { signal });
    canvas.addEventListener("pointermove", act, { signal });
  }

  close(): void {
    this.stop.abort();
  }

  draw(view: Range, muted: string): void {
    const { canvas, timeline } = this;
    const { clientWidth: width, clientHeight: height } = canvas;
    const context = canvas.getContext("2d");
    if (!context || !width || !height) return;
    canvas.width = width; // its size on the page is the style sheet's
    canvas.height = height;
    context.drawImage(this.whole(width, height, muted), 0, 0);
    const scale = width / timeline.length_ns;
    const [from, to] = [view.from * scale, view.to * scale];
    context.fillStyle = "rgba(127,127,127,0.35)";
    context.fillRect(0, 0, from, height);
    context.fillRect(to, 0, width - to, height);
    context.strokeStyle = palette().outline;
    context.strokeRect(from + 0.5, 0.5, Math.max(2, to - from - 1), height - 1);
  }

  private whole(width: number, height: number, theme: string): HTMLCanvasElement {
    const key = `${width} ${height} ${theme}`;
    if (this.picture?.key === key) return this.picture.canvas;
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d");
    const colours = palette();
    const perPixel = this.timeline.length_ns / width;
    const row = height / Math.max(1, this.lanes.length);
    this.lanes.forEach((lane, i) => {
      const colour = colours.of(lane.kind === "stream" ? "kind-kernel" : "kind-operator");
      for (let pixel = 0; context && pixel < width; pixel++)
        this.coverages[i].shares(pixel * perPixel, (pixel + 1) * perPixel, (_, share) => {
          context.fillStyle = `rgba(${colour & 255},${(colour >>> 8) & 255},${(colour >>> 16) & 255},${share})`;
          context.fillRect(pixel, i * row, 1, Math.max(1, row - 1));
        });
    });
    this.picture = { key, canvas };
    return canvas;
  }
}
