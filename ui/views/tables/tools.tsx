// What event tools have found: their tables, curves and heat maps, and what they did not see.

import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Chart } from "../../model/series";
import { cellNode, cellText, toolResults, type ToolOutput, type ToolResult } from "../../model/tools";
import { number, visible } from "../../model/units";
import { Plot } from "../charts/plot";
import type { Opened } from "../opened";
import { Card, Nothing } from "../widgets";
import { SortTable, type Column } from "./table";

const MOST_SERIES = 6;
const HEAT_ROWS = 40;
const HEAT_COLUMNS = 120;
const CELL = 12;

export function ToolTables({ opened }: { opened: Opened }) {
  const results = useMemo(() => toolResults(opened.profile), [opened.profile]);
  if (!results.length)
    return (
      <>
        <h2>Tools</h2>
        <Nothing>
          No event tool ran with this program. <code>leadline run --tool hotness …</code> runs one;{" "}
          <code>leadline tools</code> lists them.
        </Nothing>
      </>
    );
  return (
    <>
      {results.map((result) => (
        <Result opened={opened} result={result} />
      ))}
    </>
  );
}

function Result({ opened, result }: { opened: Opened; result: ToolResult }) {
  return (
    <Card title={`Tool ${result.tool}`} note={result.note}>
      {result.warnings.map((one) => (
        <p class="quiet">{visible(one)}</p>
      ))}
      {result.outputs.map((output) => (
        <Output opened={opened} output={output} />
      ))}
      {result.outputs.length || result.warnings.length ? null : <Nothing>It found nothing to say.</Nothing>}
    </Card>
  );
}

function Output({ opened, output }: { opened: Opened; output: ToolOutput }) {
  if (output.kind === "table") return <Rows opened={opened} output={output} />;
  if (output.kind === "text")
    return (
      <pre class="tool-text">
        {output.text
          .split("\n")
          .map((line) => visible(line))
          .join("\n")}
      </pre>
    );
  return (
    <>
      <h3>{visible(output.name)}</h3>
      {output.kind === "curve" ? <Plot opened={opened} chart={chartOf(output)} /> : <Heat output={output} />}
    </>
  );
}

function Rows({ opened, output }: { opened: Opened; output: Extract<ToolOutput, { kind: "table" }> }) {
  const { rows } = output;
  const size = opened.profile.size;
  const columns = output.columns.map((column, at): Column<unknown[]> => {
    const isNumber = rows.some((row) => typeof row[at] === "number");
    return {
      title: visible(column.name),
      text: !isNumber,
      value: (row) => (isNumber ? Number(row[at] ?? -Infinity) : cellText(row[at], column.unit)),
      cell: (row) => visible(cellText(row[at], column.unit)),
    };
  });
  const place = rows.some((row) => row.some((value) => cellNode(value, size) !== null));
  const open = (row: unknown[]) => {
    const node = row.map((value) => cellNode(value, size)).find((one) => one !== null);
    if (node !== undefined && node !== null) opened.go.frame(node);
  };
  const more = output.inAll > rows.length ? ` of ${number(output.inAll)}` : "";
  return columns.length ? (
    <SortTable
      title=""
      what={output.name}
      columns={columns}
      rows={rows}
      sort={Math.max(
        0,
        columns.findIndex((column) => !column.text),
      )}
      note={visible([output.name, `${number(rows.length)}${more} rows`, output.note].filter(Boolean).join(", "))}
      empty="It has no rows."
      rowTitle="Show it in the flame graph"
      open={place ? open : undefined}
    />
  ) : null;
}

function chartOf(output: Extract<ToolOutput, { kind: "curve" }>): Chart {
  const series = output.series.slice(0, MOST_SERIES);
  const unit = output.unit === "bytes" || output.unit === "ns" ? output.unit : "1";
  return {
    title: output.name,
    note: series.map(([name]) => name).join(", "),
    unit,
    x: output.x,
    lines: series.map(([name, values]) => ({ name, values })),
    counted: output.xUnit === "ns" ? undefined : "point",
  };
}

/** Darker is more; of many rows and columns the largest of those that fall together. */
function Heat({ output }: { output: Extract<ToolOutput, { kind: "heat" }> }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const rows = Math.min(HEAT_ROWS, output.cells.length);
  const wide = Math.min(HEAT_COLUMNS, Math.max(1, ...output.cells.map((row) => row.length)));
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, wide * CELL, rows * CELL);
    let peak = 1e-12;
    for (const row of output.cells) for (const value of row) peak = Math.max(peak, value);
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent").trim();
    output.cells.slice(0, rows).forEach((row, y) => {
      for (let x = 0; x < wide; x++) {
        const part = row.slice(Math.floor((x * row.length) / wide), Math.ceil(((x + 1) * row.length) / wide));
        context.globalAlpha = part.length ? Math.sqrt(Math.max(0, ...part) / peak) : 0;
        context.fillRect(x * CELL, y * CELL, CELL - 1, CELL - 1);
      }
    });
  }, [output]);
  return (
    <div class="scroll tool-heat">
      <div class="tool-heat-names" style={{ lineHeight: `${CELL}px` }}>
        {output.rows.slice(0, rows).map((name) => (
          <div>{visible(name)}</div>
        ))}
      </div>
      <canvas
        ref={canvas}
        width={wide * CELL}
        height={rows * CELL}
        role="img"
        aria-label={visible(`Heat map, ${output.what}, of ${output.cells.length} rows; darker is more`)}
      />
    </div>
  );
}
