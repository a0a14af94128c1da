// A kernel's source and its machine code side by side, with the samples of each line and why it waited. A line that is chosen on
// one side shows what belongs to it on the other.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { kernelCode, ranked, sampledKernels, type CodeLine, type Heat, type KernelCode } from "../../model/kernels";
import { Stalls } from "../../model/schema.generated";
import { duration, number, share, visible } from "../../model/units";
import type { Opened } from "../opened";
import { Nothing } from "../widgets";

const MOST_LINES = 20_000;
const AROUND = 6;

/** What is chosen: a line of source. */
interface Chosen {
  file: string;
  line: number;
}

export function KernelsPage({ opened, shown }: { opened: Opened; shown: boolean }) {
  const seen = useRef(false);
  if (shown) seen.current = true;
  return seen.current ? <Shown opened={opened} /> : null;
}

function Shown({ opened }: { opened: Opened }) {
  const { profile } = opened;
  const kernels = useMemo(() => sampledKernels(profile), [profile]);
  const [name, setName] = useState(kernels[0]?.name ?? "");
  const kernel = kernels.find((one) => one.name === name);
  const code = useMemo(() => (kernel ? kernelCode(profile, kernel) : null), [profile, kernel]);
  const [chosen, setChosen] = useState<Chosen | null>(null);
  if (!kernel || !code)
    return (
      <>
        <h2>Kernels</h2>
        <Nothing>No instructions of kernels were sampled; run with leadline run --instructions.</Nothing>
      </>
    );
  return (
    <>
      <div class="toolbar">
        <h2>Kernels</h2>
        <select
          aria-label="Kernel"
          value={name}
          onChange={(event) => {
            setName(event.currentTarget.value);
            setChosen(null);
          }}
        >
          {kernels.slice(0, 500).map((one) => (
            <option value={one.name}>
              {visible(one.name)} ({number(one.samples)} samples, {duration(one.gpu_time_ns)})
            </option>
          ))}
        </select>
      </div>
      <Reasons heat={code} />
      <div class="kernel-sides">
        <SourceSide opened={opened} code={code} chosen={chosen} choose={setChosen} />
        <MachineSide opened={opened} code={code} chosen={chosen} choose={setChosen} />
      </div>
    </>
  );
}

/** Why its instructions were not issued, in all. */
function Reasons({ heat }: { heat: Heat }) {
  return (
    <ul class="kernel-reasons" aria-label="Why its instructions were not issued">
      {ranked(heat)
        .slice(0, 6)
        .map(([reason, samples]) => (
          <li title={Stalls[reason]?.doc ?? ""}>
            <b>{share(samples, heat.samples)}</b> {visible(reason.replaceAll("_", " "))}
            {Stalls[reason] ? <span class="quiet"> {Stalls[reason].group.replaceAll("_", " ")}</span> : null}
          </li>
        ))}
    </ul>
  );
}

interface SideProps {
  opened: Opened;
  code: KernelCode;
  chosen: Chosen | null;
  choose(chosen: Chosen): void;
}

function SourceSide({ opened, code, chosen, choose }: SideProps) {
  const files = [...code.files.keys()];
  const [file, setFile] = useState(files[0] ?? "");
  const [text, setText] = useState<{ file: string; lines: string[] | null } | null>(null);
  const shown = code.files.has(file) ? file : (files[0] ?? "");
  useEffect(() => {
    if (chosen && code.files.has(chosen.file)) setFile(chosen.file);
  }, [chosen]);
  useEffect(() => {
    let current = true;
    const take = (lines: string[] | null) => current && setText({ file: shown, lines });
    if (shown)
      opened.host.source(shown).then(
        (found) => take(found?.split("\n").slice(0, MOST_LINES) ?? null),
        () => take(null),
      );
    return () => {
      current = false;
    };
  }, [shown]);
  if (!files.length)
    return (
      <section class="source-text" aria-label="Source of the kernel">
        <p class="quiet empty">
          Its code has no lines: compile with nvcc -lineinfo. Libraries such as cuBLAS ship without; their instructions
          are on the right.
        </p>
      </section>
    );
  const heat = code.files.get(shown)!;
  const known = text?.file === shown ? text.lines : null;
  const rows = known
    ? known.map((line, i): [number, string] => [i + 1, line])
    : [...heat.keys()].sort((a, b) => a - b).map((line): [number, string] => [line, ""]);
  const hottest = [...heat].sort((a, b) => b[1].samples - a[1].samples)[0][0];
  return (
    <section class="source-text" tabIndex={0} aria-label="Source of the kernel">
      <div class="side-head">
        <select aria-label="Source file" value={shown} onChange={(event) => setFile(event.currentTarget.value)}>
          {files.map((one) => (
            <option value={one}>{visible(opened.shortFile(one).split("/").slice(-2).join("/"))}</option>
          ))}
        </select>
        {known || text === null ? null : <span class="quiet small">the file's text is not here</span>}
      </div>
      <Lines
        rows={rows.map(([line, one]) => ({
          key: line,
          label: String(line),
          code: one.replaceAll("\t", "    "),
          heat: heat.get(line),
          marked: chosen?.file === shown && chosen.line === line,
        }))}
        whole={code.samples}
        first={chosen?.file === shown ? chosen.line : hottest}
        choose={(line) => choose({ file: shown, line })}
      />
    </section>
  );
}

function MachineSide({ opened, code, chosen, choose }: SideProps) {
  const [at, setAt] = useState(0);
  const machine = code.functions[at] ?? code.functions[0];
  const belongs = (one: CodeLine) => chosen !== null && one.file === chosen.file && one.line === chosen.line;
  const first = machine.lines.find(belongs) ?? [...machine.lines].sort((a, b) => b.samples - a.samples)[0];
  return (
    <section class="source-text" tabIndex={0} aria-label="Machine code of the kernel">
      <div class="side-head">
        <select aria-label="Function" value={String(at)} onChange={(event) => setAt(Number(event.currentTarget.value))}>
          {code.functions.map((one, i) => (
            <option value={String(i)}>{visible(one.name || "machine code")}</option>
          ))}
        </select>
        {machine.lines.some((one) => one.text) ? null : (
          <span class="quiet small">offsets alone: nvdisasm was not there (pip install nvidia-cuda-nvdisasm)</span>
        )}
      </div>
      <Lines
        rows={machine.lines.slice(0, MOST_LINES).map((one) => ({
          key: one.offset,
          label: one.offset.toString(16).padStart(4, "0"),
          code: one.text || "·",
          heat: one.samples ? one : undefined,
          marked: belongs(one),
          place: one.line > 0 ? `${opened.shortFile(one.file).split("/").pop()}:${one.line}` : "",
        }))}
        whole={code.samples}
        first={first?.offset ?? 0}
        choose={(offset) => {
          const one = machine.lines.find((line) => line.offset === offset);
          if (one && one.line > 0) choose({ file: one.file, line: one.line });
        }}
      />
    </section>
  );
}

interface Row {
  key: number;
  label: string;
  code: string;
  heat: Heat | undefined;
  marked: boolean;
  place?: string;
}

interface LinesProps {
  rows: Row[];
  whole: number;
  /** The row that is brought into view. */
  first: number;
  choose(key: number): void;
}

function Lines({ rows, whole, first, choose }: LinesProps) {
  const table = useRef<HTMLTableElement>(null);
  useEffect(() => {
    const row = table.current?.querySelector(`tr[data-key="${first}"]`);
    const box = table.current?.closest(".source-text");
    if (row instanceof HTMLElement && box) box.scrollTop = row.offsetTop - AROUND * row.offsetHeight;
  }, [first, rows.length]);
  const most = Math.max(1, ...rows.map((row) => row.heat?.samples ?? 0));
  return (
    <table class="source-lines" ref={table}>
      <tbody>
        {rows.map((row) => {
          const [reason] = row.heat ? (ranked(row.heat)[0] ?? [""]) : [""];
          const part = row.heat ? row.heat.samples / most : 0;
          return (
            <tr
              data-key={row.key}
              class={`${row.marked ? "selected" : ""} ${row.heat || row.place ? "hot" : ""}`}
              onClick={() => choose(row.key)}
              style={part > 0 ? { "--heat": `${Math.max(6, 100 * Math.sqrt(part))}%` } : undefined}
            >
              <td class="cost">{row.heat ? share(row.heat.samples, whole) : ""}</td>
              <td class="cost reason" title={Stalls[reason]?.doc ?? ""}>
                {visible(reason.replaceAll("_", " "))}
              </td>
              <td class="line-number">{row.label}</td>
              <td class="code">
                <code>{visible(row.code, 2000)}</code>
              </td>
              {row.place === undefined ? null : <td class="cost">{visible(row.place)}</td>}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
