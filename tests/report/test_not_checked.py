"""What a profile without shapes does not tell is said, with what records it."""

from __future__ import annotations

import pytest

from leadline.analysis.analyze import analyze
from leadline.profiles.build import build
from leadline.report.findings.words import silent_texts

MS = 1_000_000


@pytest.mark.parametrize("shapes", ["", ' detail={"shapes":[[9,8],[4,2]]}'])
def test_a_profile_without_shapes_says_what_was_not_checked(shapes: str) -> None:
    profile = build(
        "\n".join(
            (
                "process train.py | pid=5",
                "  thread main | tid=5 wall_ns=100000000",
                "    python main @ /home/ada/train.py:44",
                "      phase optimizer | call_time=10/10",
                f"      operator aten::embedding | time={90 * MS}/10 call_time={90 * MS}/10{shapes}",
            )
        )
    )
    said = [text for text in silent_texts(analyze(profile)) if "not checked" in text]
    assert [text.startswith("padding ") for text in said] == ([] if shapes else [True])
