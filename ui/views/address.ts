// The address of what is looked at: `#flame?metric=time&path=…`, `#tables/kernels`, `#source?file=…&line=12`.

import { TABLE_NAMES, type TableName } from "./tables/page";

/** `#flame?metric=time&row=12`, `#tables/kernels`. */
export function placeOf(hash: string): { page: string; table: TableName; parameters: URLSearchParams } {
  const [path, query] = hash.slice(1).split("?", 2);
  const [page, part] = path.split("/", 2);
  const table = TABLE_NAMES.find((name) => name === part) ?? "operators";
  const known = page === "time" ? "timeline" : page; // as links of before say it
  return { page: known || "overview", table, parameters: new URLSearchParams(query ?? "") };
}

/** A new place for Back and Forward; `same`: the place stays, only its address says more. Some hosts have no history. */
export function went(hash: string, same = false): void {
  try {
    if (same) history.replaceState(null, "", hash);
    else history.pushState(null, "", hash);
  } catch {
    // the page works without an address
  }
}

export function sourceLink(file: string, line: number): string {
  return `#source?${new URLSearchParams({ file, line: String(line) })}`;
}

export function sourceOf(parameters: URLSearchParams): { file: string; line: number } {
  const line = Number(parameters.get("line") ?? 0);
  return { file: parameters.get("file") ?? "", line: Number.isInteger(line) && line > 0 ? line : 0 };
}
