"""The about fifteen lines that `leadline run` ends with: time split, five hottest paths, memory, capture quality,
next commands.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from leadline._dataclass import replace
from leadline.analysis.analyze import quiet
from leadline.analysis.findings import Failed, Finding, Findings
from leadline.profiles import Profile
from leadline.report import phrases
from leadline.report.build import build_report
from leadline.report.encoding import encodable, for_stream
from leadline.report.model import Report, ReportOptions, TimeSplit
from leadline.report.source import visible
from leadline.report.tools import tool_results, tools_text
from leadline.units import duration, in_unit, share, size
from leadline.verdict.judge import quietly
from leadline.verdict.text import as_lines, head

_PATHS = 5
_FINDINGS = 2
_TOOL_ROWS = 10
_INDENT = " " * 10


def print_summary(path: str, stream: TextIO | None = None) -> None:
    """Read the profile at `path` and print its summary on `stream` (stderr by default).

    Raises leadline.profiles.ProfileFileError when the file cannot be read.
    """
    from leadline.profiles import open_profile

    target = sys.stderr if stream is None else stream
    profile = open_profile(path)
    report = build_report(profile, ReportOptions(top=_PATHS), file=_as_typed(path))
    width, colour = for_stream(target)
    found = all_findings(profile)
    report = replace(report, verdict=quietly(profile, found))
    shown = found.findings[:_FINDINGS] if found is not None and report.verdict is None else ()
    target.write(encodable(render_summary(report, width, colour, shown), target))
    for broken in found.failed if found is not None else (Failed("(all of them)", "`leadline analyze` says why"),):
        target.write(encodable(f"leadline: the rule {broken.rule} failed: {visible(broken.error)}\n", target))
    if results := tool_results(profile):
        text = tools_text(results, width, _TOOL_ROWS)
        target.write(encodable(text, target))


def _as_typed(path: str) -> str:
    """`path` as one would type it here: relative where it lies below the working directory."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return path


def summarize(profile: Profile, file: str, width: int = 100) -> str:
    """The summary of a profile already open, without colour."""
    return render_summary(build_report(profile, ReportOptions(top=_PATHS), file=file), width)


def best_findings(profile: Profile, most: int = _FINDINGS) -> tuple[Finding, ...]:
    """The findings that matter most, by default two, without simulating: the program has ended and somebody waits."""
    found = all_findings(profile)
    return found.findings[:most] if found is not None else ()


def all_findings(profile: Profile) -> Findings | None:
    """What the rules say, without simulating; None where a rule failed, of which `leadline analyze` says what."""
    try:
        return quiet(profile, simulate=False)
    except Exception:  # a summary without findings is better than none
        return None


def render_summary(report: Report, width: int = 100, colour: bool = False, findings: Sequence[Finding] = ()) -> str:
    """The lines, each cut to `width` but for the commands, which must stay whole to be copied."""
    lines = [_first_line(report), *_verdict_lines(report, width)]
    lines += [_line("time", phrases.split_text(split), _thread_note(report, i)) for i, split in _main_splits(report)]
    lines += _gpu_lines(report)
    lines += [_line("waits" if i == 0 else "", visible(one.text)) for i, one in enumerate(report.waits[:2])]
    lines += _path_lines(report, width)
    lines += _memory_lines(report)
    lines += [_line("" if i else "findings", finding_text(one)) for i, one in enumerate(findings)]
    lines.append(_line("quality", f"{phrases.losses_headline(report)}; {phrases.cost_text(report.cost)}"))
    lines += [_line("", visible(sentence)) for sentence in report.meta.estimates]
    cut = [_styled(_cut(line, width), colour) for line in lines]
    commands = [("next      " if i == 0 else _INDENT) + visible(c) for i, c in enumerate(report.next_commands)]
    return "\n".join(cut + [_styled(command, colour) for command in commands]) + "\n"


def _verdict_lines(report: Report, width: int) -> list[str]:
    if report.verdict is None:
        return []
    lines = [visible(one) for one in as_lines(report.verdict, width)]
    steps = head(report.verdict)
    return [steps, *lines] if steps else lines


def _line(label: str, text: str, note: str = "") -> str:
    return f"{label:<10}{text}" + (f"  ({note})" if note else "")


def _first_line(report: Report) -> str:
    meta = report.meta
    wall = f"  {duration(meta.wall_ns)}" if meta.wall_ns else ""
    end = "" if meta.complete else "  (killed or crashed: data after the last flush is missing)"
    return visible(f"leadline  {meta.program}{wall}{end}  >  {meta.file}")


def finding_text(one: Finding) -> str:
    """`The loop waits for data 31 % of the step  train.py:12`."""
    where = f"  {one.lines[0].short}:{one.lines[0].line}" if one.lines else ""
    return visible(one.title + where)


def _main_splits(report: Report) -> list[tuple[int, TimeSplit]]:
    """The main threads, and where one is alone the other thread with most operators; of many ranks only the first and
    the one with most idle time, to stay within fifteen lines."""
    mains = [(i, split) for i, split in enumerate(report.splits) if split.main]
    if len(mains) == 1:
        others = [(i, split) for i, split in enumerate(report.splits) if not split.main and split.operators_ns]
        return mains + sorted(others, key=lambda item: -item[1].operators_ns)[:1]
    if len(mains) <= 2:
        return mains
    slowest = max(mains[1:], key=lambda item: item[1].idle_ns)
    return [mains[0], slowest]


def _thread_note(report: Report, index: int) -> str:
    split = report.splits[index]
    return split.process if split.main else visible(split.thread or "another thread")


def _gpu_lines(report: Report) -> list[str]:
    """One line for each of the first two devices."""
    if report.gpu is None:
        return []
    lines = []
    for device in report.gpu.devices[:2]:
        busy, idle, _ = phrases.busy_texts(device, report.meta.wall_ns)
        text = f"{visible(device.name)}: busy {busy}, idle {idle}, kernels {duration(device.kernels_ns)}"
        lines.append(_line("device", f"{text}, copies {duration(device.copies_ns)}"))
    return lines


def _path_lines(report: Report, width: int) -> list[str]:
    total = report.path_total
    if total is None or not report.paths:
        return [_line("hottest", "no data: no operator or region was measured")]
    lines = []
    for i, path in enumerate(report.paths[:_PATHS]):
        value = path.values.get(report.path_metric, 0)
        what = f"{share(value, total.sum):>6}  {in_unit(value, total.unit):>8}  {phrases.heading(path)}"
        below = phrases.below_text(path, notes=False, width=max(width - len(_INDENT) - len(what) - 2, 1))
        lines.append(_line("hottest" if i == 0 else "", f"{what}  {below}".rstrip()))
    return lines


def _memory_lines(report: Report) -> list[str]:
    if report.memory is None or not report.memory.peaks:
        return []
    peak = report.memory.peaks[0]
    holder = peak.holders[0] if peak.holders else None
    text = f"peak {size(peak.peak_bytes)} of tensors on {visible(peak.device)}"
    if holder:
        text += f", {share(holder.values['peak_live_bytes'], peak.peak_bytes)} from {phrases.place_text(holder.place)}"
    return [_line("memory", text)]


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: max(width - 1, 1)] + "…"


def _styled(line: str, colour: bool) -> str:
    """The label in bold; nothing else, so that the summary stays quiet below the program's own output."""
    if not colour or not line[:10].strip():
        return line
    return f"\x1b[1m{line[:10]}\x1b[0m{line[10:]}"
