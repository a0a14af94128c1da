// What a frame is beyond its name: the operators and lines that a generated kernel was fused from, a collective's
// process group, a copy's direction. Comes from the file's `detail`, which may be anything.

const MOST_FACTS = 12;

function detailOf(text) {
  try {
    const detail = JSON.parse(text);
    return detail !== null && typeof detail === "object" && !Array.isArray(detail) ? detail : {};
  } catch {
    return {};
  }
}

// page: {shortFile(file)}; details: those of the frame and of the frames above it, nearest first.
function originOf(page, details) {
  const [own, ...above] = details;
  if (!own) return null;
  const group = "collective" in own ? above.find((detail) => "process_group" in detail) : null;
  const facts = Object.entries({ ...group, ...own }).filter(([key]) => key !== "sources" && key !== "operators");
  return [
    Array.isArray(own.operators) && own.operators.length
      ? [el("h4", {}, "Made of"), el("p", { class: "made-of" }, own.operators.map(String).join(", "))]
      : null,
    Array.isArray(own.sources) && own.sources.length
      ? [el("h4", {}, "From these lines"), own.sources.map((source) => sourceLine(page, source ?? {}))]
      : null,
    facts.length ? el("table", { class: "costs facts" }, el("tbody", {}, facts.slice(0, MOST_FACTS).map(fact))) : null,
  ];
}

function sourceLine(page, source) {
  const file = String(source.file ?? "");
  const where = `${file}:${source.line}`;
  return el(
    "div",
    { class: "source", title: where },
    el("code", {}, `${page.shortFile(file)}:${source.line}`),
    copyButton(where, "file and line"),
    el("code", { class: "quiet" }, String(source.code ?? "")),
  );
}

function fact([key, value]) {
  const shown = typeof value === "object" ? JSON.stringify(value) : String(value);
  return el("tr", {}, el("th", { scope: "row" }, key.replaceAll("_", " ")), el("td", {}, shown));
}
