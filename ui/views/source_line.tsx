// A place in the source with what can be done about it: copy it, open it in the editor or here.

import { visible } from "../model/units";
import type { Opened } from "./opened";
import { CopyButton } from "./widgets";

export function SourceLine({ opened, file, line }: { opened: Opened; file: string; line: number }) {
  const where = line > 0 ? `${file}:${line}` : file;
  const short = visible(opened.shortFile(file));
  const { host, go } = opened;
  return (
    <div class="source" title={visible(where)}>
      <code>{line > 0 ? `${short}:${line}` : short}</code>
      <CopyButton text={where} label="file and line" />
      {host.openFile && line > 0 ? (
        <button type="button" class="copy-button" onClick={() => host.openFile?.(file, line)}>
          open
        </button>
      ) : line > 0 ? (
        <button type="button" class="copy-button" onClick={() => go.source(file, line)}>
          source
        </button>
      ) : null}
    </div>
  );
}
