"""A program that calls `generate` itself is no server: nobody sends it requests, and its verdict is of its steps."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.analysis.test_findings import MS
from tests.serving.test_account import two_requests

from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.report.build import build_report
from leadline.report.markdown import render_markdown
from leadline.report.model import ReportOptions
from leadline.report.text import render_text
from leadline.units import duration
from leadline.verdict.text import as_lines, head

_OF_SERVERS = re.compile(r"\b(?:serv\w*|requests?|queue|engine)\b", re.IGNORECASE)


def generating(more: dict[str, Any]) -> Profile:
    profile = build(
        f"""
        process chat.py | pid=5
          thread MainThread | tid=5 wall_ns=100000000
            python main @ /home/ada/chat.py:42
              phase decode | time=0/10 call_time={90 * MS}/10
                module model [Net]
                  operator aten::linear | time={90 * MS}/10 call_time={90 * MS}/10
        """
    )
    profile.meta["processes"] = [{"pid": 5, "engines": [{**two_requests().facts(), "engine": "transformers", **more}]}]
    return profile


def of_an_older_file() -> dict[str, Any]:
    """It does not say who calls; names of sequences do."""
    slowest = two_requests().facts()["slowest"]
    return {"slowest": [{**one, "id": f"call 1, row {row}"} for row, one in enumerate(slowest)]}


@pytest.mark.parametrize("more", [{"called": 1}, of_an_older_file()])
def test_calls_of_generate_are_not_told_in_words_of_servers(more: dict[str, Any]) -> None:
    profile = generating(more)
    said = "\n".join((head(profile.verdict), *as_lines(profile.verdict)))
    assert not _OF_SERVERS.search(said), said
    assert "generate() makes 2 sequences" in " ".join(said.split())
    account = profile.verdict.account
    assert account is not None and head(profile.verdict).endswith(f", {duration(account.wall_ns)} each")
    report = build_report(profile, ReportOptions(), "chat.leadline")
    for text in (render_text(report, 160), render_markdown(report)):
        section = text[text.index("Generation") :]
        assert not re.search(r"\b(?:serving|requests?|queue|engine)\b", section.partition("Phases")[0], re.IGNORECASE)


def test_an_engine_that_takes_requests_serves() -> None:
    assert generating({}).verdict.sentence.startswith("serves 2 requests")
