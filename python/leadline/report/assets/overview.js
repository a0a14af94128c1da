// The overview page: what the run was, where its time went, the hottest call paths, devices, phases, and what to type next.

const PARTS = [
  ["operators_ns", "operators", "operator"],
  ["python_ns", "Python", "python"],
  ["data_ns", "data loading", "region"],
  ["communication_ns", "communication", "collective"],
  ["compile_ns", "compile", "phase"],
  ["device_wait_ns", "waiting for a device", "api"],
  ["other_wait_ns", "waiting for others", "thread"],
  ["idle_ns", "idle", "idle"],
];

function overviewPage(shared) {
  const { report } = shared.data;
  const commands = report.next.filter((command) => !command.includes("--format html")); // this is that page
  return el(
    "section",
    { class: "page overview" },
    tiles(shared),
    report.time_split.length
      ? card(
          "Where the time went",
          "of each thread's wall time from its first event on; ~ marks an estimate",
          timeSplit(report),
        )
      : null,
    hotPaths(shared),
    deviceCards(report),
    phaseCard(report),
    commands.length
      ? card(
          "Next",
          "commands to type",
          el(
            "div",
            { class: "commands" },
            commands.map((command) => el("div", {}, el("code", {}, command), copyButton(command, "command"))),
          ),
        )
      : null,
  );
}

function tiles(shared) {
  const { report } = shared.data;
  const { meta } = report;
  const main = report.time_split.find((split) => split.main);
  const peak = report.memory?.peaks[0];
  const lost = report.losses.reduce((sum, loss) => sum + loss.count, 0);
  const made = [
    [
      "Wall time",
      meta.wall_ns ? duration(meta.wall_ns) : "n/a",
      meta.processes > 1 ? `${meta.processes} processes` : "",
    ],
  ];
  if (main) made.push(["In operators", share(main.operators_ns, main.wall_ns), "of the main thread"]);
  const measured = report.gpu?.devices.find((device) => device.busy);
  if (measured) made.push(["Device busy", share(measured.busy.busy_ns, meta.wall_ns), measured.name]);
  made.push([
    "Operator calls",
    number(report.totals.call_time?.count ?? 0),
    `${number(report.operators.length + report.hidden.operators)} operators`,
  ]);
  if (peak) made.push(["Peak tensor memory", size(peak.peak_bytes), peak.device]);
  made.push([
    "Own cost",
    report.cost.percent === null ? "n/a" : `${report.cost.percent.toFixed(1)}%`,
    report.cost.percent === null ? "the file does not say" : "of the run",
  ]);
  made.push([
    "Not measured",
    lost ? number(lost) : "nothing",
    lost ? `${report.losses.length} kind${report.losses.length === 1 ? "" : "s"}, see Capture` : "no losses",
    lost ? "warn" : "good",
  ]);
  return el(
    "div",
    { class: "tiles" },
    made.map(([title, value, note, mood]) =>
      el(
        "div",
        { class: `tile ${mood ?? ""}` },
        el("div", { class: "quiet" }, title),
        el("div", { class: "big" }, value),
        el("div", { class: "quiet small" }, note),
      ),
    ),
  );
}

// Where that part of a thread's time was spent.
function linesOf(split, key) {
  return split.places
    .filter((one) => `${one.part}_ns` === key)
    .map((one) => `${one.short}:${one.line} ${one.function} ${duration(one.time_ns)}`);
}

function timeSplit(report) {
  return el(
    "div",
    { class: "splits" },
    report.time_split.map((split) => [
      el(
        "div",
        { class: "split-name" },
        [split.process, split.main ? "main thread" : split.thread || "thread"].filter(Boolean).join(", "),
        el("span", { class: "quiet" }, ` ${duration(split.wall_ns)}`),
      ),
      el(
        "div",
        { class: "split-bar" },
        PARTS.map(([key, name, kind]) => {
          const part = split[key] / split.wall_ns;
          const guess = split.estimated.includes(key.replace("_ns", "")) ? "~" : "";
          const much = guess + share(split[key], split.wall_ns);
          return part > 0
            ? el(
                "span",
                {
                  class: `part ${kind} ${part > 0.07 ? "named" : ""}`,
                  width: `${100 * part}%`,
                  title: [`${name} ${duration(split[key])}, ${much}`, ...linesOf(split, key)].join("\n"),
                },
                part > 0.07 ? `${name} ${much}` : "",
              )
            : null;
        }),
      ),
    ]),
    el(
      "div",
      { class: "legend" },
      PARTS.filter(([key]) => report.time_split.some((split) => split[key] > 0)).map(([, name, kind]) =>
        el("span", {}, el("span", { class: `dot ${kind}` }), name),
      ),
    ),
  );
}

function hotPaths(shared) {
  const { report } = shared.data;
  const metric = report.path_metric;
  const total = report.totals[metric];
  const list = el("ol", { class: "paths" });
  const most = report.paths[0]?.values[metric] ?? 1;
  const show = (count) =>
    replaceChildren(
      list,
      report.paths.slice(0, count).map((path) => pathEntry(shared, path, metric, total, most)),
    );
  show(8);
  const rest = report.paths.length - 8;
  const more =
    rest > 0
      ? el(
          "button",
          {
            class: "plain",
            type: "button",
            onclick: () => {
              show(report.paths.length);
              more.remove();
            },
          },
          `Show ${number(rest)} more`,
        )
      : null;
  const note = report.focus
    ? `only paths through /${report.focus.pattern}/, ${share(report.focus.share, 1)} of all`
    : "your line, and what it ran; click to see it in the flame graph";
  return card(
    `Hottest call paths by ${shared.metricName(metric)}`,
    note,
    report.paths.length ? [list, more] : nothing("Nothing was measured on these paths."),
  );
}

function phaseCard(report) {
  if (!report.phases.length) return null;
  const key = report.totals.time ? "time_ns" : "gpu_time_ns";
  const total = report.phases.reduce((sum, phase) => sum + phase[key], 0);
  const most = Math.max(...report.phases.map((phase) => phase[key]), 1);
  return card(
    "Phases",
    "of the operators' time",
    el(
      "table",
      { class: "data compact" },
      el(
        "tbody",
        {},
        report.phases.map((phase) =>
          el(
            "tr",
            {},
            el("td", { class: "text" }, phase.name || "(outside)"),
            el("td", {}, bar([[phase[key] / most, "phase"]])),
            el("td", {}, duration(phase[key])),
            el("td", {}, share(phase[key], total)),
            el("td", { class: "quiet" }, `${number(phase.operators)} calls`),
          ),
        ),
      ),
    ),
  );
}

function deviceCards(report) {
  const { gpu } = report;
  if (!gpu) return null;
  const busy = (device) => (device.busy ? share(device.busy.busy_ns, report.meta.wall_ns) : "n/a");
  const idle = (device) =>
    device.busy ? duration(device.busy.idle_ns) : device.idle_ns ? duration(device.idle_ns) : "n/a";
  const heads = ["Device", "Kernels", "Time", "Copies", "Bytes", "Busy", "Idle", "Hidden communication"];
  const rows = gpu.devices.map((device) => [
    device.name,
    number(device.launches),
    duration(device.kernels_ns),
    duration(device.copies_ns),
    size(device.copy_bytes),
    busy(device),
    idle(device),
    device.busy ? share(device.busy.communication_hidden_ns, device.busy.communication_ns) : "n/a",
  ]);
  const most = Math.max(...gpu.kernels.map((row) => row.gpu_time_ns.sum), 1);
  const kind = (row) => (["copy", "collective"].includes(row.kind) ? row.kind : "kernel");
  return [
    card(
      "Devices",
      gpu.sync_ns ? `threads waited ${duration(gpu.sync_ns)} for them` : "",
      el(
        "div",
        { class: "scroll" },
        el(
          "table",
          { class: "data compact" },
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              heads.map((head, i) => el("th", { scope: "col", class: i ? "" : "text" }, head)),
            ),
          ),
          el(
            "tbody",
            {},
            rows.map((row) =>
              el(
                "tr",
                {},
                row.map((cell, i) => el("td", { class: i ? "" : "text" }, cell)),
              ),
            ),
          ),
        ),
      ),
    ),
    card(
      "On the device",
      `${duration(gpu.work_ns)} in all`,
      el(
        "table",
        { class: "data compact" },
        el(
          "tbody",
          {},
          gpu.kernels
            .slice(0, 12)
            .map((row) =>
              el(
                "tr",
                {},
                el("td", { class: "text" }, el("code", {}, row.name)),
                el("td", {}, bar([[row.gpu_time_ns.sum / most, kind(row)]])),
                el("td", {}, share(row.gpu_time_ns.sum, gpu.work_ns)),
                el("td", {}, duration(row.gpu_time_ns.sum)),
                el("td", { class: "quiet" }, `${number(row.count)} ×`),
              ),
            ),
        ),
      ),
    ),
  ];
}
