"""Sources that estimate figures say so, and every report repeats it."""

from __future__ import annotations

from leadline.profiles import Profile
from leadline.profiles.build import build
from leadline.report import build_report
from leadline.report.markdown import render_markdown
from leadline.report.summary import render_summary
from leadline.report.text import render_text

SAID = "Times of compiled programs are estimates from 3 timed runs of 40; counts are exact."


def drawn() -> Profile:
    profile = build("operator jit(step) | time=5,7 call_time=5,7")
    status = {"jax": {"ok": True, "version": "0.10.2", "estimated": SAID}, "torch": {"ok": None, "version": ""}}
    children = [{"available": status}, {"available": status}]
    return Profile(profile.tables, {**profile.meta, "available": status, "processes": children})


def test_every_report_says_once_what_is_estimated() -> None:
    report = build_report(drawn())
    assert report.meta.estimates == (SAID,)
    for text in (render_text(report), render_markdown(report), render_summary(report, width=200)):
        assert " ".join(text.split()).count(SAID) == 1
