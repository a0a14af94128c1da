// Which boxes of a view are in sight, and where: a pure function of the view and the part of its width that is looked at.

import type { TreeView, ViewNode } from "../../model/view";
import { PRUNED } from "../../model/frames";

export const ROW = 21;
/** CSS pixels: narrower boxes are neither laid out nor opened. */
const SMALLEST = 0.7;

/** What is looked at, as a part of the whole width: 0 <= from < to <= 1. */
export interface Span {
  from: number;
  to: number;
}

/** x and width in CSS pixels; those of a box that goes beyond the edges are cut to what is seen. */
export interface Box {
  node: ViewNode;
  x: number;
  width: number;
  row: number;
}

export interface Layout {
  boxes: Box[];
  rows: Box[][];
  depth: number;
}

/** The part of the whole width that a node takes. */
export function spanOf(view: TreeView, node: ViewNode): Span {
  let from = 0;
  for (let at = node; at.parent; at = at.parent) {
    const siblings = view.children(at.parent);
    from += (at.parent.before as Float64Array)[siblings.indexOf(at)];
  }
  const total = view.total || 1;
  return { from: from / total, to: Math.min(1, (from + node.value) / total) };
}

export function layout(view: TreeView, span: Span, width: number): Layout {
  const boxes: Box[] = [];
  const rows: Box[][] = [];
  const total = view.total || 1;
  const scale = width / Math.max(span.to - span.from, 1e-12) / total; // pixels per unit of the metric
  const left = span.from * total;
  const right = span.to * total;
  const stack: [ViewNode, number][] = [[view.root, 0]];
  while (stack.length) {
    const [node, start] = stack.pop() as [ViewNode, number];
    const x = Math.max(0, (start - left) * scale);
    const end = Math.min(width, (start + node.value - left) * scale);
    const box = { node, x, width: node.depth === 0 && !view.total ? width : end - x, row: node.depth };
    boxes.push(box);
    (rows[box.row] ??= []).push(box);
    if (node.value * scale < SMALLEST) continue;
    const children = view.children(node);
    const before = node.before as Float64Array;
    for (let i = firstAfter(before, left - start); i < children.length; i++) {
      const child = children[i];
      const at = start + before[i];
      if (at >= right) break;
      if (child.value * scale >= SMALLEST) stack.push([child, at]);
      else if (view.options.order === "time") continue;
      else if (view.kind(children[children.length - 1]) !== PRUNED)
        break; // all that follow are smaller
      else i = Math.max(i, children.length - 2);
    }
  }
  return { boxes, rows, depth: rows.length };
}

/** The first child that ends after `position`: `before[i + 1] > position`. */
function firstAfter(before: Float64Array, position: number): number {
  let low = 0;
  let high = before.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (before[middle + 1] > position) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The innermost node that fills the whole width: what the view is zoomed to. */
export function zoomedNode(found: Layout, width: number): ViewNode {
  let node = found.boxes[0].node;
  for (const row of found.rows) {
    const box = row[0];
    if (row.length !== 1 || box.width < width - 0.5 || (box.node.parent && box.node.parent !== node)) break;
    node = box.node;
  }
  return node;
}
