// The tables: operators, kernels, modules, lines, memory, collectives, ranks.

import { useContext, useMemo, useRef } from "preact/hooks";
import { bare, cut } from "../../model/names";
import type { KernelRow, LineRow, ModuleRow, OperatorRow, ProcessRow, Tables } from "../../model/report";
import { duration, number, visible } from "../../model/units";
import { emptyTables } from "../empty";
import { NO_SUMMARY, type Opened } from "../opened";
import { Bar, Toggle } from "../widgets";
import { bytes, shared, time } from "./columns";
import { MemoryTable } from "./memory";
import { GroupedTable } from "./pivot";
import { TablePlace, type TableState } from "./place";
import { SortTable, type Column } from "./table";
import { ToolTables } from "./tools";

export const TABLE_NAMES = [
  "operators",
  "kernels",
  "modules",
  "lines",
  "memory",
  "collectives",
  "ranks",
  "grouped",
  "tools",
] as const;
export type TableName = (typeof TABLE_NAMES)[number];

interface Props {
  opened: Opened;
  table: TableName;
  /** How the table is looked at. */
  state: TableState;
  say(change: Partial<TableState>): void;
  choose(name: TableName): void;
  shown: boolean;
}

export function TablesPage({ opened, table, state, say, choose, shown }: Props) {
  const seen = useRef(false);
  const empty = useMemo(() => emptyTables(opened.profile), [opened.profile]);
  if (shown) seen.current = true;
  if (!seen.current) return null; // nothing is added up before somebody looks
  const Shown = VIEWS[table];
  return (
    <>
      <nav class="subtabs" aria-label="Tables">
        {TABLE_NAMES.map((name) => (
          <button
            type="button"
            id={`table-${name}`}
            class={empty[name] ? "faint" : ""}
            title={empty[name]}
            aria-pressed={name === table}
            onClick={() => choose(name)}
          >
            {name[0].toUpperCase() + name.slice(1)}
          </button>
        ))}
      </nav>
      <div class="table-page" id={`page-${table}`}>
        <TablePlace.Provider value={table === "tools" ? null : { state, say }}>
          <Shown opened={opened} key={table} />
        </TablePlace.Provider>
      </div>
    </>
  );
}

const MOST_NAME = 64;

/** A name in one line; the whole one stands in its tooltip. Operators keep the prefix by which they are known and sought. */
const code = (text: string) => <code title={visible(text)}>{visible(cut(text, MOST_NAME)) || "(unnamed)"}</code>;
const kernelCode = (text: string) => (
  <code title={visible(text)}>{visible(cut(bare(text), MOST_NAME)) || "(unnamed)"}</code>
);

function Operators({ opened }: { opened: Opened }) {
  const { report } = opened;
  const rows = report.tables.operators;
  const total = report.totals.time?.sum ?? 0;
  const onDevice = report.path_metric === "gpu_time" && rows.some((row) => row.gpu_time_ns);
  const columns: Column<OperatorRow>[] = [
    { title: "Operator", value: (row) => row.name, text: true, cell: (row) => code(row.name) },
    { title: "Calls", value: (row) => row.count, cell: (row) => number(row.count) },
    ...(onDevice
      ? [
          time<OperatorRow>("GPU", (row) => row.gpu_time_ns),
          shared(
            "Share of GPU",
            (row) => row.gpu_time_ns,
            rows,
            report.totals.gpu_time?.sum ?? 0,
            () => "kernel",
          ),
        ]
      : []),
    time("Self", (row) => row.time_ns.self, "Wall time less what nested operators took"),
    ...(onDevice
      ? []
      : [
          shared<OperatorRow>(
            "Share",
            (row) => row.time_ns.self,
            rows,
            total,
            () => "operator",
          ),
        ]),
    time("Total", (row) => row.time_ns.sum, "Wall time with nested operators"),
    time("Mean", (row) => row.time_ns.mean),
    time("Min", (row) => row.time_ns.min),
    time("Max", (row) => row.time_ns.max),
    time("Std", (row) => row.time_ns.std, "Standard deviation of one call"),
  ];
  if (!onDevice && rows.some((row) => row.gpu_time_ns)) columns.push(time("GPU", (row) => row.gpu_time_ns));
  if (rows.some((row) => row.alloc_bytes)) columns.push(bytes("Allocated", (row) => row.alloc_bytes));
  return (
    <SortTable
      title="Operators"
      what="operators"
      columns={columns}
      rows={rows}
      sort={2}
      note={shownOf(opened, "operators")}
      empty={emptyText(opened, "No operator was measured.")}
      rowTitle="Find it in the flame graph"
      open={(row) => opened.go.search(row.name)}
    />
  );
}

/** `120`, `5,000 of 7,310`, and below which frames where the report is of a part. */
function shownOf({ report }: Opened, name: keyof Omit<Tables, "of">): string {
  const shown = report.tables[name].length;
  const all = report.tables.of[name] ?? shown;
  const below = report.focus ? ` below /${visible(report.focus.pattern)}/` : "";
  return (all > shown ? `${number(shown)} of ${number(all)}` : number(shown)) + below;
}

function emptyText({ report, waiting }: Opened, text: string): string {
  if (waiting) return "Being computed …";
  return report.known === false ? NO_SUMMARY : text;
}

function kernelColumns(rows: KernelRow[], total: number): Column<KernelRow>[] {
  return [
    { title: "Name", value: (row) => row.name, text: true, cell: (row) => kernelCode(row.name) },
    { title: "Kind", value: (row) => row.kind, text: true },
    { title: "Times", value: (row) => row.count, cell: (row) => number(row.count) },
    time("Total", (row) => row.gpu_time_ns.sum),
    shared(
      "Share",
      (row) => row.gpu_time_ns.sum,
      rows,
      total,
      (row) => row.kind,
    ),
    time("Mean", (row) => row.gpu_time_ns.mean),
    time("Min", (row) => row.gpu_time_ns.min),
    time("Max", (row) => row.gpu_time_ns.max),
    time("Std", (row) => row.gpu_time_ns.std),
  ];
}

function Kernels({ opened }: { opened: Opened }) {
  const rows = opened.report.tables.kernels;
  const total = opened.report.totals.gpu_time?.sum ?? 0;
  return (
    <SortTable
      title="On the device"
      what="kernels"
      columns={kernelColumns(rows, total)}
      rows={rows}
      sort={3}
      note={rows.length ? `${shownOf(opened, "kernels")}, ${duration(total)} in all` : ""}
      empty={emptyText(opened, "No device work was measured in this run.")}
      rowTitle="Find it in the flame graph"
      open={(row) => opened.go.search(row.name)}
    />
  );
}

function Collectives({ opened }: { opened: Opened }) {
  const { report } = opened;
  const rows = useMemo(() => report.tables.kernels.filter((row) => row.kind === "collective"), [report]);
  const total = report.totals.gpu_time?.sum ?? 0;
  return (
    <SortTable
      title="Collectives"
      what="collectives"
      columns={kernelColumns(rows, total)}
      rows={rows}
      sort={3}
      note={rows.length ? `shares are of all device work, ${duration(total)}` : ""}
      empty={emptyText(opened, "No collective on a device was measured in this run.")}
      open={(row) => opened.go.search(row.name)}
    />
  );
}

function Modules({ opened }: { opened: Opened }) {
  const place = useContext(TablePlace);
  const fold = !place?.state.by.includes("layer");
  const { layers: all, modules: folded } = opened.report.tables;
  const rows = fold ? folded : all;
  const most = Math.max(...all.map((one) => one.time_ns), 1);
  const columns: Column<ModuleRow>[] = [
    {
      title: "Module",
      value: (row) => row.name,
      text: true,
      cell: (row) => (
        <>
          {code(row.name)}
          {row.modules > 1 ? <span class="quiet"> {row.modules} modules</span> : null}
        </>
      ),
    },
    { title: "Class", value: (row) => row.class_name, text: true },
    time("Total", (row) => row.time_ns, "With its submodules, forward and backward"),
    {
      title: "forward, backward",
      left: true,
      value: (row) => row.time_ns,
      picture: true,
      cell: (row) => (
        <Bar
          parts={[
            [row.forward_ns / most, "module", `forward ${duration(row.forward_ns)}`],
            [row.backward_ns / most, "phase", `backward ${duration(row.backward_ns)}`],
          ]}
        />
      ),
    },
    time("Forward", (row) => row.forward_ns),
    time("Backward", (row) => row.backward_ns, "Counted at the module whose forward it belongs to"),
    time("Self", (row) => row.self_ns, "Without its submodules"),
  ];
  if (all.some((row) => row.gpu_time_ns)) columns.push(time("GPU", (row) => row.gpu_time_ns));
  if (all.some((row) => row.alloc_bytes)) columns.push(bytes("Allocated", (row) => row.alloc_bytes));
  return (
    <SortTable
      title="Modules"
      what="modules"
      columns={columns}
      rows={rows}
      sort={2}
      note={shownOf(opened, fold ? "modules" : "layers")}
      empty={emptyText(opened, "No nn.Module was called while measuring.")}
      rowTitle="Find it in the flame graph"
      open={(row) => opened.go.search(row.name)}
      tools={
        folded.length < all.length ? (
          <Toggle
            label="Fold layers"
            title="Show numbered layers (h.0, h.1, ...) as one"
            on={fold}
            flip={() => place?.say({ by: fold ? ["layer"] : [] })}
          />
        ) : null
      }
    />
  );
}

function Lines({ opened }: { opened: Opened }) {
  const rows = opened.report.tables.lines;
  const columns: Column<LineRow>[] = [
    {
      title: "Line",
      value: (row) => `${row.file}:${row.line}`,
      text: true,
      cell: (row) => code(`${opened.shortFile(row.file)}:${row.line}`),
    },
    { title: "Function", value: (row) => row.function, text: true },
    time("Time", (row) => row.time_ns, "Wall time inside operators and calls of this line"),
    { title: "Calls", value: (row) => row.calls, cell: (row) => number(row.calls) },
  ];
  const some = (value: (row: LineRow) => number) => rows.some((row) => value(row) > 0);
  if (some((row) => row.gpu_time_ns)) columns.push(time("GPU", (row) => row.gpu_time_ns));
  if (some((row) => row.wait_ns)) columns.push(time("Waited", (row) => row.wait_ns));
  if (some((row) => row.alloc_bytes)) columns.push(bytes("Allocated", (row) => row.alloc_bytes));
  if (some((row) => row.peak_bytes)) columns.push(bytes("At the peak", (row) => row.peak_bytes));
  const gpu = columns.findIndex((column) => column.title === "GPU");
  return (
    <SortTable
      title="Your lines"
      what="lines"
      columns={columns}
      rows={rows}
      sort={gpu >= 0 ? gpu : 2}
      note={shownOf(opened, "lines")}
      empty={emptyText(opened, "No Python line is known for what was measured.")}
      rowTitle="Show the source"
      open={(row) => opened.go.source(row.file, row.line)}
    />
  );
}

function Ranks({ opened }: { opened: Opened }) {
  const rows = opened.report.tables.processes;
  const columns: Column<ProcessRow>[] = [
    { title: "Rank", value: (row) => row.rank, cell: (row) => (row.rank >= 0 ? row.rank : "-") },
    { title: "Process", value: (row) => row.name, text: true, cell: (row) => code(row.name) },
    { title: "Pid", value: (row) => row.pid },
    time("Wall", (row) => row.wall_ns),
    time("Operators", (row) => row.operators_ns, "Of all its threads"),
    time("Data loading", (row) => row.data_ns),
    time("CPU", (row) => row.cpu_ns),
    time("GPU", (row) => row.gpu_time_ns),
    { title: "Threads", value: (row) => row.threads },
    { title: "End", value: (row) => (row.complete ? "normal" : "killed"), text: true },
  ];
  return (
    <SortTable
      title="Processes and ranks"
      what="processes"
      columns={columns}
      rows={rows}
      sort={3}
      empty={emptyText(opened, "The file names no process.")}
    />
  );
}

const VIEWS: Record<TableName, (props: { opened: Opened }) => preact.JSX.Element> = {
  operators: Operators,
  kernels: Kernels,
  modules: Modules,
  lines: Lines,
  memory: MemoryTable,
  collectives: Collectives,
  ranks: Ranks,
  grouped: GroupedTable,
  tools: ToolTables,
};
