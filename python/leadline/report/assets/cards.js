// Pieces that several pages are made of.

function card(title, note, ...content) {
  return el(
    "section",
    { class: "card" },
    el("header", {}, el("h2", {}, title), note ? el("span", { class: "quiet" }, note) : null),
    content,
  );
}

// One hot path or holder of memory: a button that opens it in the flame graph.
function pathEntry(shared, path, metric, total, most) {
  const value = path.values[metric] ?? 0;
  const steps = [
    path.module && `${path.module}${path.modules > 1 ? ` · ${path.modules} modules` : ""}`,
    path.module && path.phase === "forward" ? "" : path.phase,
    operatorName(path.operator),
  ];
  const kinds = ["module", "phase", "operator"];
  return el(
    "li",
    {},
    el(
      "button",
      { class: "path", type: "button", onclick: () => shared.focus(path.node, metric) },
      el("span", { class: "path-share" }, share(value, total?.sum ?? 0)),
      el(
        "span",
        { class: "path-what" },
        el(
          "span",
          { class: "place" },
          placeText(path.place),
          path.place?.function ? el("span", { class: "quiet" }, ` ${path.place.function}`) : null,
        ),
        el(
          "span",
          { class: "steps" },
          steps.map((step, i) =>
            step
              ? el(
                  "span",
                  { class: "chip kind", title: i === 0 ? path.module_class : kinds[i] },
                  el("span", { class: `dot ${kinds[i]}` }),
                  step,
                )
              : null,
          ),
          path.calls
            ? el("span", { class: "quiet small" }, `${number(path.calls)} call${path.calls === 1 ? "" : "s"}`)
            : null,
        ),
      ),
      el("span", { class: "path-value" }, inUnit(value, total?.unit ?? "1")),
      el("span", { class: "path-bar" }, bar([[value / most, path.phase === "backward" ? "phase" : "operator"]])),
    ),
  );
}

function placeText(place) {
  if (!place) return "(no Python line)";
  return place.line > 0 ? `${place.short}:${place.line}` : place.short;
}
