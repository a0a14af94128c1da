"""The words that text, markdown and the summary share: one way to name a path, a module, a loss. Everything is one
visible line.
"""

from __future__ import annotations

from collections.abc import Sequence

from leadline.analysis.origin import is_library
from leadline.names import cut
from leadline.report.model import (
    AllocatorPools,
    CompiledProgram,
    Cost,
    Counter,
    Device,
    FunctionTime,
    HotPath,
    LossRow,
    Meta,
    Place,
    Report,
    ThreadWaiting,
    TimeSplit,
)
from leadline.report.source import visible
from leadline.units import duration, in_unit, number, percent, share, size

STEP = " › "
CALLED_FROM = " ← "
UNNAMED = "(unnamed)"

METRIC_NAMES = {
    "time": "time",
    "call_time": "call time",
    "gpu_time": "GPU time",
    "alloc_bytes": "allocated memory",
    "free_bytes": "freed memory",
    "peak_live_bytes": "memory at the peak",
    "sync_time": "waiting for the device",
    "sync_running_time": "running while waiting for the device",
    "gpu_idle_time": "device idle time",
    "copy_bytes": "bytes copied",
    "set_bytes": "bytes set",
    "device_alloc_bytes": "memory taken from the driver",
    "device_free_bytes": "memory given back to the driver",
    "cpu_sample": "CPU time (samples)",
    "wait": "waiting (samples)",
    "count": "calls",
}


def threads_hidden(count: int, ran_ns: int) -> str:
    """What the table of threads leaves out; empty where that is nothing."""
    if not count:
        return ""
    which = "1 more thread" if count == 1 else f"{number(count)} more threads"
    return f"{which} ran for {duration(ran_ns)} in all"


def operators_note(sort: str) -> str:
    """How the table of operators is ordered. Its columns are wall time, whatever orders it."""
    if sort == "time":
        return "by self time"
    sampled = "; columns are wall time" if sort in ("cpu_sample", "wait") else ""
    return f"by {metric_name(sort)}{sampled}"


def name_text(name: str) -> str:
    """A name as one visible line that is never empty."""
    return visible(name) or UNNAMED


def metric_name(metric: str) -> str:
    return METRIC_NAMES.get(metric, metric.replace("_", " "))


def place_text(place: Place | None) -> str:
    """`model.py:30 Block.forward`."""
    if place is None:
        return "(no Python line)"
    where = f"{place.short}:{place.line}" if place.line else place.short
    return visible(f"{where} {place.function}".rstrip())


def heading(path: HotPath) -> str:
    """The line of a path; of what ran without Python, module or operator the thread."""
    if path.place is None and not (path.module or path.operator or path.phase):
        thread = next((frame.name for frame in path.frames if frame.kind == "thread"), "")
        if thread:
            return visible(f"(no Python, thread {thread})")
    return place_text(path.place)


def reserved(allocator: AllocatorPools) -> str:
    """`8.00 GiB reserved on H100, 6.00 GiB in use at the end; the largest of 2.00 GiB free is a block of 512 MiB`."""
    whole = allocator.pools[0]
    text = f"{size(whole.reserved_bytes)} reserved on {visible(allocator.device)}"
    text += f", {size(whole.in_use_bytes)} in use at the end"
    if whole.largest_free_bytes is not None and whole.free_bytes:
        text += f"; the largest of {size(whole.free_bytes)} free is a block of {size(whole.largest_free_bytes)}"
    return text


def program_memory(program: CompiledProgram) -> str:
    """`jit(train_step): 512 KiB of temporaries (448 KiB arguments, 192 KiB results), at their peak:`."""
    which = "at their peak" if program.at_peak else "the largest of them"
    return (
        f"  {visible(program.name)}: {size(program.temporaries_bytes)} of temporaries "
        f"({size(program.arguments_bytes)} arguments, {size(program.results_bytes)} results), {which}:"
    )


def end_of_name(name: str, most: int, between: str = ".") -> str:
    """The end of a module's name in `most` characters, which says more than its beginning: `…h.*.mlp.c_fc`. With `::`
    of a C++ function's, and no other's: `…mul_kernel::{lambda}`."""
    if len(name) <= most or between not in name:
        return name
    end = name[len(name) - max(most - 1, 1) :]
    return "…" + (end[end.index(between) + len(between) :] if between in end[:-1] else end)


_LEAST_OF_NAME = 16
_LEAST_OF_FUNCTION = 32


def below_text(path: HotPath, notes: bool = True, width: int = 0) -> str:
    """What lies below the user's line: `transformer.h.*.mlp (MLP, 12 modules) › backward › aten::mm`; may be empty.

    `notes`: with the module's class and the number of modules merged; `width`: characters that there are, for which
    those, the beginnings of names and then the middle are given up, and 0 for any number."""
    module, inner = path.module, path.inner
    text = _below(path, module, inner, notes)
    if width and len(text) > width:
        notes, text = False, _below(path, module, inner, False)
    if width and len(text) > width and inner:
        inner = end_of_name(inner, max(len(inner) - (len(text) - width), _LEAST_OF_FUNCTION), "::")
        text = _below(path, module, inner, notes)
    if width and len(text) > width and module:
        module = end_of_name(module, max(len(module) - (len(text) - width), _LEAST_OF_NAME))
        text = _below(path, module, inner, notes)
    return cut(text, width) if width >= _LEAST_OF_FUNCTION else text


def _below(path: HotPath, module: str, inner: str, notes: bool) -> str:
    parts = []
    if module:
        about = [path.module_class] if notes and path.module_class else []
        if notes and path.modules > 1:
            about.append(f"{path.modules} modules")
        parts.append(module + (f" ({', '.join(about)})" if about else ""))
    phase = "" if path.module and path.phase == "forward" else path.phase  # a module's forward is what one expects
    parts += [part for part in (phase, operator_text(path.operator), inner) if part]
    return visible(STEP.join(parts))


_ENGINE = "autograd::engine::evaluate_function: "


def operator_text(operator: str, in_table: bool = False) -> str:
    """Without the name of autograd's engine, which says nothing that the phase does not; in a table, where the operator
    of the same name has a row too, with a short mark instead."""
    if not operator.startswith(_ENGINE):
        return operator
    return operator.removeprefix(_ENGINE) + (" (engine)" if in_table else "")


def calls_text(path: HotPath) -> str:
    if not path.calls:
        return ""
    return f"{number(path.calls)} call{'s' if path.calls != 1 else ''}"


def callers_text(path: HotPath) -> str:
    """The user's frames above the line, nearest first: `train.py:41 step ← train.py:88 main and 2 other callers`, or
    nothing."""
    above = []
    for frame in path.frames:
        if frame.kind != "python" or is_library(frame.file):
            continue
        if path.place and (frame.file, frame.line) == (path.place.file, path.place.line):
            break
        place = f"{frame.short}:{frame.line}"
        above.append(place if frame.name == "<module>" else f"{place} {frame.name}")
    others = path.callers - 1
    more = f" and {others:,} other caller{'s' * (others != 1)}" if others and above else ""
    return visible(CALLED_FROM.join(reversed(above))) + more


PART_NAMES = {
    "operators": "operators",
    "python": "Python",
    "data": "data loading",
    "communication": "communication",
    "compile": "compile",
    "device_wait": "waiting for a device",
    "no_work": "no work",
    "other_wait": "waiting for others",
    "idle": "idle",
}


def split_parts(split: TimeSplit, always: bool = False) -> list[tuple[str, int]]:
    """(part, ns) of a thread's time in the order they are always shown; without `always` only those there are."""
    values = [(part, int(getattr(split, f"{part}_ns"))) for part in PART_NAMES]
    return [(part, value) for part, value in values if value or always]


def parts_shown(splits: Sequence[TimeSplit]) -> list[str]:
    """Parts that a table of these threads has columns for: operators, Python, idle and whatever else occurred."""
    usual = ("operators", "python", "idle")
    return [part for part in PART_NAMES if part in usual or any(getattr(split, f"{part}_ns") for split in splits)]


def split_text(split: TimeSplit) -> str:
    """`operators 71.2%, Python ~18.0%, data loading 8.1%, idle ~2.7%`; `~` marks estimates."""
    return ", ".join(f"{PART_NAMES[part]} {part_share(split, part)}" for part, _ in split_parts(split))


def part_share(split: TimeSplit, part: str) -> str:
    """`~18.0%`: the share of a part of the wall time, marked where it is an estimate."""
    value = int(getattr(split, f"{part}_ns"))
    return ("~" if part in split.estimated and value else "") + share(value, split.wall_ns)


def paths_base_text(report: Report) -> str:
    """The same for the paths: `shares of 5.00 ms in all, without imports (3.1 s)`."""
    total = report.path_total
    if total is None:
        return ""
    left = (("imports", report.imports_ns), ("start-up", report.start_up_ns), ("no work", report.no_work_ns))
    without = " and ".join(f"{what} ({duration(ns)})" for what, ns in left if ns)
    without = f", without {without}" if without else ""
    return f"shares of {in_unit(total.sum, total.unit)} in all{without}"


def base_text(report: Report, metric: str) -> str:
    """`shares of 5.00 ms in all`: what shares by that metric are shares of."""
    total = report.totals.get(metric)
    return f"shares of {in_unit(total.sum, total.unit)} in all" if total else ""


def samples_text(report: Report) -> str:
    """`412 samples of CPU time, 4.16 s in all`."""
    total = report.totals["cpu_sample"]
    return f"{number(total.count)} samples of CPU time, {duration(total.sum)} in all"


WAIT_NAMES = {
    "gil": "GIL",
    "lock": "lock",
    "io": "I/O",
    "sleep": "sleep",
    "child": "child",
    "device": "device",
    "core": "core",
    "network": "network",
    "other": "other",
}
WAITING_NOTE = "shares of each thread's wall time; places are samples, amounts are measured"
COUNTERS_NOTE = "by the lines of CPU samples"


def waits_shown(waiting: Sequence[ThreadWaiting]) -> list[str]:
    """States that a table of these threads has columns for."""
    return [state for state in WAIT_NAMES if any(one.states_ns.get(state) for one in waiting)]


def waiting_lines(one: ThreadWaiting) -> str:
    """`lock 2.30 s train.py:12 load, I/O 1.10 s train.py:20 read`: the lines that matter."""
    worth = [line for line in one.lines if line.ns >= _WORTH_A_PLACE * one.wall_ns]
    return visible(
        ", ".join(f"{WAIT_NAMES[line.state]} {duration(line.ns)} {place_text(line.place)}" for line in worth)
    )


def waiting_hidden(count: int) -> str:
    """What is said of threads that are left out; empty where there are none."""
    if not count:
        return ""
    return "1 more thread only waits" if count == 1 else f"{number(count)} more threads only wait"


def counter_cells(counter: Counter) -> list[str]:
    """Name, sum and rate, and the line with most of it."""
    rate = "n/a" if counter.per_cpu_second is None else number(round(counter.per_cpu_second))
    most = [f"{place_text(line.place)} {share(line.count, counter.total)}" for line in counter.lines[:1]]
    return [counter.name, number(counter.total), rate, *(most or [""])]


def instructions_text(counters: Sequence[Counter]) -> str:
    """`1.73 instructions per cycle`, where both were counted."""
    sums = {one.metric: one.total for one in counters}
    cycles, instructions = sums.get("cycles", 0), sums.get("instructions", 0)
    return f"{instructions / cycles:.2f} instructions per cycle" if cycles and instructions else ""


def function_text(row: FunctionTime) -> str:
    """`Parser.parse`; of a thread what nothing else explains."""
    if row.kind == "thread":
        return visible(f"(thread {row.name or UNNAMED})")
    return name_text(operator_text(row.name))


def function_place(row: FunctionTime) -> str:
    """`parser.py:41`, the line with most of its own time; empty where there is no source."""
    return visible(f"{row.short}:{row.line}" if row.line else row.short)


SPLIT_NOTE = "shares of each thread's wall time from its first event on; ~ marks an estimate"
_WORTH_A_PLACE = 0.05  # of the thread's wall time


def split_places(split: TimeSplit) -> list[tuple[str, str]]:
    """(part, lines): where each part that matters happened; operators' lines are the hottest call paths themselves."""
    made = []
    for part, value in split_parts(split):
        if part == "operators" or value < _WORTH_A_PLACE * split.wall_ns:
            continue
        lines = [f"{place_text(one.place)} {duration(one.time_ns)}" for one in split.places if one.part == part]
        found = sum(one.time_ns for one in split.places if one.part == part)
        if 2 * found >= value:  # a tenth of a part's time on one line says nothing about the rest
            made.append((PART_NAMES[part], ", ".join(lines)))
    return made


def device_wait_text(split: TimeSplit) -> str:
    """How the thread waited for a device, `of 1.50 s of waiting for a device it spun on a core for 1.48 s`; empty where
    that does not matter or was not measured."""
    ran, waited = split.device_wait_running_ns, split.device_wait_ns
    if ran is None or waited < _WORTH_A_PLACE * split.wall_ns:
        return ""
    how = f"spun on a core for {duration(ran)}" if 2 * ran >= waited else f"slept for {duration(waited - ran)}"
    return f"of {duration(waited)} of waiting for a device it {how}"


def thread_text(split: TimeSplit | ThreadWaiting) -> str:
    thread = "main thread" if split.main else (split.thread or "thread")
    return visible(f"{split.process}, {thread}" if split.process else thread)


def busy_texts(device: Device, wall_ns: int) -> list[str]:
    """Busy share of the run, idle time, communication hidden behind kernels; `n/a` where the file does not say."""
    busy = device.busy
    if busy is None:
        return ["n/a", duration(device.idle_ns) if device.idle_ns else "n/a", "n/a"]
    return [
        share(busy.busy_ns, wall_ns),
        duration(busy.idle_ns),
        share(busy.communication_hidden_ns, busy.communication_ns),
    ]


def _pauses(meta: Meta) -> str:
    return f" ({duration(meta.paused_ns)} of it paused and not in any figure)" if meta.paused_ns else ""


def environment_text(meta: Meta) -> str:
    """`2026-11-21T05:34:00Z · 12.3 s · Python 3.11.7 · torch 2.13.0 · host`; unknown parts are left out."""
    parts = [
        meta.started_at,
        duration(meta.wall_ns) + _pauses(meta) if meta.wall_ns else "",
        f"Python {meta.python}" if meta.python else "",
        *meta.frameworks,
        meta.host,
        f"{meta.processes} processes" if meta.processes > 1 else "",
    ]
    return visible(" · ".join(part for part in parts if part))


def cost_text(cost: Cost) -> str:
    """`overhead about 1.2%`, or why there is no such number."""
    if cost.percent is None:
        return "overhead not known: the file does not state it"
    return f"overhead {'' if cost.measured else 'about '}{percent(cost.percent / 100)}"


def loss_text(loss: LossRow) -> str:
    """`12 × free_unknown: memory freed that was allocated before measuring began`; the file's own sentence where it
    has one.
    """
    where = f" ({loss.process})" if loss.process else ""
    counted = f"{number(loss.count)} × " if loss.count else ""  # a remark counts nothing
    return visible(f"{counted}{loss.kind}{where}: {loss.detail or loss.meaning}")


def losses_headline(report: Report) -> str:
    """One line on what was lost: `nothing lost`, or the kinds by count."""
    if not report.losses:
        return "nothing lost"
    by_kind: dict[str, int] = {}
    for loss in report.losses:
        by_kind[loss.kind] = by_kind.get(loss.kind, 0) + loss.count
    kinds = ", ".join(
        f"{number(count)} {kind}" if count else kind
        for kind, count in sorted(by_kind.items(), key=lambda item: -item[1])
    )
    return f"not everything was measured: {kinds}"
