"""What a report says of a profile stands on bases that it names, and adds up to them. As in `invariants.py`, a sentence
for each contradiction; asked where a report is worth its time (generated programs, workloads, programs of others)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from leadline.profiles import Profile
from leadline.report import Report, ReportOptions, build_report
from leadline.report.model import Peak
from leadline.report.text import render_text

_EVERYTHING = 1_000_000
_BASED = ("Time", "Hottest call paths", "Phases")
"""Sections whose rows are shares, so that the line above them has to say of what."""
_PERCENT = re.compile(r"(\d[\d,]*(?:\.\d+)?) ?%")


def shares_wrong(profile: Profile) -> Iterator[str]:
    report = build_report(profile, ReportOptions(top=_EVERYTHING))
    yield from _parts_and_wholes(report)
    yield from told_wrong(render_text(report))


def _parts_and_wholes(report: Report) -> Iterator[str]:
    total = report.path_total
    if total is not None and report.focus is None:
        held = sum(path.values.get(report.path_metric, 0) for path in report.paths)
        if not report.paths_hidden and held + report.imports_ns != total.sum:
            yield f"paths hold {held} and imports {report.imports_ns} of {total.sum} {report.path_metric}"
    time = report.totals.get("time")
    if time is not None and report.phases and sum(row.time_ns for row in report.phases) != time.sum:
        yield f"phases last {sum(row.time_ns for row in report.phases)} ns of {time.sum} ns"
    if time is not None and sum(row.time.self for row in report.operators) > time.sum:
        yield "operators last longer inside themselves than everything"
    for row in report.modules:
        if row.self_ns > row.time_ns or row.forward_ns + row.backward_ns > row.time_ns:
            yield f"module {row.name}: itself {row.self_ns}, forward {row.forward_ns}, backward {row.backward_ns} of {row.time_ns} ns"
    for peak in report.memory.peaks if report.memory else ():
        if sum(_alive(peak)) > peak.peak_bytes:
            yield f"{sum(_alive(peak))} bytes are alive at a peak of {peak.peak_bytes} on {peak.device}"


def _alive(peak: Peak) -> list[int]:
    return [path.values.get("peak_live_bytes", 0) for path in peak.holders]


def told_wrong(text: str) -> Iterator[str]:
    """Of the text: no share is above 100 %, and those of a section stand below a line that says what they are of."""
    heading, summed = "", 0.0
    for line in text.splitlines():
        if line and not line.startswith(" "):
            heading, summed = line, 0.0
        for number in _PERCENT.findall(line):
            if float(number.replace(",", "")) > 100:
                yield f"more than everything: {line.strip()}"
            if heading.startswith(_BASED) and "shares of" not in heading:
                yield f"shares of what: {heading} / {line.strip()}"
        if heading.startswith("Phases") and (shares := _PERCENT.findall(line)) and line.startswith(" "):
            summed += float(shares[0]) - (0.05 if "." in shares[0] else 0.5)  # half of the last digit
            if summed > 100:
                yield f"phases hold more than everything: {line.strip()}"
