// The user's file with what each line cost, and what ran on the line that is selected.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { backwardOfFile, heatOfFiles, operatorsOnLine, type FileHeat } from "../../model/source";
import type { Finding, LineRow } from "../../model/report";
import { duration, number, share, size, visible } from "../../model/units";
import type { Opened } from "../opened";
import { CopyButton, Dot, Nothing, Prose } from "../widgets";
import { coloured, type Piece } from "./colours";

export interface SourcePlace {
  file: string;
  line: number;
  /** Grows with each request. */
  asked: number;
}

const MOST_LINES = 20_000;

export function SourcePage({ opened, place, shown }: { opened: Opened; place: SourcePlace; shown: boolean }) {
  const seen = useRef(false);
  if (shown) seen.current = true;
  return seen.current ? <Shown opened={opened} place={place} /> : null;
}

function Shown({ opened, place }: { opened: Opened; place: SourcePlace }) {
  const { report, host } = opened;
  const files = useMemo(() => heatOfFiles(report.tables.lines), [report]);
  const [file, setFile] = useState(place.file || files[0]?.file || "");
  const hottest = (name: string) => hottestLine(files.find((one) => one.file === name));
  const [line, setLine] = useState(place.line || hottest(place.file || files[0]?.file || ""));
  const [text, setText] = useState<{ file: string; text: string | null; said: string } | null>(null);
  useEffect(() => {
    if (!place.file) return;
    setFile(place.file);
    setLine(place.line || hottest(place.file));
  }, [place.asked]);
  useEffect(() => {
    let current = true;
    if (file)
      host.source(file).then(
        (found) => current && setText({ file, text: found, said: "" }),
        (error: Error) => current && setText({ file, text: null, said: error.message }),
      );
    return () => {
      current = false;
    };
  }, [file]);
  if (!files.length)
    return (
      <>
        <h2>Source</h2>
        <NoLines opened={opened} />
      </>
    );
  const heat = files.find((one) => one.file === file);
  const found = (opened.findings?.findings ?? []).flatMap((finding) =>
    finding.lines.filter((at) => at.file === file).map((at): [number, Finding] => [at.line, finding]),
  );
  const beside: Beside = { heat, backward: backwardOfFile(opened.profile, file), findings: new Map(found) };
  return (
    <>
      <div class="toolbar">
        <h2>Source</h2>
        <select
          aria-label="File"
          value={file}
          onChange={(event) => {
            setFile(event.currentTarget.value);
            setLine(hottest(event.currentTarget.value));
          }}
        >
          {(heat ? files : [{ file, time_ns: 0, gpu_time_ns: 0 }, ...files]).slice(0, 500).map((one) => (
            <option value={one.file}>
              {visible(opened.shortFile(one.file))} ({duration(one.gpu_time_ns || one.time_ns)})
            </option>
          ))}
        </select>
        <CopyButton text={file} label="the file's path" />
      </div>
      <div class="flame-main">
        <div
          class="source-text"
          tabIndex={0}
          role="region"
          aria-label="Source with cost per line"
          aria-busy={text?.file !== file}
        >
          {text?.file === file && text.text !== null ? (
            <Lines text={text.text} file={file} beside={beside} selected={line} select={setLine} />
          ) : (
            <Known beside={beside} selected={line} select={setLine} said={text?.file === file ? text.said : "…"} />
          )}
        </div>
        <OnLine opened={opened} file={file} line={line} />
      </div>
    </>
  );
}

function hottestLine(heat: FileHeat | undefined): number {
  let [line, most] = [0, 0];
  for (const [number, row] of heat?.lines ?? []) {
    const value = row.gpu_time_ns || row.time_ns || row.peak_bytes;
    if (value > most) [line, most] = [number, value];
  }
  return line;
}

/** Why there are no lines, and how to have them. */
function NoLines({ opened }: { opened: Opened }) {
  const imported = "import" in opened.profile.meta.available;
  const command = imported
    ? "torch.profiler.profile(with_stack=True, …)"
    : `leadline run ${opened.report.meta.program}`;
  return (
    <Nothing>
      {imported
        ? "The trace this was made from holds no Python stacks. Record it with "
        : "No Python line is known for any measurement of this profile. Record the program with "}
      <code>{visible(command)}</code> <CopyButton text={command} label="command" />
    </Nothing>
  );
}

/** What is known of the lines of the file. */
interface Beside {
  heat: FileHeat | undefined;
  backward: Map<number, number>;
  findings: Map<number, Finding>;
}

interface LinesProps {
  beside: Beside;
  selected: number;
  select(line: number): void;
}

function Lines({ text, file, beside, selected, select }: LinesProps & { text: string; file: string }) {
  const rows = useMemo(
    () =>
      coloured(text, file)
        .slice(0, MOST_LINES)
        .map((pieces, i): [number, Piece[]] => [i + 1, pieces]),
    [text, file],
  );
  return <Table rows={rows} beside={beside} selected={selected} select={select} />;
}

/** Where the text cannot be had: the lines that were measured, by their numbers. */
function Known({ beside, selected, select, said }: LinesProps & { said: string }) {
  const rows = [...(beside.heat?.lines.keys() ?? [])]
    .sort((a, b) => a - b)
    .map((line): [number, Piece[]] => [line, []]);
  const why =
    said || "The text of this file is not here: it was left out, cannot be read, or has changed since the run.";
  return (
    <>
      <p class="quiet empty">{said === "…" ? "Reading the file …" : why}</p>
      {said === "…" ? null : <Table rows={rows} beside={beside} selected={selected} select={select} />}
    </>
  );
}

function Table({ rows, beside, selected, select }: LinesProps & { rows: [number, Piece[]][] }) {
  const { heat, backward, findings } = beside;
  const marked = useRef<HTMLTableRowElement>(null);
  useEffect(() => marked.current?.scrollIntoView({ block: "center" }), [selected, rows.length]);
  const all = [...(heat?.lines.values() ?? [])];
  const some = (value: (row: LineRow) => number) => all.some((row) => value(row) > 0);
  const columns: [string, (row: LineRow) => number, (value: number) => string][] = [];
  if (some((row) => row.gpu_time_ns)) columns.push(["GPU", (row) => row.gpu_time_ns, duration]);
  if (some((row) => row.time_ns)) columns.push(["time", (row) => row.time_ns, duration]);
  if (backward.size) columns.push(["backward", (row) => backward.get(row.line) ?? 0, duration]);
  if (some((row) => row.alloc_bytes)) columns.push(["allocated", (row) => row.alloc_bytes, size]);
  if (some((row) => row.peak_bytes)) columns.push(["at the peak", (row) => row.peak_bytes, size]);
  const main = columns[0]?.[1] ?? (() => 0);
  const most = Math.max(1, ...all.map(main));
  const sum = all.reduce((total, row) => total + main(row), 0);
  return (
    <table class="source-lines">
      <thead>
        <tr>
          {columns.map(([title]) => (
            <th scope="col">{title}</th>
          ))}
          {columns.length ? (
            <th
              scope="col"
              title={`of the ${columns[0][0]} of this file; the bar is linear, the longest is the hottest line`}
            >
              share
            </th>
          ) : null}
          <th scope="col">line</th>
          <th scope="col" class="text">
            code
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([number, pieces]) => {
          const finding = findings.get(number);
          const row = heat?.lines.get(number);
          const part = row ? main(row) / most : 0;
          return (
            <tr
              class={`${number === selected ? "selected" : ""} ${row ? "hot" : ""}`}
              ref={number === selected ? marked : undefined}
              onClick={row ? () => select(number) : undefined}
              style={part > 0 ? { "--heat": `${100 * part}%` } : undefined}
            >
              {columns.map(([, value, show]) => (
                <td class="cost">{row && value(row) ? show(value(row)) : ""}</td>
              ))}
              {columns.length ? <td class="cost share-bar">{row && main(row) ? share(main(row), sum) : ""}</td> : null}
              <td class="line-number">
                {row ? (
                  <button type="button" aria-label={`What ran on line ${number}`} onClick={() => select(number)}>
                    {number}
                  </button>
                ) : (
                  number
                )}
              </td>
              <td class="code">
                <code>
                  {pieces.map(([kind, text]) =>
                    kind ? <span class={`s-${kind}`}>{visibleCode(text)}</span> : visibleCode(text),
                  )}
                </code>
                {finding ? (
                  <span class={`line-finding ${finding.severity}`} title={visible(finding.remedy)}>
                    {visible(finding.title)}
                  </span>
                ) : null}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** Tabs keep their width; everything else that would change what is read becomes an escape. */
function visibleCode(code: string): string {
  return visible(code.replaceAll("\t", "    "), 2000);
}

function OnLine({ opened, file, line }: { opened: Opened; file: string; line: number }) {
  const { profile, go, host } = opened;
  const rows = useMemo(() => (line > 0 ? operatorsOnLine(profile, file, line) : []), [profile, file, line]);
  const findings = (opened.findings?.findings ?? []).filter((one) =>
    one.lines.some((at) => at.file === file && at.line === line),
  );
  const total = profile.metrics.values(profile.metrics.main).whole[0];
  const gpu = profile.metrics.main === "gpu_time";
  return (
    <aside class="details" tabIndex={0} aria-live="polite" aria-label="Selected line">
      {line > 0 ? (
        <>
          <h3>{visible(`${opened.shortFile(file)}:${line}`)}</h3>
          <div class="finding-links">
            <button type="button" class="plain" onClick={() => go.search(`${file}:${line}`)}>
              Show in the flame graph
            </button>
            {host.openFile ? (
              <button type="button" class="plain" onClick={() => host.openFile?.(file, line)}>
                Open in the editor
              </button>
            ) : null}
          </div>
          {findings.map((one) => (
            <p class="quiet">
              <b>
                <Prose text={one.title} />
              </b>{" "}
              <Prose text={one.remedy} />
            </p>
          ))}
          <h4>What ran on this line</h4>
          {rows.length ? (
            <div class="frame-list">
              {rows.slice(0, 60).map((row) => (
                <button type="button" class="frame-link" onClick={() => go.frame(row.node)}>
                  <Dot kind="operator" />
                  <span class="grow">
                    {visible(row.name)} <span class="quiet">{visible(row.phase)}</span>
                  </span>
                  <span class="number">
                    {duration(gpu ? row.gpu_time_ns : row.time_ns)}
                    {row.calls ? ` in ${number(row.calls)} calls` : ""},{" "}
                    {share(gpu ? row.gpu_time_ns : row.time_ns, total)}
                  </span>
                </button>
              ))}
            </div>
          ) : (
            <p class="quiet">Nothing that was measured.</p>
          )}
        </>
      ) : (
        <p class="quiet">Click a line with a cost to see what ran on it.</p>
      )}
    </aside>
  );
}
