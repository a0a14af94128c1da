// Where the flame graph is zoomed to, and what was done to the tree; each can be undone.

import { TRANSFORMS, type Transform } from "../../model/transforms";
import { visible } from "../../model/units";
import type { TreeView, ViewNode } from "../../model/view";

export function Crumbs({ view, zoomed, zoom }: { view: TreeView; zoomed: ViewNode; zoom: (node: ViewNode) => void }) {
  const nodes: ViewNode[] = [];
  for (let node: ViewNode | null = zoomed; node; node = node.parent) nodes.push(node);
  const shown = nodes.length > 7 ? [...nodes.slice(0, 5), null, nodes[nodes.length - 1]] : nodes;
  return (
    <nav class="crumbs" aria-label="Zoomed path" hidden={nodes.length === 1}>
      {[...shown].reverse().map((node, i) => (
        <>
          {i ? <span class="quiet">›</span> : null}
          {node ? (
            <button type="button" onClick={() => zoom(node)}>
              {view.label(node)}
            </button>
          ) : (
            <span class="quiet">…</span>
          )}
        </>
      ))}
    </nav>
  );
}

export function Transforms({ list, put }: { list: readonly Transform[]; put(list: Transform[]): void }) {
  if (!list.length) return null;
  return (
    <div class="crumbs" role="group" aria-label="Changes to the tree">
      {list.map((one, i) => (
        <button type="button" class="chip" title="Undo" onClick={() => put(list.filter((_, at) => at !== i))}>
          {visible(`${one.name}: ${TRANSFORMS[one.kind]} ×`)}
        </button>
      ))}
      {list.length > 1 ? (
        <button type="button" onClick={() => put([])}>
          undo all
        </button>
      ) : null}
    </div>
  );
}
