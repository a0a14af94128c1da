// What a frame is beyond its name: the operators and lines that a generated kernel was fused from, a collective's process
// group, a copy's direction. Comes from the file's `detail`, which may be anything.

import { isObject } from "../../model/reader";
import { visible } from "../../model/units";
import type { Opened } from "../opened";
import { CopyButton } from "../widgets";

const MOST_FACTS = 12;

export function detailOf(text: string): Record<string, unknown> {
  try {
    const detail: unknown = JSON.parse(text);
    return isObject(detail) ? detail : {};
  } catch {
    return {};
  }
}

/** `rows`: the node and those above it, nearest first. */
export function Origin({ opened, rows }: { opened: Opened; rows: number[] }) {
  const { profile } = opened;
  const detail = (row: number) => detailOf(profile.frameText("detail", profile.frame[row]));
  const own = detail(rows[0]);
  const group =
    "collective" in own
      ? rows
          .slice(1)
          .map(detail)
          .find((one) => "process_group" in one)
      : undefined;
  const facts = Object.entries({ ...group, ...own }).filter(([key]) => key !== "sources" && key !== "operators");
  const { operators, sources } = own;
  return (
    <>
      {Array.isArray(operators) && operators.length ? (
        <>
          <h4>Made of</h4>
          <p class="made-of">{visible(operators.map(String).join(", "))}</p>
        </>
      ) : null}
      {Array.isArray(sources) && sources.length ? (
        <>
          <h4>From these lines</h4>
          {sources.slice(0, 50).map((source: unknown) => (
            <Source opened={opened} source={isObject(source) ? source : {}} />
          ))}
        </>
      ) : null}
      {facts.length ? (
        <table class="costs facts">
          <tbody>
            {facts.slice(0, MOST_FACTS).map(([key, value]) => (
              <tr>
                <th scope="row">{visible(key.replaceAll("_", " "))}</th>
                <td>{visible(typeof value === "object" ? JSON.stringify(value) : String(value))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
    </>
  );
}

function Source({ opened, source }: { opened: Opened; source: Record<string, unknown> }) {
  const file = String(source.file ?? "");
  const where = `${file}:${String(source.line)}`;
  return (
    <div class="source" title={visible(where)}>
      <code>{visible(`${opened.shortFile(file)}:${String(source.line)}`)}</code>
      <CopyButton text={where} label="file and line" />
      <code class="quiet">{visible(String(source.code ?? ""))}</code>
    </div>
  );
}
