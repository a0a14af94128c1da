// The memory page and the page on the capture itself.

function memoryPage(shared) {
  const { memory } = shared.data.report;
  if (!memory)
    return el(
      "section",
      { class: "page" },
      el("h2", {}, "Memory"),
      nothing("Tensor memory was not measured in this run."),
    );
  const facts = `${size(memory.allocated_bytes)} in ${number(memory.allocations)} allocations, ${size(memory.freed_bytes)} freed in ${number(memory.frees)}`;
  return el(
    "section",
    { class: "page" },
    el("div", { class: "toolbar" }, el("h2", {}, "Tensor memory"), el("span", { class: "quiet" }, facts)),
    memory.peaks.map((peak) =>
      card(
        `Peak ${size(peak.peak_bytes)} on ${peak.device}`,
        "call paths whose memory was alive at that moment; click to see one in the flame graph",
        el(
          "ol",
          { class: "paths" },
          peak.paths
            .slice(0, 40)
            .map((path) =>
              pathEntry(
                shared,
                path,
                "peak_live_bytes",
                { sum: peak.peak_bytes, unit: "bytes" },
                peak.paths[0].values.peak_live_bytes,
              ),
            ),
        ),
      ),
    ),
    memory.peaks.length ? null : nothing("No moment of largest use was recorded."),
  );
}

function capturePage(shared) {
  const { report } = shared.data;
  const { meta, cost } = report;
  const facts = [
    ["Program", meta.program],
    ["File", meta.file],
    ["Started", meta.started_at],
    ["Wall time", meta.wall_ns ? duration(meta.wall_ns) : ""],
    ["Host", meta.host],
    ["Python", meta.python],
    ["Frameworks", meta.frameworks.join(", ")],
    ["Asked for", meta.asked],
    ["Processes, threads", `${meta.processes}, ${meta.threads}`],
    ["Ended in order", meta.complete ? "yes" : "no: taken from the last segments"],
    ["Measured with", `leadline ${meta.leadline}`],
    ["Page made by", `leadline ${shared.data.version}`],
    [
      "Own cost",
      cost.percent === null
        ? "n/a: the file does not say"
        : `${cost.percent.toFixed(2)}% of the run, ${duration(cost.callbacks_ns)} in ${number(cost.events)} events, ${size(cost.held_bytes)} held`,
    ],
  ];
  const { nodes, share: limit } = shared.profile.pruned;
  if (nodes)
    facts.push([
      "Drawn together",
      `${number(nodes)} call paths below ${(100 * limit).toPrecision(2)}% of every metric`,
    ]);
  const losses = report.losses.map((loss) =>
    el(
      "li",
      { class: "loss" },
      el("span", { class: "chip warn" }, `${number(loss.count)} ×`),
      el(
        "div",
        {},
        el("code", {}, loss.kind),
        loss.process ? ` (${loss.process})` : "",
        el("div", {}, loss.detail || loss.meaning),
      ),
    ),
  );
  return el(
    "section",
    { class: "page" },
    el("h2", {}, "Capture quality"),
    card(
      "Not measured",
      "everything that was lost, and why",
      losses.length ? el("ul", { class: "losses" }, losses) : el("p", { class: "good" }, "Nothing was lost."),
    ),
    card(
      "This run",
      "",
      el(
        "table",
        { class: "facts" },
        el(
          "tbody",
          {},
          facts
            .filter(([, value]) => value)
            .map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value))),
        ),
      ),
    ),
    card(
      "What the numbers mean",
      "",
      el(
        "dl",
        { class: "meanings" },
        shared.profile.metrics.map((metric) => [
          el("dt", {}, shared.metricName(metric.name)),
          el("dd", {}, metric.doc),
        ]),
      ),
    ),
  );
}
