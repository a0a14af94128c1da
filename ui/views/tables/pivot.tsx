// A table that is grouped by what its reader chooses.

import { useContext, useMemo, useState } from "preact/hooks";
import { DIMENSIONS, pivot, type Dimension, type PivotRow } from "../../model/pivot";
import { duration, number, size, visible } from "../../model/units";
import { emptyTables } from "../empty";
import type { Opened } from "../opened";
import { shared } from "./columns";
import { TablePlace } from "./place";
import { SortTable, type Column } from "./table";

const MOST = 4;

export function GroupedTable({ opened }: { opened: Opened }) {
  const place = useContext(TablePlace);
  const first = useMemo<Dimension[]>(
    () => (emptyTables(opened.profile).modules ? ["operator", "phase"] : ["class", "operator", "phase"]),
    [opened.profile],
  );
  const [own, setOwn] = useState<readonly string[]>([]);
  const asked = (place?.state.by ?? own).filter((one): one is Dimension => Object.hasOwn(DIMENSIONS, one));
  const by = asked.length ? [...new Set(asked)].slice(0, MOST) : first;
  const rows = useMemo(() => pivot(opened.profile, by), [opened.profile, by.join()]);
  const has = (value: (row: PivotRow) => number) => rows.some((row) => value(row) > 0);
  const onDevice = has((row) => row.gpu_ns);
  const main = (row: PivotRow) => (onDevice ? row.gpu_ns : row.time_ns);
  const total = rows.reduce((sum, row) => sum + main(row), 0);
  const columns: Column<PivotRow>[] = [
    ...by.map((dimension, at): Column<PivotRow> => ({
      title: DIMENSIONS[dimension],
      text: true,
      value: (row) => row.keys[at],
      cell: (row) => visible(row.keys[at]) || <span class="quiet">none</span>,
    })),
    { title: "Calls", value: (row) => row.calls, cell: (row) => number(row.calls) },
    { title: "Time", value: (row) => row.time_ns, cell: (row) => duration(row.time_ns), help: "Self time, on the CPU" },
    ...(onDevice
      ? [
          {
            title: "On the device",
            value: (row: PivotRow) => row.device_count,
            cell: (row: PivotRow) => number(row.device_count),
            help: "Kernels, copies and collectives",
          },
        ]
      : []),
    ...(onDevice
      ? [{ title: "GPU", value: (row: PivotRow) => row.gpu_ns, cell: (row: PivotRow) => duration(row.gpu_ns) }]
      : []),
    shared("Share", main, rows, total, () => (onDevice ? "kernel" : "operator")),
    ...(has((row) => row.alloc_bytes)
      ? [
          {
            title: "Allocated",
            value: (row: PivotRow) => row.alloc_bytes,
            cell: (row: PivotRow) => size(row.alloc_bytes),
          },
        ]
      : []),
  ];
  const put = (at: number, value: string) => {
    const next = value ? [...by.slice(0, at), value as Dimension, ...by.slice(at + 1)] : by.filter((_, i) => i !== at);
    if (place) place.say({ by: [...new Set(next)], order: "", without: [] });
    else setOwn([...new Set(next)]);
  };
  return (
    <SortTable
      key={by.join()}
      title="Grouped"
      what="groups"
      columns={columns}
      rows={rows}
      sort={by.length + (onDevice ? 3 : 1)}
      empty="Nothing with a time of its own was measured."
      rowTitle="Show the largest of it in the flame graph"
      open={(row) => opened.go.frame(row.node)}
      tools={
        <>
          {[...by, ""].slice(0, MOST).map((dimension, at) => (
            <select
              aria-label={`Group by, ${at + 1}`}
              value={dimension}
              onChange={(event) => put(at, event.currentTarget.value)}
            >
              <option value="">{dimension ? "(leave out)" : "and by …"}</option>
              {(Object.keys(DIMENSIONS) as Dimension[])
                .filter((one) => one === dimension || !by.includes(one))
                .map((one) => (
                  <option value={one}>{DIMENSIONS[one]}</option>
                ))}
            </select>
          ))}
        </>
      }
    />
  );
}
