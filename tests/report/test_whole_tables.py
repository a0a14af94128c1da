"""The tables that the page shows: the rows of the JSON report, all of them; lines and processes with known answers."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
from drawings import hostile, training

from leadline.analysis.analyze import quiet
from leadline.profiles.build import build
from leadline.report import ReportOptions, build_report
from leadline.report.embedded import embedded
from leadline.report.html import page_report, stored_report
from leadline.report.json_report import report_object

TWO_PROCESSES = """
process train.py | pid=1
  thread main
    python step @ /a/train.py:5 | first_line=1
      operator aten::mm | time=30/3 call_time=30/3 peak_live_bytes=100/1
      python helper @ /usr/lib/python3/site-packages/lib/x.py:9
        operator aten::add | time=4/2 call_time=4/2
process train.py | pid=2
  thread main
    python step @ /a/train.py:5 | first_line=1
      operator aten::mm | time=50/1 call_time=50/1 peak_live_bytes=300/1
""".lstrip("\n")


@pytest.mark.parametrize("make", [training, hostile], ids=["training", "hostile"])
def test_rows_are_those_of_the_json_report(make):
    profile = make()
    options = ReportOptions(top=10_000, frames=False, whole_tables=True)
    report = build_report(profile, options, "x.leadline")
    page, wanted = json.loads(json.dumps([page_report(report)["tables"], report_object(report)], allow_nan=False))
    assert page["operators"] == wanted["operators"]
    assert page["layers"] == wanted["modules"]
    assert page["kernels"] == (wanted["gpu"]["kernels"] if wanted["gpu"] else [])
    merged = report_object(build_report(profile, ReportOptions(top=10_000, merge_layers=True)))["modules"]
    assert page["modules"] == merged


def test_everything_is_booked_on_the_user_s_line_and_peaks_of_two_processes_are_not_added():
    report = build_report(build(TWO_PROCESSES), ReportOptions(whole_tables=True))
    tables = page_report(report)["tables"]
    (line,) = tables["lines"]
    assert [line[key] for key in ("file", "line", "function")] == ["/a/train.py", 5, "step"]
    assert [line[key] for key in ("time_ns", "calls", "peak_bytes")] == [84, 6, 300]
    assert [row["pid"] for row in tables["processes"]] == [1, 2]
    assert tables["of"]["operators"] == 2


def test_what_a_file_keeps_is_bounded_and_does_not_stand_in_the_page_a_second_time():
    text = "thread main\n" + "".join(
        f"  python f{i} @ /a/t.py:{i + 1}\n    operator op{i} | time=5 call_time=5\n" for i in range(3_000)
    )
    profile = build(text)
    kept = stored_report(profile, quiet(profile), "x.leadline")
    assert len(json.dumps(kept)) < 300_000
    assert kept["tables"]["of"]["operators"] == 3_000
    profile.meta["report"] = kept
    with zipfile.ZipFile(io.BytesIO(embedded(profile).data)) as archive:
        assert "report" not in json.loads(archive.read("meta.json"))
