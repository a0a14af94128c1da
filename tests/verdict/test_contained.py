"""A fault of ours, or odd values in a file that somebody sent, cost one fact and are told: never the verdict."""

from __future__ import annotations

import json

import pytest
from tests.verdict.test_account import drawn, operator

from leadline.analysis.analyze import analyze
from leadline.analysis.case import Case
from leadline.analysis.rules import place
from leadline.verdict import judge as judging
from leadline.verdict.judge import judge, quietly

ODD = (
    [[[512, 3, 7], [512]], [], [3, 4]],  # a list of tensors, as torch.profiler writes it
    [["a", None], [1.5, 2]],
    [{"size": 4}, 7, None],
    {"0": [4, 4]},
    [[], [[]], [[[]]]],
    [[True, -1], [10**40]],
)


@pytest.mark.parametrize("name", ["aten::cat", "aten::mm", "aten::convolution", "aten::add", "aten::embedding"])
@pytest.mark.parametrize("shapes", ODD, ids=str)
def test_shapes_of_any_form_are_read(name: str, shapes: object) -> None:
    detail = json.dumps({"shapes": shapes, "types": shapes}, separators=(",", ":"))
    line, called = operator(name, 8.0)
    profile = drawn(line, f"{called} detail={detail}")
    assert not analyze(profile).failed
    verdict = judge(profile)
    assert name in verdict.sentence
    assert "could not be found out" not in verdict.trust


def test_a_fact_that_fails_is_told_and_the_others_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = judge(drawn(*operator("aten::mm", 8.0)))

    def fails(_case: Case, _place: place.At) -> None:
        raise TypeError("no such thing\x1b[31m")

    monkeypatch.setattr(place, "searched", fails)
    verdict = judge(drawn(*operator("aten::mm", 8.0)))
    assert (verdict.sentence, verdict.because) == (whole.sentence, whole.because)
    assert "could not be found out (TypeError: no such thing" in verdict.trust
    assert "\x1b" not in verdict.trust


def test_a_report_says_that_judging_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_case: Case) -> None:
        raise KeyError("steps")

    monkeypatch.setattr(judging, "account", fails)
    assert quietly(drawn(*operator("aten::mm", 8.0))).sentence == (
        "cannot tell: judging failed (KeyError: 'steps'; please report it)"
    )
