// What the run was as a whole: figures of all of it, where each thread's time went, phases, and what to type next.

import type { TimeSplit } from "../../model/report";
import { duration, number, percent, share, size, visible } from "../../model/units";
import type { Opened } from "../opened";
import { Bar, Card, CopyButton, Dot, cssWidth } from "../widgets";

type Part = Exclude<
  keyof TimeSplit,
  "process" | "thread" | "main" | "wall_ns" | "device_wait_running_ns" | "estimated" | "places"
>;
const PARTS: [Part, string, string][] = [
  ["operators_ns", "operators", "operator"],
  ["python_ns", "Python", "python"],
  ["data_ns", "data loading", "region"],
  ["communication_ns", "communication", "collective"],
  ["compile_ns", "compile", "phase"],
  ["device_wait_ns", "waiting for a device", "api"],
  ["no_work_ns", "no work", "idle"],
  ["other_wait_ns", "waiting for others", "thread"],
  ["idle_ns", "idle", "idle"],
];

export function WholeRun({ opened }: { opened: Opened }) {
  const { report, host } = opened;
  if (opened.waiting || report.known === false) return null;
  const commands = host.commands ? report.next.filter((one) => !one.includes("--format html")) : []; // this is that page
  return (
    <>
      <Tiles opened={opened} />
      {report.time_split.length ? (
        <Card
          title="Where the time of the run went"
          note="of each thread's wall time from its first event on; ~ marks an estimate"
        >
          <Splits splits={report.time_split} />
        </Card>
      ) : null}
      <Phases opened={opened} />
      {commands.length ? (
        <Card title="Next" note="commands to type">
          <div class="commands">
            {commands.map((command) => (
              <div>
                <code>{visible(command)}</code>
                <CopyButton text={command} label="command" />
              </div>
            ))}
          </div>
        </Card>
      ) : null}
    </>
  );
}

function Tiles({ opened }: { opened: Opened }) {
  const { report } = opened;
  const { meta } = report;
  const main = report.time_split.find((split) => split.main);
  const peak = report.memory?.peaks[0];
  const lost = report.losses.reduce((sum, loss) => sum + loss.count, 0);
  const measured = report.gpu?.devices.find((device) => device.busy);
  const made: [string, string, string, string?][] = [
    [
      "Wall time",
      meta.wall_ns ? duration(meta.wall_ns) : "n/a",
      meta.processes > 1 ? `${meta.processes} processes` : "",
    ],
  ];
  if (main) made.push(["In operators", share(main.operators_ns, main.wall_ns), "of the main thread"]);
  if (measured?.busy) made.push(["Device busy", share(measured.busy.busy_ns, meta.wall_ns), visible(measured.name)]);
  made.push(["Operator calls", number(report.operator_calls), `${number(report.tables.of.operators ?? 0)} operators`]);
  if (peak) made.push(["Peak tensor memory", size(peak.peak_bytes), visible(peak.device)]);
  const { percent: cost } = report.cost;
  made.push([
    "Own cost",
    cost === null ? "n/a" : percent(cost / 100),
    cost === null ? "the file does not say" : "of the run",
  ]);
  const found = new Set(report.losses.map((loss) => loss.kind)).size;
  const kinds = `${found} kind${found === 1 ? "" : "s"}, see above`;
  made.push(["Not measured", lost ? number(lost) : "nothing", lost ? kinds : "no losses", lost ? "warn" : "good"]);
  return (
    <div class="tiles">
      {made.map(([title, value, note, mood]) => (
        <div class={`tile ${mood ?? ""}`}>
          <div class="quiet">{title}</div>
          <div class="big">{value}</div>
          <div class="quiet small">{note}</div>
        </div>
      ))}
    </div>
  );
}

function Splits({ splits }: { splits: TimeSplit[] }) {
  return (
    <div class="splits">
      {splits.map((split) => (
        <>
          <div class="split-name">
            {visible([split.process, split.main ? "main thread" : split.thread || "thread"].filter(Boolean).join(", "))}
            <span class="quiet"> {duration(split.wall_ns)}</span>
          </div>
          <div class="split-bar">
            {PARTS.map(([key, name, kind]) => {
              const part = split[key] / split.wall_ns;
              if (!(part > 0)) return null;
              const guess = split.estimated.includes(key.replace("_ns", "")) ? "~" : "";
              const much = guess + share(split[key], split.wall_ns);
              const title = [`${name} ${duration(split[key])}, ${much}`, ...linesOf(split, key)].join("\n");
              return (
                <span
                  class={`part ${kind} ${part > 0.07 ? "named" : ""}`}
                  style={{ width: cssWidth(part) }}
                  title={title}
                >
                  {part > 0.07 ? `${name} ${much}` : ""}
                </span>
              );
            })}
          </div>
        </>
      ))}
      <div class="legend">
        {PARTS.filter(([key]) => splits.some((split) => split[key] > 0)).map(([, name, kind]) => (
          <span>
            <Dot kind={kind} />
            {name}
          </span>
        ))}
      </div>
    </div>
  );
}

/** Where that part of a thread's time was spent. */
function linesOf(split: TimeSplit, key: Part): string[] {
  const lines = split.places
    .filter((one) => `${one.part}_ns` === key)
    .map((one) => visible(`${one.short}:${one.line} ${one.function} ${duration(one.time_ns)}`));
  const spun = key === "device_wait_ns" ? split.device_wait_running_ns : null;
  return spun === null ? lines : [`on a core for ${duration(spun)} of it (spinning)`, ...lines];
}

function Phases({ opened }: { opened: Opened }) {
  const { report } = opened;
  if (!report.phases.length) return null;
  const key = report.totals.time ? "time_ns" : "gpu_time_ns";
  const total = report.phases.reduce((sum, phase) => sum + phase[key], 0);
  const most = Math.max(...report.phases.map((phase) => phase[key]), 1);
  return (
    <Card title="Phases" note="of the operators' time">
      <div class="scroll">
        <table class="data compact">
          <tbody>
            {report.phases.map((phase) => (
              <tr>
                <th scope="row" class="text">
                  {visible(phase.name) || "(outside)"}
                </th>
                <td>
                  <Bar parts={[[phase[key] / most, "phase"]]} />
                </td>
                <td>{duration(phase[key])}</td>
                <td>{share(phase[key], total)}</td>
                <td class="quiet">{number(phase.operators)} calls</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
