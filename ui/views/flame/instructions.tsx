// Instructions of device code below the selected frame, and why they stood still, where a provider sampled them.

import { useMemo } from "preact/hooks";
import { Stalls } from "../../model/schema.generated";
import { stallsBelow } from "../../model/stalls";
import { number, share, visible } from "../../model/units";
import type { ViewNode } from "../../model/view";
import type { Opened } from "../opened";
import { Dot } from "../widgets";

const MOST = 8;

export function Instructions({ opened, node }: { opened: Opened; node: ViewNode }) {
  const { profile } = opened;
  const found = useMemo(() => (node.parent ? stallsBelow(profile, node.rows) : null), [profile, node]);
  if (!found) return null;
  const { samples, reasons, instructions } = found;
  const place = (file: string, line: number) => (file ? ` ${opened.shortFile(file)}${line > 0 ? `:${line}` : ""}` : "");
  return (
    <>
      <h4>Instructions, by {number(samples)} samples</h4>
      <button type="button" class="plain" onClick={() => opened.go.page("kernels")}>
        Source and machine code
      </button>
      {reasons.length ? (
        <table class="costs">
          <caption class="quiet small">why they were not issued</caption>
          <tbody>
            {reasons.slice(0, MOST).map(([reason, count]) => (
              <tr>
                <th scope="row" title={Stalls[reason]?.doc ?? ""}>
                  {visible(reason.replaceAll("_", " "))}
                  {Stalls[reason] ? (
                    <span class="quiet small"> {Stalls[reason].group.replaceAll("_", " ")}</span>
                  ) : null}
                </th>
                <td>{share(count, samples)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
      <div class="frame-list">
        {instructions.slice(0, MOST).map((one) => (
          <div class="frame-link still">
            <Dot kind="instruction" />
            <span class="grow">
              {visible(one.name)}
              <span class="quiet">
                {visible(place(one.file, one.line))}
                {one.stall ? visible(`, ${one.stall.replaceAll("_", " ")}`) : ""}
              </span>
            </span>
            <span class="number">{share(one.samples, samples)}</span>
          </div>
        ))}
        {instructions.length > MOST ? (
          <span class="quiet small">and {number(instructions.length - MOST)} more</span>
        ) : null}
      </div>
    </>
  );
}
