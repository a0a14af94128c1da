// The page on the capture itself: what was lost, what the run was, what the numbers mean.

import { isObject } from "../model/reader";
import { duration, metricName, number, percent, size, visible } from "../model/units";
import type { Opened } from "./opened";
import { WholeRun } from "./overview/run";
import { Card } from "./widgets";

/** What sources of events say of figures that they estimate, a sentence each. */
function estimates(meta: object): string[] {
  const processes = isObject(meta) && Array.isArray(meta.processes) ? meta.processes : [];
  const available = [meta, ...processes].map((one) => (isObject(one) ? one.available : null));
  const said = available
    .flatMap((one) => (isObject(one) ? Object.values(one) : []))
    .map((status) => (isObject(status) && typeof status.estimated === "string" ? status.estimated : ""));
  return [...new Set(said.filter(Boolean))];
}

export function CapturePage({ opened }: { opened: Opened }) {
  const { report, profile, host } = opened;
  const { meta, cost } = report;
  const pruned = isObject(profile.meta.pruned) ? profile.meta.pruned : null;
  const facts: [string, string][] = [
    ["Program", meta.program],
    ["File", meta.file],
    ["Started", meta.started_at],
    ["Wall time", meta.wall_ns ? duration(meta.wall_ns) : ""],
    ["Host", meta.host],
    ["Python", meta.python],
    ["Frameworks", meta.frameworks.join(", ")],
    ["Asked for", meta.asked],
    ["Estimated", estimates(profile.meta).join(" ")],
    ["Processes, threads", `${meta.processes}, ${meta.threads}`],
    ["Call paths", number(profile.size)],
    ["End", meta.complete ? "normal" : "killed; data after the last flush is missing"],
    ["Measured with", `leadline ${meta.leadline}`],
    ["Page made by", `leadline ${host.version}`],
    [
      "Own cost",
      cost.percent === null
        ? "n/a: the file does not say"
        : `${cost.measured ? "" : "about "}${percent(cost.percent / 100)}; ${duration(cost.callbacks_ns)} in ${number(cost.events)} events, ${size(cost.held_bytes)} held`,
    ],
    ["Drawn together", pruned ? String(pruned.said ?? "") : ""],
  ];
  return (
    <>
      <h2>How far to trust these figures</h2>
      <Card title="Not measured" note="everything that was lost, and why">
        {report.losses.length ? (
          <ul class="losses">
            {report.losses.map((loss) => (
              <li class="loss">
                <span class="chip warn">{number(loss.count)} ×</span>
                <div>
                  <code>{visible(loss.kind)}</code>
                  {loss.process ? ` (${visible(loss.process)})` : ""}
                  <div>{visible(loss.detail || loss.meaning)}</div>
                </div>
              </li>
            ))}
          </ul>
        ) : (
          <p class="good">Nothing was lost.</p>
        )}
      </Card>
      <Card title="This run">
        <table class="facts">
          <tbody>
            {facts
              .filter(([, value]) => value)
              .map(([name, value]) => (
                <tr>
                  <th scope="row">{name}</th>
                  <td>{visible(value)}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </Card>
      <WholeRun opened={opened} />
      <Card title="What the numbers mean">
        <dl class="meanings">
          {profile.metrics.drawn.map((metric) => (
            <>
              <dt>{metricName(metric.name)}</dt>
              <dd>{metric.doc}</dd>
            </>
          ))}
        </dl>
      </Card>
    </>
  );
}
