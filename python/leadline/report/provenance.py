"""Where a profile comes from, what was lost and what measuring cost: from meta.json and the losses table.

meta.json is someone else's data: every value is read as the type it should have, and anything else counts as absent.
"""

from __future__ import annotations

import datetime
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leadline.profiles import Profile
from leadline.profiles.meta import is_imported
from leadline.profiles.overhead import overhead
from leadline.report.model import Cost, LossRow, Meta
from leadline.report.timesplit import process_labels
from leadline.schema import LOSSES, MetricKind
from leadline.units import duration, number


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return 0
    return int(value)


def _real(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def command_line(argv: object) -> str:
    """The program as a shell would take it; empty when `argv` is not a list of texts."""
    if not isinstance(argv, list):
        return ""
    return shlex.join(one for one in argv if isinstance(one, str))


def wall_ns(profile: Profile) -> int:
    """Wall time of the run: what the file says, else the span of its processes or its longest thread."""
    stated = _integer(profile.meta.get("wall_ns"))
    if stated > 0:
        return stated
    starts = [one.start_ns for one in profile.processes if one.start_ns > 0]
    ends = [one.end_ns for one in profile.processes if one.end_ns > 0]
    span = max(ends) - min(starts) if starts and ends else 0
    return max(span, max((thread.wall_ns for thread in profile.threads), default=0))


def meta(profile: Profile, file: str) -> Meta:
    raw = profile.meta
    program, host = _mapping(raw.get("program")), _mapping(raw.get("host"))
    names = [process.name for process in profile.processes]
    joined = file if len(names) > 1 and is_imported(raw) else ""  # of no rank alone
    return Meta(
        program=joined or command_line(program.get("argv")) or next(iter(names), "") or "unknown program",
        started_at=_iso_time(_integer(raw.get("started_at_ns"))),
        wall_ns=wall_ns(profile),
        paused_ns=_paused_ns(profile),
        host=_host(host),
        python=_text(program.get("python")),
        frameworks=_frameworks(_mapping(raw.get("available"))),
        estimates=_estimates(profile),
        asked=_asked(_mapping(raw.get("asked"))),
        processes=len(profile.processes),
        threads=len(profile.threads),
        complete=_complete(profile),
        file=file,
        leadline=_text(raw.get("leadline")),
    )


def _paused_ns(profile: Profile) -> int:
    records = profile.meta.get("processes")
    found = [_integer(_mapping(one).get("paused_ns")) for one in records] if isinstance(records, list) else []
    return max([0, *found])


def _complete(profile: Profile) -> bool:
    """Whether the run ended in order: what the file says; a child that was stopped early is only a loss."""
    stated = profile.meta.get("complete")
    return stated if isinstance(stated, bool) else all(process.complete for process in profile.processes)


def _iso_time(realtime_ns: int) -> str:
    """UTC in ISO 8601, to the second; empty where unknown or beyond what a calendar holds."""
    if realtime_ns <= 0:
        return ""
    try:
        moment = datetime.datetime.fromtimestamp(realtime_ns / 1e9, datetime.timezone.utc)
    except (OverflowError, ValueError, OSError):
        return ""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def working_directory(profile: Profile) -> str:
    """Where the program ran, which its user's files are best named from; empty where unknown."""
    return _text(_mapping(profile.meta.get("program")).get("cwd"))


def _frameworks(available: Mapping[str, Any]) -> tuple[str, ...]:
    """`torch 2.13.0` for everything the file names with a version."""
    versions = {name: _text(_mapping(about).get("version")) for name, about in available.items()}
    return tuple(f"{name} {version}" for name, version in versions.items() if version)


def _estimates(profile: Profile) -> tuple[str, ...]:
    """What `estimated` of every source of every process says; once where several say the same."""
    records = profile.meta.get("processes")
    said = [profile.meta, *(records if isinstance(records, list) else [])]
    about = [status for one in said for status in _mapping(_mapping(one).get("available")).values()]
    sentences = [_text(_mapping(status).get("estimated")) for status in about]
    sentences += [_budget(_mapping(_mapping(one).get("budget"))) for one in said]
    sentences += _duty([duty for one in said if (duty := _mapping(_mapping(one).get("duty")))])
    sentences += [_rolled(_mapping(profile.meta.get("rolled"))), *_unmet(profile)]
    return tuple(dict.fromkeys(sentence for sentence in sentences if sentence))


_INSIDE_KERNELS = (
    ("instructions", MetricKind.INSTRUCTION_SAMPLES, "Instructions of GPU kernels"),
    ("gpu_metrics", MetricKind.COUNTED_TIME, "Hardware counters of GPU kernels"),
)
"""What may be asked of kernels: option, what it measures, words."""


def _no_window(profile: Profile, steps: int, wait: int) -> str:
    """Why a whole run has no event: `steps` of the window, 0 for one in seconds. Empty for what need not hold any: a
    folded job, a part of a run, one that did not end in order."""
    meta = profile.meta
    if len(profile.events["start_ns"]) or meta.get("fold") or meta.get("rolled") or not _complete(profile):
        return ""
    if steps and wait:
        return (
            f"The trace window never opened, because the program did not end {wait + 1} steps: mark steps with "
            "leadline.step(), or use --trace seconds=S,wait=0."
        )
    return "The trace window has no event: no measured work ran while it was open."


def _unmet(profile: Profile) -> Iterator[str]:
    """What was asked for and nothing came of: a trace window, what is inside of GPU kernels (with what the provider
    says)."""
    asked, available = _mapping(profile.meta.get("asked")), _mapping(profile.meta.get("available"))
    if window := _mapping(asked.get("trace")):
        yield _no_window(profile, _integer(window.get("steps")), _integer(window.get("wait")))
    measured = {info.kind for info in profile.tree.measured}
    for option, metric, what in _INSIDE_KERNELS:
        if asked.get(option) and metric not in measured:
            said = (_text(_mapping(available.get(maker)).get("message")) for maker in ("nvidia", "amd"))
            why = " ".join(filter(None, said))
            yield f"{what} were requested, but there are none" + (f": {why}" if why else ".")


def _budget(budget: Mapping[str, Any]) -> str:
    """What was not measured for a while, so that measuring kept to its cost."""
    rested = {str(name): _integer(ns) for name, ns in _mapping(budget.get("off_ns")).items() if _integer(ns) > 0}
    if not rested:
        return ""
    what = ", ".join(f"{name} for {duration(ns)}" for name, ns in rested.items())
    times = number(_integer(budget.get("times")))
    limit = _number(budget.get("percent"))
    return f"To keep the overhead below {limit}% of the run, Leadline paused: {what} ({times} switches)."


def _duty(duties: Sequence[Mapping[str, Any]]) -> list[str]:
    """What each process says of the steps that it left out."""
    some = [duty for duty in duties if _integer(duty.get("steps_left_out"))]
    if duties and not some:
        return [
            "Every step was measured: the program ended too few steps for --duty to leave any out. Steps are what a "
            "torch optimizer or leadline.step() ends."
        ]
    return [
        sentence for duty in some for sentence in (_steps_left_out(duty), _slowdown(_mapping(duty.get("slowdown"))))
    ]


def _steps_left_out(duty: Mapping[str, Any]) -> str:
    left_out, measured = _integer(duty.get("steps_left_out")), _integer(duty.get("steps_measured"))
    return (
        f"{number(measured)} of {number(measured + left_out)} steps were measured, in blocks drawn at random (--duty); "
        "counts and sums are those of the measured steps."
    )


def _slowdown(found: Mapping[str, Any]) -> str:
    """What measuring cost the measured steps, by comparison with the others."""
    ratio, low, high = (_real(found.get(name)) for name in ("ratio", "low", "high"))
    if not ratio:
        return "Too few blocks of steps were left out to say how much longer measured steps took."
    return (
        f"A measured step took {ratio:.3f} times as long as one left out (95% interval {low:.3f} to {high:.3f}, from "
        f"{number(_integer(found.get('blocks')))} blocks)."
    )


def _rolled(rolled: Mapping[str, Any]) -> str:
    """What is not exact in a file of a run that goes on in the next one."""
    bounds, extremes = _integer(rolled.get("bounds")), _integer(rolled.get("extremes"))
    if not rolled or not bounds:
        return ""
    return (
        f"This file is one part of a run that began {_iso_time(_integer(rolled.get('run_started_at_ns')))}: counts and "
        f"sums are of this part; {number(bounds)} of {number(extremes)} minimum and maximum values are bounds (the "
        "true value is within them), and peaks of memory are those of the run so far."
    )


def _host(host: Mapping[str, Any]) -> str:
    """`atlas, Linux x86_64, 8 CPUs`, as far as it is known."""
    system = _text(host.get("system")).partition("-")[0]
    cpus = _integer(host.get("cpus"))
    parts = [_text(host.get("hostname")), f"{system} {_text(host.get('machine'))}".strip()]
    return ", ".join(part for part in (*parts, f"{cpus} CPUs" if cpus > 0 else "") if part)


UNKNOWN_LOSS = "a loss that a newer release of leadline knows"


_LISTED = ("counters", "gpu_metrics", "tools", "accelerators")


_UNSAID = frozenset(("cpu_sample_unasked", "follow", "quiet"))
"""Options that say nothing of what was measured."""


def _asked(asked: Mapping[str, Any]) -> str:
    """What was switched on: `memory, modules, trace=steps=3`; limits and intervals are left to the file."""
    words = []
    for name, value in asked.items():
        if name in _UNSAID:
            continue
        if value is True:
            words.append(name)
        elif name in ("cpu_sample", "wait", "budget") and value:  # the other numbers are limits
            if name != "budget" or not asked.get("budget_after_s"):
                words.append(f"{name}={_number(value)}")
        elif isinstance(value, Mapping):  # a trace window: what of it was given
            given = ",".join(f"{key}={_number(of)}" for key, of in value.items() if _number(of))
            words.append(f"{name}={given}" if given else name)
        elif name in _LISTED and isinstance(value, list) and value:
            words.append(f"{name}={'+'.join(map(_text, value))}")
        elif _text(value) not in ("", "auto"):  # what is chosen by itself was not asked for
            words.append(f"{name}={value}")
    return ", ".join(words)


def _number(value: object) -> str:
    """`3`, `0.5`; empty for what is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return ""
    return f"{value:g}"


def losses(profile: Profile) -> tuple[LossRow, ...]:
    """Every loss with a count, as the file has them."""
    meanings = {info.kind: info.doc for info in LOSSES}
    labels = process_labels(profile)
    return tuple(
        LossRow(
            str(loss.kind), loss.count, meanings.get(loss.kind, UNKNOWN_LOSS), loss.detail, labels.get(loss.process, "")
        )
        for loss in profile.losses
        if loss.count or loss.detail
    )


def cost(profile: Profile) -> Cost:
    raw = _mapping(profile.meta.get("cost"))
    found = overhead(profile)
    return Cost(
        _integer(raw.get("callbacks_ns")),
        _integer(raw.get("events")),
        _integer(raw.get("held_bytes")),
        None if found is None else 100 * found.share,
        found is not None and found.measured,
    )
