"""Trees made to fill the memory: a report on them is bounded, or one sentence."""

from __future__ import annotations

import json
import resource

import numpy as np
import pytest

from leadline.profiles import Profile
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.tables import Tables
from leadline.report import ReportOptions, TooLargeError, build_report, paths
from leadline.report.html import render_html
from leadline.report.json_report import render_json
from leadline.report.markdown import render_markdown
from leadline.report.source import short_names
from leadline.report.text import render_text
from leadline.schema import TABLES


def deep(levels, measured, name="f", kind="python"):
    """One path `levels` deep whose innermost `measured` nodes all hold time and memory, each on a line of its own."""
    builder = ProfileBuilder()
    node = builder.node_of_thread(builder.thread(builder.process("p", pid=1), "T", tid=1, wall_ns=10))
    for level in range(levels):
        frame = builder.frame(kind, name if kind == "python" else f"{name}{level}", file="/a/t.py", line=level + 1)
        node = builder.child(node, frame)
        if level >= levels - measured:
            builder.add(node, "time", 5)
            builder.add(node, "peak_live_bytes", 5)
    return builder.profile()


def grown_by(make) -> int:
    """How much the peak of resident memory grew, in bytes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    make()
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


@pytest.mark.parametrize("kind", ["python", "module"])
def test_deep_paths_are_shown_by_their_ends(kind):
    """20,000 levels under 1,000 lines: every path in full would be 20 million frames in JSON alone."""
    profile = deep(20_000, 1_000, kind=kind)
    made = {}

    def everything():
        report = build_report(profile, ReportOptions(top=1_000))
        made["json"] = json.loads(render_json(report))
        made["html"] = render_html(profile, build_report(profile, ReportOptions(top=200, frames=False)))
        render_text(build_report(profile))
        render_markdown(build_report(profile))

    assert grown_by(everything) < 1 << 30
    frames = made["json"]["paths"][0]["frames"]
    assert [frame["kind"] for frame in frames[:3]] == ["process", "thread", "cut"]
    assert len(frames) == paths.MOST_FRAMES + 3
    cut = int(frames[2]["name"].strip("(").split()[0].replace(",", ""))
    assert cut + len(frames) - 1 == 19_001 + 2  # the first measured level, below a process and a thread
    assert len(made["html"]) < 30_000_000


def test_names_too_long_to_be_repeated_are_refused_with_a_sentence():
    profile = deep(300, 300, name="n" * 100_000)
    with pytest.raises(TooLargeError, match="ask for fewer with --top"):
        build_report(profile, ReportOptions(top=300))
    build_report(profile, ReportOptions(top=300, frames=False))
    assert len(build_report(profile, ReportOptions(top=2)).paths) == 2


def test_a_file_name_of_a_million_folders_is_shortened():
    names = short_names(["/a" * 500_000 + "/x.py", "/a" * 500_000 + "/b/x.py", "/home/ada/y.py"])
    assert sorted(len(name) for name in names.values())[0] == 4
    assert names["/home/ada/y.py"] == "y.py"


def test_modules_in_modules_a_hundred_thousand_deep():
    size = 100_000
    builder = ProfileBuilder()
    thread = builder.node_of_thread(builder.thread(builder.process("p", pid=1), "T", tid=1, wall_ns=10))
    frames = [builder.frame("module", f"m{number % 7}", module="M") for number in range(7)]
    node = thread
    for level in range(size):
        node = builder.child(node, frames[level % 7])
    builder.add(node, "time", 5)
    report = build_report(Profile(builder.profile().tables, {}))
    assert [row.time_ns for row in report.modules] == [5] * 7
    assert np.sum([row.self_ns for row in report.modules]) == 5


def test_the_page_of_a_path_of_half_a_million_levels():
    """One array step per level would take minutes."""
    size = 500_000
    tables = deep(2, 1).tables
    columns = {name: dict(tables[name]) for name in TABLES}
    columns["nodes"] = {
        "parent": np.arange(-1, size - 1, dtype=np.int32),
        "frame": np.concatenate((columns["nodes"]["frame"], np.full(size - 5, columns["nodes"]["frame"][-1]))),
    }
    columns["metrics"]["node"] = np.full_like(columns["metrics"]["node"], size - 1)
    profile = Profile(Tables(columns), {})
    page = render_html(profile, build_report(profile, ReportOptions(top=200, frames=False)))
    assert len(page) < 30_000_000
