"""A fault of ours, or odd values in a file that somebody sent, cost one fact and are told: never the verdict."""

from __future__ import annotations

import json

import pytest
from tests.verdict.test_account import drawn, operator

from leadline.analysis.analyze import analyze
from leadline.analysis.case import CannotTell, Case
from leadline.analysis.rules import place
from leadline.profiles.build import build
from leadline.profiles.records import Loss
from leadline.report import ReportOptions, build_report
from leadline.schema import LossKind
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


def test_a_question_that_makes_no_sense_here_is_no_error_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(_case: Case, _place: place.At) -> None:
        raise CannotTell("only 4 steps measured; 5 are needed")

    monkeypatch.setattr(place, "searched", cannot)
    assert "could not be found out" not in judge(drawn(*operator("aten::mm", 8.0))).trust


def test_a_report_says_that_judging_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_case: Case) -> None:
        raise KeyError("steps")

    monkeypatch.setattr(judging, "account", fails)
    assert quietly(drawn(*operator("aten::mm", 8.0))).sentence == (
        "cannot tell: judging failed (KeyError: 'steps'; please report it)"
    )


OF_RANKS = (
    "operator c10d::allreduce_ | time={t}/1 call_time={t}/1",
    "operator c10d::allreduce_ | time={t}/1 call_time={t}/1\n      phase on another thread\n"
    "        region gloo:all_reduce | time={t}/1 call_time={t}/1",
    "phase data loading | time={t}/1 call_time={t}/1",
    "phase compile | time={t}/1 call_time={t}/1",
    "phase saving | time={t}/1 call_time={t}/1",
    "operator aten::select | time={t}/1 call_time={t}/1",
    "native [waits for a core] | wait={t}/1",
    "operator aten::item | sync_time={t}/1 time={t}/1 call_time={t}/1",
)


@pytest.mark.parametrize("line", OF_RANKS)
@pytest.mark.parametrize("ranks", [(0,), (0, 1), (-1,)], ids=str)
def test_a_run_without_steps_has_a_verdict_whatever_it_does(line: str, ranks: tuple[int, ...]) -> None:
    text = "\n".join(
        f"process train.py | pid={5 + rank} rank={rank}\n  thread main | tid={5 + rank} wall_ns=100000000\n"
        f"    python main @ /home/ada/train.py:43\n      {line.replace('{t}', str(80_000_000 + rank))}"
        for rank in ranks
    )
    profile = build(text)
    verdict = judge(profile)
    assert verdict.sentence and "could not be found out" not in verdict.trust
    assert build_report(profile, ReportOptions(verdict=True)).start is not None


def test_the_trust_line_says_what_could_not_be_measured() -> None:
    profile = drawn(*operator("aten::mm", 8.0))
    profile.losses = [Loss(0, LossKind.PROVIDER_UNAVAILABLE, 1, "No kernel was timed: the driver refused. Ask root.")]
    assert "not measured: no kernel was timed," in judge(profile).trust
