// The flame graph as SVG: what is laid out now, with names in full as titles.

import { cut } from "../../model/names";
import type { TreeView } from "../../model/view";
import { inUnit, share } from "../../model/units";
import { palette } from "../colours";
import { ROW } from "./boxes";
import type { FlameGraph } from "./graph";

const LETTER = 6.6; // pixels, at 12 px

export function svgOf(graph: FlameGraph, view: TreeView): string {
  const colours = palette();
  const unit = view.profile.metrics.describe(view.options.metric)?.unit ?? "1";
  const hex = (colour: number) => `rgb(${colour & 255},${(colour >>> 8) & 255},${(colour >>> 16) & 255})`;
  const width = Math.max(1, ...graph.laid.rows.flat().map((box) => box.x + box.width));
  const boxes = graph.laid.boxes.map((box) => {
    const title = `${view.label(box.node)}: ${inUnit(box.node.value, unit)}, ${share(box.node.value, view.total)}`;
    const letters = Math.floor((box.width - 8) / LETTER);
    const label = letters > 2 ? cut(view.shortLabel(box.node), letters) : "";
    const fill = hex(graph.colourOf(box.node, colours));
    return (
      `<g transform="translate(${box.x.toFixed(1)} ${box.row * ROW})"><title>${escaped(title)}</title>` +
      `<rect width="${Math.max(0.5, box.width - 1).toFixed(1)}" height="${ROW - 1}" fill="${fill}"/>` +
      (label ? `<text x="4" y="14">${escaped(label)}</text>` : "") +
      "</g>"
    );
  });
  const height = Math.max(1, graph.laid.depth) * ROW;
  const open = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  return `${open} font-family="system-ui, sans-serif" font-size="12" fill="${colours.ink}">\n${boxes.join("\n")}\n</svg>\n`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
