// The colours of the current theme, from the style sheet.

import { cut } from "../model/names";

export interface Palette {
  /** 0xAABBGGRR */
  of(name: string): number;
  ink: string;
  muted: string;
  outline: string;
}

const probe = () => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  return canvas.getContext("2d", { willReadFrequently: true });
};
let context: CanvasRenderingContext2D | null = null;

/** A CSS colour as 0xAABBGGRR. */
export function packed(colour: string): number {
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(colour);
  if (hex) {
    const [r, g, b] = hex.slice(1).map((part) => parseInt(part, 16));
    return (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
  }
  context ??= probe();
  if (!context) return 0xff888888;
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
  return ((a << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

export function withAlpha(colour: number, alpha: number): number {
  return ((colour & 0xffffff) | (Math.round(alpha * (colour >>> 24)) << 24)) >>> 0;
}

/** Between two colours; `part` 0 is the first. */
export function mixed(a: number, b: number, part: number): number {
  const channel = (shift: number) => Math.round(((a >>> shift) & 255) * (1 - part) + ((b >>> shift) & 255) * part);
  return ((channel(24) << 24) | (channel(16) << 16) | (channel(8) << 8) | channel(0)) >>> 0;
}

export function palette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string) => style.getPropertyValue(name).trim();
  const known = new Map<string, number>();
  return {
    of(name) {
      let colour = known.get(name);
      if (colour === undefined) {
        const text = read(`--${name}`) || read("--kind-native") || "#888888";
        known.set(name, (colour = packed(text)));
      }
      return colour;
    },
    ink: read("--flame-ink"),
    muted: read("--muted"),
    outline: read("--text"),
  };
}

const widths = new Map<string, number>();
const MOST_WIDTHS = 50_000;

/** Measured once: labels come again in every frame that is drawn. All texts of the page's canvases have one font. */
function widthOf(context: CanvasRenderingContext2D, text: string): number {
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size > MOST_WIDTHS) widths.clear();
    widths.set(text, (width = context.measureText(text).width));
  }
  return width;
}

/** `text` cut in the middle to what fits in `width`, so that its end, which tells names apart, stays; empty where not even
 * three letters would. */
export function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  const shown = cut(text, 200);
  const whole = widthOf(context, shown);
  if (whole <= width) return shown;
  let letters = Math.floor((shown.length * width) / whole);
  while (letters >= 3 && widthOf(context, cut(shown, letters)) > width) letters--;
  return letters < 3 ? "" : cut(shown, letters);
}
