// What event tools have found: their tables, curves and heat maps, and what they did not see.

import { useMemo } from "preact/hooks";
import { barColumn, cellNode, cellText, toolResults, type ToolOutput, type ToolResult } from "../../model/tools";
import { number, visible } from "../../model/units";
import type { Opened } from "../opened";
import { Bar, Card, Nothing } from "../widgets";
import { Curve } from "./curve";
import { SortTable, type Column } from "./table";
import { ToolHeat } from "./tool_heat";

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
      {result.outputs.length || result.warnings.length ? null : <Nothing>It has no result.</Nothing>}
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
      {output.kind === "curve" ? <Curve output={output} /> : <ToolHeat heat={output} />}
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
  const sort = Math.max(
    0,
    columns.findIndex((column) => !column.text),
  );
  const drawn = barColumn(output.columns, rows);
  const most = drawn < 0 ? 0 : Math.max(...rows.map((row) => Number(row[drawn])));
  if (drawn >= 0)
    columns.splice(drawn + 1, 0, {
      title: "",
      value: (row) => Number(row[drawn]),
      cell: (row) => (
        <Bar parts={[[Number(row[drawn]) / most, "operator", cellText(row[drawn], output.columns[drawn].unit)]]} />
      ),
      picture: true,
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
      sort={drawn >= 0 ? drawn : sort}
      note={visible([output.name, `${number(rows.length)}${more} rows`, output.note].filter(Boolean).join(", "))}
      empty="It has no rows."
      rowTitle="Show it in the flame graph"
      open={place ? open : undefined}
    />
  ) : null;
}

/** Darker is more; of many rows and columns the largest of those that fall together. */
