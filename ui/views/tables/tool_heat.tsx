// A heat map of a tool: darker is more; the cell under the pointer is said in words.

import { useEffect, useRef, useState } from "preact/hooks";
import { heatCell, type HeatOutput } from "../../model/tools";
import { visible } from "../../model/units";

const MOST_ROWS = 40;
const MOST_COLUMNS = 120;
const CELL = 12;

export function ToolHeat({ heat }: { heat: HeatOutput }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, look] = useState<[number, number] | null>(null);
  const rows = Math.min(MOST_ROWS, heat.cells.length);
  const wide = Math.min(MOST_COLUMNS, Math.max(1, ...heat.cells.map((row) => row.length)));
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, wide * CELL, rows * CELL);
    let peak = 1e-12;
    for (const row of heat.cells) for (const value of row) peak = Math.max(peak, value);
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent").trim();
    for (let y = 0; y < rows; y++)
      for (let x = 0; x < wide; x++) {
        context.globalAlpha = Math.sqrt(Math.max(0, heatCell(heat, y, x, wide).value) / peak);
        context.fillRect(x * CELL, y * CELL, CELL - 1, CELL - 1);
      }
  }, [heat]);
  const point = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLCanvasElement).getBoundingClientRect();
    const y = Math.floor(((event.clientY - box.top) / box.height) * rows);
    const x = Math.floor(((event.clientX - box.left) / box.width) * wide);
    look(y >= 0 && y < rows && x >= 0 && x < wide ? [y, x] : null);
  };
  const more = heat.cells.length > rows ? ` ${heat.cells.length - rows} further rows are in the file.` : "";
  return (
    <>
      <div class="scroll tool-heat">
        <div class="tool-heat-names" style={{ lineHeight: `${CELL}px` }}>
          {heat.rows.slice(0, rows).map((name) => (
            <div>{visible(name)}</div>
          ))}
        </div>
        <canvas
          ref={canvas}
          width={wide * CELL}
          height={rows * CELL}
          role="img"
          aria-label={visible(`Heat map, ${heat.what}, of ${heat.cells.length} rows; darker is more`)}
          onMouseMove={point}
          onMouseLeave={() => look(null)}
        />
      </div>
      <p class="quiet small tool-heat-said" aria-live="polite">
        {at ? visible(heatCell(heat, at[0], at[1], wide).text) : `Point at a cell: darker is more.${more}`}
      </p>
    </>
  );
}
