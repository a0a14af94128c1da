"""What was asked, and reports on terminals that cannot show everything."""

from __future__ import annotations

import io
import sys

import pytest
from drawings import training

from leadline.capture.config import Options
from leadline.cli.main import main
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile
from leadline.report import build_report
from leadline.report.encoding import encodable
from leadline.report.summary import summarize


@pytest.mark.parametrize(
    ("window", "said"), [("steps=3", "trace=steps=3,wait=1"), ("seconds=0.5,wait=0", "trace=seconds=0.5,wait=0")]
)
def test_a_trace_window_shows_under_asked(window, said):
    profile = training()
    profile.meta["asked"] = Options.of({"trace": window}).asked()
    assert build_report(profile).meta.asked == f"memory, modules, {said}"


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return False


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252"])
@pytest.mark.parametrize("form", ["text", "markdown", "json", "html"])
def test_every_format_can_be_printed_to_every_terminal(tmp_path, monkeypatch, encoding, form):
    path = tmp_path / "t.leadline"
    write_profile(path, build("python épée漢 @ /a/t.py:1\n  operator aten::mm | time=5000 call_time=5000"))
    terminal = Terminal(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["report", str(path), "--format", form]) == 0
    terminal.flush()
    printed = terminal.buffer.getvalue()
    if form == "html":
        assert "épée漢" in printed.decode("utf-8") or "\\u00e9p\\u00e9e" in printed.decode("utf-8")
    else:
        assert "aten::mm" in printed.decode(encoding)


def test_what_a_terminal_can_show_stays():
    terminal = Terminal(io.BytesIO(), encoding="latin-1")
    assert encodable("é › 漢", terminal) == "é > ?"


def test_the_summary_shows_the_other_thread_that_worked():
    text = summarize(
        build("""
        process p | pid=5
          thread main | tid=5 wall_ns=1000 operator_ns=300 cpu_ns=400
            operator aten::mm | time=300
          thread autograd | tid=6 wall_ns=1000 operator_ns=500 cpu_ns=500
            operator aten::add | time=500
        """),
        "x.leadline",
    )
    assert [line.strip() for line in text.splitlines() if line.startswith("time")] == [
        "time      operators 30 %, Python ~10 %, idle ~60 %",
        "time      operators 50 %, idle ~50 %  (autograd)",
    ]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("gpu_metrics", ["dram"], "Hardware counters of GPU kernels were requested, but there are none: No CUDA."),
        ("instructions", "continuous", "Instructions of GPU kernels were requested, but there are none: No CUDA."),
        (
            "trace",
            {"steps": 3, "seconds": None, "wait": 1},
            "The trace window never opened, because the program did not end 2 steps: mark steps with leadline.step(), or use "
            "--trace seconds=S,wait=0.",
        ),
        (
            "trace",
            {"steps": None, "seconds": 5, "wait": 0},
            "The trace window has no event: no measured work ran while it was open.",
        ),
    ],
)
def test_what_was_asked_for_and_did_not_come_is_said(option, value, said):
    profile = training()
    profile.meta["asked"] = {option: value}
    profile.meta["available"] = {"nvidia": {"ok": None, "version": "", "message": "No CUDA."}}
    assert build_report(profile).meta.estimates == (said,)
    profile.meta["asked"] = {option: type(value)()}
    assert build_report(profile).meta.estimates == ()


@pytest.mark.parametrize("of_a_part", [{"fold": {"ranks": 8}}, {"rolled": {"number": 1}}, {"complete": False}])
def test_a_file_that_need_not_hold_the_window_says_nothing_of_it(of_a_part):
    profile = training()
    profile.meta["asked"] = {"trace": {"steps": 3, "seconds": None, "wait": 1}}
    profile.meta |= of_a_part
    assert not any("trace window" in sentence for sentence in build_report(profile).meta.estimates)
