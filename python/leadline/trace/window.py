"""Reads the steps that were asked for, in memory bounded by them: a large file is first scanned for step marks only."""

from __future__ import annotations

import re

from leadline._dataclass import replace
from leadline.steps import Found, Step
from leadline.steps.completion import done_ns
from leadline.steps.gaps import without_holes
from leadline.steps.of_events import find_steps
from leadline.trace.jsonstream import COMPRESSION_DAMAGE, PIECE_BYTES
from leadline.trace.kineto import read_kineto, scan_marks
from leadline.trace.loops import one_loop
from leadline.trace.source import Source
from leadline.trace.tables import Trace, TraceError

_GZIP_RATIO = 15
_STAMP = re.compile(rb'"ts": ?([0-9.]+)[, ]')
_BYTES_PER_EVENT = 230
MAX_EVENTS = 2_000_000  # kept of a large file when no window is given
LARGE_BYTES = MAX_EVENTS * _BYTES_PER_EVENT  # of JSON text; below this a trace is simply read


def text_bytes(source: Source) -> int:
    """About how much text a trace is."""
    return source.size_bytes * (_GZIP_RATIO if source.compressed else 1)


def read_window(
    source: Source, window: tuple[int, int] | None, *, large_bytes: int = LARGE_BYTES
) -> tuple[Trace, Found]:
    """The trace and its chosen steps (numbers, both ends included; None: all, or as many as fit of a large file).

    Raises TraceError when there is no step in the window.
    """
    if text_bytes(source) <= large_bytes:
        trace = one_loop(read_kineto(source))
        found = find_steps(trace)
        return noted(trace, found), replace(found, steps=tuple(chosen(found, window, source.name)))
    marks, size = scan_marks(source)
    if marks is None:
        return _without_marks(source, window, size)
    marks = one_loop(marks)
    found = find_steps(marks)
    steps = chosen(found, window, source.name)
    warnings = []
    if window is None:
        fits = max(1, int(len(steps) * MAX_EVENTS * _BYTES_PER_EVENT / max(size, 1)))
        if fits < len(steps):
            warnings.append(
                f"the trace is large ({size / 1e9:.1f} GB of JSON); only steps {steps[0].number} to "
                f"{steps[fits - 1].number} of {len(steps)} were read; choose others with window="
            )
            steps = steps[:fits]
    origin_us = float(marks.facts["origin_us"])
    low_us, high_us = origin_us + steps[0].start_ns / 1e3, origin_us + steps[-1].end_ns / 1e3
    # device work runs behind its launch: look as far again as the longest step
    behind_us = max(step.end_ns - step.start_ns for step in steps) / 1e3
    trace = one_loop(read_kineto(source, (low_us, high_us + behind_us)))
    shift_ns = round((origin_us - float(trace.facts["origin_us"])) * 1000)
    moved = [(step.start_ns + shift_ns, step.end_ns + shift_ns) for step in steps]
    done = done_ns(trace.events, [begin for begin, _ in moved], [end for _, end in moved])
    ended = tuple(
        Step(step.number, begin, end, int(at)) for step, (begin, end), at in zip(steps, moved, done, strict=True)
    )
    trace = replace(trace, warnings=(*trace.warnings, *warnings))
    found = without_holes(trace, Found(ended, found.found_by, found.doubt))
    return noted(trace, found), found


def _without_marks(source: Source, window: tuple[int, int] | None, text_bytes: int) -> tuple[Trace, Found]:
    """A large file without step marks: as much of its beginning as fits; its steps are found by repetition."""
    low_us, high_us, events = _time_range(source)
    share = min(1.0, MAX_EVENTS / max(events, 1))
    trace = read_kineto(source, (low_us, low_us + (high_us - low_us) * share) if share < 1 else None)
    if share < 1:
        note = (
            f"the trace is large ({text_bytes / 1e9:.1f} GB of JSON) and has no step marks; only its first {share:.0%} "
            "of time was read"
        )
        trace = replace(trace, warnings=(*trace.warnings, note))
    found = find_steps(trace)
    return noted(trace, found), replace(found, steps=tuple(chosen(found, window, source.name)))


def noted(trace: Trace, found: Found) -> Trace:
    """The trace with a warning about steps that are left out."""
    return replace(trace, warnings=(*trace.warnings, found.left_out)) if found.left_out else trace


def _time_range(source: Source) -> tuple[float, float, int]:
    """First and last time stamp in microseconds and how many there are, without decoding the file."""
    low, high, count = float("inf"), float("-inf"), 0
    rest = b""
    stream = source.open()
    try:
        while data := stream.read(PIECE_BYTES):
            data = rest + data
            stamps = [float(found) for found in _STAMP.findall(data)]
            rest = data[-64:]  # a stamp across the border is counted twice at worst, never lost
            if stamps:
                low, high, count = min(low, min(stamps)), max(high, max(stamps)), count + len(stamps)
    except COMPRESSION_DAMAGE:
        pass  # what was read is what there is
    finally:
        stream.close()
    return low, high, count


def chosen(found: Found, window: tuple[int, int] | None, name: str) -> list[Step]:
    """The steps whose numbers lie in the window; raises TraceError when there are none."""
    if window is None:
        return list(found.steps)
    steps = [step for step in found.everything if window[0] <= step.number <= window[1]]
    if not steps:
        low, high = window
        raise TraceError(
            f"no step between {low} and {high} in {name}; it has steps {found.everything[0].number} to "
            f"{found.everything[-1].number}"
        )
    return steps
