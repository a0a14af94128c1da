"""Numbers no honest profile has: every format and export must still come out, finite and without a traceback."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.convert import EXPORTERS, What, export
from leadline.profiles.builder import ProfileBuilder
from leadline.report import ReportOptions, build_report
from leadline.report.html import render_html
from leadline.report.json_report import render_json
from leadline.report.markdown import render_markdown
from leadline.report.summary import render_summary
from leadline.report.text import render_text

big = st.sampled_from([-(2**63), -(2**62), -1, 0, 1, 2**53 + 1, 2**62, 2**63 - 1])
METRICS = [
    "time",
    "call_time",
    "alloc_bytes",
    "free_bytes",
    "peak_live_bytes",
    "gpu_time",
    "sync_time",
    "copy_bytes",
]
KINDS = ["python", "module", "operator", "kernel", "copy", "phase", "region", "api"]
rows = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(METRICS), big, st.sampled_from([-1, 0]), big), max_size=8
)


@settings(max_examples=40, deadline=None)
@given(rows, big, big, big)
def test_every_format_comes_out(measurements, wall, operators, cpu):
    builder = ProfileBuilder()
    process = builder.process("p", pid=1)
    builder.device(process, 0, "GPU")
    facts = {"tid": 1, "wall_ns": wall, "operator_ns": operators, "data_ns": cpu, "cpu_ns": cpu}
    node = builder.node_of_thread(builder.thread(process, "t", **facts))
    measured = set()
    for kind, metric, value, device, line in measurements:
        frame = builder.frame(kind, kind, file="/a/t.py", line=max(-(2**31), min(line, 2**31 - 1)))
        node = builder.child(node, frame)
        if (node, metric, device) not in measured:  # a second value could pass 64 bits in the builder itself
            measured.add((node, metric, device))
            builder.add(node, metric, value, device=device)
    profile = builder.profile()
    report = build_report(profile, ReportOptions())
    for text in (render_text(report), render_markdown(report), render_summary(report), render_html(profile, report)):
        assert " nan" not in text.lower()
    json.loads(render_json(report), parse_constant=lambda name: pytest.fail(name))
    for exporter in (one for one in EXPORTERS if one.holds is What.TREE):
        try:
            export(profile, exporter)
        except ValueError as sentence:
            assert "A .cpuprofile holds times" in str(sentence)
