// How the verdict is known: the account of the step, part by part, with what each rests on.

import type { Verdict } from "../../model/report";
import { duration, percent, visible } from "../../model/units";

const LANES: Record<string, string> = { thread: "The thread that sets the length of the step", device: "The device" };

export function Known({ verdict }: { verdict: Verdict }) {
  const { account } = verdict;
  if (!account) return <p class="quiet">Nothing that takes time was measured.</p>;
  const lanes = [...new Set(account.parts.map((part) => part.lane))];
  return (
    <div class="known">
      <p class="quiet">
        The account splits {account.of === "step" ? "one step" : "the run"} of {duration(account.wall_ns)} without
        overlap; unexplained time is a separate part.
      </p>
      {lanes.map((lane) => (
        <table class="data compact">
          <caption>{LANES[lane] ?? visible(lane)}</caption>
          <tbody>
            {account.parts
              .filter((part) => part.lane === lane)
              .map((part) => (
                <tr>
                  <th scope="row" class="text">
                    {visible(part.label)}
                  </th>
                  <td>{duration(part.ns)}</td>
                  <td>{percent(part.share)}</td>
                  <td class="quiet">
                    {visible(part.known)}
                    {part.sure_ns ? ` ± ${duration(part.sure_ns)}` : ""}
                  </td>
                </tr>
              ))}
          </tbody>
        </table>
      ))}
      {account.notes.map((note) => (
        <p class="quiet small">{visible(note)}</p>
      ))}
    </div>
  );
}
