// One frame wherever it stands: who calls it, and what it calls, summed over all its places.

import { useMemo } from "preact/hooks";
import { around } from "../../model/around";
import { inUnit, share } from "../../model/units";
import type { TreeView, ViewNode } from "../../model/view";
import { Bar, Dot } from "../widgets";

interface Props {
  view: TreeView;
  node: ViewNode;
  open(node: ViewNode): void;
  close(): void;
}

export function Sandwich({ view, node, close }: Props) {
  const found = useMemo(() => around(view, node), [view, node]);
  const unit = view.profile.metrics.describe(view.options.metric)?.unit ?? "1";
  const table = (title: string, rows: typeof found.callers) => (
    <section>
      <h4>{title}</h4>
      {rows.length ? (
        <table class="data compact">
          <tbody>
            {rows.slice(0, 40).map((row) => (
              <tr>
                <td class="text">
                  <Dot kind={row.kind} />
                  {row.label}
                </td>
                <td>
                  <Bar parts={[[row.value / Math.max(found.whole, 1e-12), "operator"]]} />
                </td>
                <td>{share(row.value, found.whole)}</td>
                <td>{inUnit(row.value, unit)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p class="quiet">none</p>
      )}
    </section>
  );
  return (
    <div class="sandwich" role="region" aria-label="Callers and callees">
      <header>
        <h3>{view.label(node)}</h3>
        <span class="quiet">
          {inUnit(found.whole, unit)} in all its places, {inUnit(found.self, unit)} in the frame itself
        </span>
        <button type="button" class="plain" onClick={close}>
          Close
        </button>
      </header>
      {table("Callers", found.callers)}
      {table("Callees", found.callees)}
    </div>
  );
}
