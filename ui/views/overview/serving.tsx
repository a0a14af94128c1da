// What the engines of a server did: the facts and tables that Python made.

import type { Serving } from "../../model/report";
import { visible } from "../../model/units";
import { Card } from "../widgets";

export function ServingCard({ serving }: { serving: Serving }) {
  return (
    <Card title="Serving" note={`${visible(serving.engine)} ${visible(serving.version)}; quantiles to 3 %`}>
      <ul class="because">
        {serving.facts.map((fact) => (
          <li>{visible(fact)}</li>
        ))}
      </ul>
      {serving.tables.map(({ heads, rows, note }) => (
        <div class="scroll">
          <table class="data compact">
            <thead>
              <tr>
                {heads.map((head, i) => (
                  <th scope="col" class={isText(i, head)}>
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr>
                  {row.map((cell, i) => (
                    <td class={isText(i, heads[i])}>{visible(cell)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
          {note ? <p class="quiet">{note}</p> : null}
        </div>
      ))}
    </Card>
  );
}

function isText(column: number, head: string | undefined): string {
  return column === 0 || head === "waited" ? "text" : "";
}
