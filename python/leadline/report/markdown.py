"""The report as GitHub-flavoured Markdown, to paste into a pull request. Names are escaped: they never become markup
or HTML.
"""

from __future__ import annotations

from leadline.report import hardware_words, phrases
from leadline.report.findings.words import headline, label, line_text
from leadline.report.markup import code, escaped, table
from leadline.report.model import Report
from leadline.report.ranks_text import markdown_ranks
from leadline.report.serving_text import markdown_serving
from leadline.report.source import visible
from leadline.report.waits import WAIT_COLUMNS, wait_cells
from leadline.units import duration, in_unit, number, percent, share, size
from leadline.verdict.text import fix_text


def render_markdown(report: Report) -> str:
    """The whole report; ends with a newline."""
    parts = [
        _header(report),
        _verdict(report),
        markdown_serving(report),
        markdown_ranks(report.ranks),
        _time(report),
        _waits(report),
        _waiting(report),
    ]
    parts += [
        _paths(report),
        _functions(report),
        _counters(report),
        _gpu(report),
        _operators(report),
        _modules(report),
        _phases(report),
        _memory(report),
        _programs(report),
    ]
    parts += [_findings(report), _quality(report), _next(report)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _verdict(report: Report) -> str:
    verdict = report.verdict
    if verdict is None:
        return ""
    lines = [
        f"**{escaped(visible(verdict.sentence))}**",
        "",
        *(f"- {escaped(visible(one))}" for one in verdict.because),
    ]
    lines += [f"- try: {escaped(visible(fix_text(one, verdict.account)))}" for one in verdict.fixes]
    return "\n".join([*lines, "", f"Trust: {escaped(visible(verdict.trust))}."])


def _header(report: Report) -> str:
    lines = [f"## Leadline: {code(report.meta.program)}", "", escaped(phrases.environment_text(report.meta))]
    if not report.meta.complete:
        lines += ["", "**The program was killed or crashed; data after the last flush is missing.**"]
    if report.focus:
        found = f"{percent(report.focus.share)} of {phrases.metric_name(report.path_metric)}"
        lines += ["", f"Only paths through {code(report.focus.pattern)}: {found}."]
    return "\n".join(lines)


def _time(report: Report) -> str:
    if not report.splits:
        return ""
    parts = phrases.parts_shown(report.splits)
    rows = [
        [escaped(phrases.thread_text(split)), duration(split.wall_ns)]
        + [escaped(phrases.part_share(split, part)) for part in parts]
        for split in report.splits
    ]
    heads = ["thread", "wall", *(phrases.PART_NAMES[part] for part in parts)]
    note = escaped(phrases.SPLIT_NOTE[0].upper() + phrases.SPLIT_NOTE[1:]) + "."
    waits = [(phrases.thread_text(split), phrases.device_wait_text(split)) for split in report.splits]
    said = "".join(f"\n\n{escaped(f'{thread}: {words}')}." for thread, words in waits if words)
    return f"### Time\n\n{note}\n\n" + table(heads, rows) + said


def _waits(report: Report) -> str:
    if not report.waits:
        return ""
    note = "What the loop's threads did in the trace window, recorded by the Linux kernel."
    rows = [[*(escaped(cell) for cell in wait_cells(one)), escaped("; ".join(one.causes))] for one in report.waits]
    heads = [*(head for head, _ in WAIT_COLUMNS), "cause"]
    return f"### Waits\n\n{note}\n\n" + table(heads, rows)


def _paths(report: Report) -> str:
    total = report.path_total
    title = f"### Hottest call paths by {phrases.metric_name(report.path_metric)}\n\n"
    if total is None or not report.paths:
        return title + "no data"
    base = phrases.paths_base_text(report)
    title += f"{base[0].upper()}{base[1:]}.\n\n"
    rows = []
    for path in report.paths:
        value = path.values.get(report.path_metric, 0)
        where = code(phrases.heading(path)) + "<br>" + code(phrases.below_text(path))
        rows.append(
            [where, share(value, total.sum), in_unit(value, total.unit), number(path.calls) if path.calls else ""]
        )
    return title + table(["path", "share", phrases.metric_name(report.path_metric), "calls"], rows)


def _gpu(report: Report) -> str:
    gpu = report.gpu
    if gpu is None:
        return ""
    rows = []
    for device in gpu.devices:
        cells = [escaped(device.name), number(device.launches), duration(device.kernels_ns), duration(device.copies_ns)]
        rows.append([*cells, size(device.copy_bytes), *phrases.busy_texts(device, report.meta.wall_ns)])
    heads = ["device", "kernels", "time", "copies", "bytes", "busy", "idle", "hidden communication"]
    parts = ["### Devices", table(heads, rows)] if rows else ["### Devices"]
    if gpu.sync_ns:
        parts.append(f"Threads waited {duration(gpu.sync_ns)} for devices.")
    kernels = []
    for row in gpu.kernels:
        cells = [code(phrases.name_text(row.name)), number(row.count), duration(row.gpu_time.sum)]
        kernels.append([*cells, share(row.gpu_time.sum, gpu.work_ns), duration(row.gpu_time.mean)])
    if kernels:
        parts.append(table(["on the device", "count", "total", "share", "mean"], kernels))
    if gpu.counters:
        heads, lines = hardware_words.hardware_table(gpu.counters)
        note = hardware_words.NOTE[0].upper() + hardware_words.NOTE[1:]
        parts.append(f"{note}:\n\n" + table(heads, [[code(line[0]), *line[1:]] for line in lines]))
    if gpu.links:
        heads, lines = hardware_words.links_table(gpu.links)
        parts.append(table(heads, [[escaped(line[0]), *line[1:]] for line in lines]))
    if gpu.scratch:
        heads, lines = hardware_words.scratch_table(gpu.scratch)
        parts.append(table(heads, [[code(line[0]), *line[1:]] for line in lines]))
    return "\n\n".join(parts)


def _functions(report: Report) -> str:
    if not report.functions:
        return ""
    whole = report.totals["cpu_sample"].sum
    rows = []
    for row in report.functions:
        times = [text for ns in (row.self_ns, row.total_ns) for text in (duration(ns), share(ns, whole))]
        rows.append([code(phrases.function_text(row)), escaped(phrases.function_place(row)), *times])
    note = escaped(phrases.samples_text(report)) + ".\n\n"
    return "### CPU time by function\n\n" + note + table(["function", "at", "self", "", "total", ""], rows)


def _waiting(report: Report) -> str:
    if not report.waiting:
        return ""
    states = phrases.waits_shown(report.waiting)
    heads = ["thread", "wall", "running", *(phrases.WAIT_NAMES[state] for state in states), "most on"]
    rows = []
    for one in report.waiting:
        values = (one.ran_ns, *(one.states_ns.get(state, 0) for state in states))
        cells = [share(value, one.wall_ns) if value else "" for value in values]
        lines = phrases.waiting_lines(one)
        rows.append([escaped(phrases.thread_text(one)), duration(one.wall_ns), *cells, code(lines) if lines else ""])
    note = phrases.WAITING_NOTE[0].upper() + phrases.WAITING_NOTE[1:]
    hidden = phrases.waiting_hidden(report.waiting_hidden)
    return f"### Waiting\n\n{note}.\n\n" + table(heads, rows) + (f"\n\n{hidden}." if hidden else "")


def _counters(report: Report) -> str:
    if not report.counters:
        return ""
    rows = [
        [*map(escaped, phrases.counter_cells(one)[:3]), code(phrases.counter_cells(one)[3])] for one in report.counters
    ]
    note = "; ".join(filter(None, [phrases.COUNTERS_NOTE, phrases.instructions_text(report.counters)]))
    note = note[0].upper() + note[1:]
    return f"### Counters\n\n{note}.\n\n" + table(["counter", "total", "per CPU second", "most on"], rows)


def _operators(report: Report) -> str:
    if not report.operators:
        return ""
    rows = []
    for row in report.operators:
        t = row.time
        rows.append(
            [
                code(phrases.name_text(row.name)),
                number(row.count),
                *(duration(v) for v in (t.self, t.sum, t.mean, t.std)),
                size(row.alloc_bytes),
            ]
        )
    return "### Operators\n\n" + table(["operator", "calls", "self", "total", "mean", "std", "allocated"], rows)


def _modules(report: Report) -> str:
    if not report.modules:
        return ""
    rows = [
        [code(phrases.name_text(row.name)) + (f" {escaped(row.class_name)}" if row.class_name else "")]
        + [duration(v) for v in (row.time_ns, row.forward_ns, row.backward_ns, row.self_ns)]
        for row in report.modules
    ]
    return "### Modules\n\n" + table(["module", "total", "forward", "backward", "self"], rows)


def _phases(report: Report) -> str:
    if not report.phases:
        return ""
    total = report.totals.get("time")
    rows = [
        [
            escaped(row.name or "(outside)"),
            duration(row.time_ns),
            share(row.time_ns, total.sum if total else 0),
            number(row.operators),
        ]
        for row in report.phases
    ]
    return "### Phases\n\n" + table(["phase", "time", "share", "operators"], rows)


def _memory(report: Report) -> str:
    if report.memory is None or not report.memory.peaks:
        return ""
    parts = ["### Tensor memory", *(escaped(phrases.reserved(one)) for one in report.memory.allocators)]
    for peak in report.memory.peaks:
        rows = [
            [
                code(phrases.place_text(path.place)) + "<br>" + code(phrases.below_text(path)),
                share(path.values["peak_live_bytes"], peak.peak_bytes),
                size(path.values["peak_live_bytes"]),
            ]
            for path in peak.holders
        ]
        parts.append(
            f"Peak {size(peak.peak_bytes)} on {escaped(peak.device)}; alive at that moment:\n\n"
            + table(["path", "share", "bytes"], rows)
        )
    return "\n\n".join(parts)


def _programs(report: Report) -> str:
    parts = ["### Memory inside compiled programs"]
    for program in report.programs:
        rows = [
            [
                code(phrases.place_text(held.place)) if held.place else "",
                code(held.operation),
                share(held.bytes, program.temporaries_bytes),
                size(held.bytes),
            ]
            for held in program.buffers
        ]
        told = escaped(phrases.program_memory(program).strip())
        parts.append(f"{told}\n\n" + table(["line", "operation", "share", "bytes"], rows))
    return "\n\n".join(parts) if report.programs else ""


def _findings(report: Report) -> str:
    if report.findings is None:
        return ""
    lines = [
        f"- {label(one)}: {escaped(one.title)}" + (f" ({escaped(line_text(one.lines[0]))})" if one.lines else "")
        for one in report.findings
    ]
    return "\n".join([f"### Findings: {escaped(headline(report.findings))}", "", *lines])


def _quality(report: Report) -> str:
    lines = ["### Capture quality", "", f"- {phrases.cost_text(report.cost)}"]
    lines += [f"- {escaped(sentence)}" for sentence in report.meta.estimates]
    lines += [f"- {escaped(phrases.loss_text(loss))}" for loss in report.losses] or ["- nothing lost"]
    return "\n".join(lines)


def _next(report: Report) -> str:
    commands = "\n".join(visible(command) for command in report.next_commands)
    return f"### Next\n\n```sh\n{commands}\n```" if commands else ""
