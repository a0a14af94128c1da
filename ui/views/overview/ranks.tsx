// The ranks of a merged job: who is late and why, how far ranks are apart, and a heat map of rank and part.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ranksAlone } from "../../model/alone";
import { deviations, heatColumns, quantityName, type Ranks, type RankSpread } from "../../model/ranks";
import { duration, number, share, size, visible } from "../../model/units";
import type { Opened } from "../opened";
import { Card } from "../widgets";

const MOST_HEIGHT = 480;
const MOST_CELL = 18;
const WIDTH = 72; // of a column

export function RanksCard({ opened, ranks }: { opened: Opened; ranks: Ranks | null | undefined }) {
  const alone = useMemo(() => ranksAlone(opened.profile), [opened.profile]);
  if (!ranks) return null;
  const of = ranks.world_size > ranks.count ? ` of ${number(ranks.world_size)}` : "";
  const gap = ranks.missing ? `; missing: ${ranks.missing}` : "";
  const machines = ranks.hosts > 1 ? ` on ${number(ranks.hosts)} machines` : "";
  const sentences = [...ranks.arrival, ...ranks.late.map((one) => one.sentence), ...ranks.lawful];
  if (!ranks.late.length && !ranks.arrival.length && ranks.compared)
    sentences.unshift("No rank works noticeably longer than its peers.");
  return (
    <Card title="Ranks" note={`${number(ranks.count)}${of}${machines}${gap}; times elsewhere are sums over ranks`}>
      <ul class="rank-verdicts">
        {sentences.slice(0, 12).map((sentence) => (
          <li>{visible(sentence)}</li>
        ))}
      </ul>
      {alone.length ? (
        <p class="rank-trees">
          Call tree of{" "}
          {alone.map((rank) => (
            <button type="button" class="plain" onClick={() => opened.go.rank(rank)}>
              rank {rank} alone
            </button>
          ))}
        </p>
      ) : null}
      <Spreads spreads={ranks.spreads} />
      {ranks.rows.length > 1 ? <HeatMap ranks={ranks} alone={alone} open={opened.go.rank} /> : null}
    </Card>
  );
}

function Spreads({ spreads }: { spreads: RankSpread[] }) {
  const shown = (one: RankSpread, value: number) => (one.unit === "bytes" ? size(value) : duration(value));
  return (
    <div class="scroll">
      <table class="data compact">
        <thead>
          <tr>
            <th scope="col" class="text">
              Part
            </th>
            <th scope="col">Mean</th>
            <th scope="col">Spread</th>
            <th scope="col">Least</th>
            <th scope="col">Most</th>
          </tr>
        </thead>
        <tbody>
          {spreads.map((one) => (
            <tr>
              <th scope="row" class="text">
                {visible(quantityName(one.name))}
              </th>
              <td>{shown(one, one.mean)}</td>
              <td>{one.mean ? `±${share(one.std, one.mean)}` : "n/a"}</td>
              <td>
                {shown(one, one.min)} <span class="quiet">{visible(one.min_rank)}</span>
              </td>
              <td>
                {shown(one, one.max)} <span class="quiet">{visible(one.max_rank)}</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A row for each rank, a column for each part; red took longer than the median rank, blue less. */
function HeatMap({ ranks, alone, open }: { ranks: Ranks; alone: number[]; open(rank: number): void }) {
  const columns = useMemo(() => heatColumns(ranks), [ranks]);
  const heat = useMemo(() => deviations(ranks, columns), [ranks, columns]);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, look] = useState<[number, number] | null>(null);
  const rows = ranks.rows.length;
  const cell = Math.max(1, Math.min(MOST_CELL, Math.floor(MOST_HEIGHT / rows)));
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, columns.length * WIDTH, rows * cell);
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns.length; column++) {
        const off = heat[row * columns.length + column];
        context.fillStyle = off > 0 ? `rgba(208, 58, 44, ${off})` : `rgba(44, 108, 208, ${-off})`;
        context.fillRect(column * WIDTH, row * cell, WIDTH - 1, cell > 3 ? cell - 1 : cell);
      }
  }, [heat]);
  const point = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLCanvasElement).getBoundingClientRect();
    const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
    const column = Math.floor(((event.clientX - box.left) / box.width) * columns.length);
    look(row >= 0 && row < rows && column >= 0 && column < columns.length ? [row, column] : null);
  };
  const pointed = at && alone.includes(ranks.rows[at[0]].rank) ? ranks.rows[at[0]].rank : -1;
  const said = at
    ? `${cellText(ranks, columns, at[0], at[1])}${pointed >= 0 ? "; click for its own tree" : ""}`
    : "Point at a cell: red took longer than the median rank, blue less.";
  return (
    <div class="rank-heat scroll">
      <div class="rank-heads" style={{ width: `${columns.length * WIDTH}px` }}>
        {columns.map((column) => (
          <span style={{ width: `${WIDTH}px` }}>{visible(quantityName(ranks.names[column]))}</span>
        ))}
      </div>
      <canvas
        ref={canvas}
        width={columns.length * WIDTH}
        height={rows * cell}
        role="img"
        aria-label={`Heat map of ${rows} ranks and ${columns.length} parts; the table above has the extremes`}
        style={{ cursor: pointed >= 0 ? "pointer" : "default" }}
        onClick={() => pointed >= 0 && open(pointed)}
        onMouseMove={point}
        onMouseLeave={() => look(null)}
      />
      <p class="quiet small" aria-live="polite">
        {visible(said)}
      </p>
    </div>
  );
}

function cellText(ranks: Ranks, columns: number[], row: number, column: number): string {
  const one = ranks.rows[row];
  const role = Object.entries(one.role)
    .map(([name, place]) => `${name} ${place}`)
    .join(", ");
  const who = [one.rank >= 0 ? `rank ${one.rank}` : "a rank without a number", one.host, role]
    .filter(Boolean)
    .join(", ");
  return `${who}: ${quantityName(ranks.names[columns[column]])} ${duration(one.values[columns[column]])}`;
}
