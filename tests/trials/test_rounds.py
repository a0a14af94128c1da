"""Rounds of runs that are made up: when they end, and what is said of them."""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from leadline.cli.trial_run import notes_of
from leadline.remedies.plan import Plan
from leadline.trials import processes
from leadline.trials import rounds as module
from leadline.trials.model import ScratchFull
from leadline.trials.rounds import Rounds, take_turns
from leadline.trials.run import Run
from leadline.trials.scratch import Scratch
from leadline.trials.variant import Variant

_BASE, _OTHER = Variant("baseline", ("python",), "."), Variant("x", ("python",), ".")


def _turns(
    monkeypatch: pytest.MonkeyPatch, made: Any, variants: tuple[Variant, ...] = (_BASE, _OTHER), limit_s: float = 60
) -> Rounds:
    count = iter(range(1000))

    def run(variant: Variant, plan: Plan, scratch: Scratch, **_: Any) -> Run:
        return Run(variant.name, *made(variant, next(count)), step_ns=1e6)

    monkeypatch.setattr(module, "run", run)
    scratch = Scratch(in_place=True)
    try:
        return take_turns(variants, Plan("", 5, 1), scratch, limit_s=limit_s, tell=lambda sentence: None)
    finally:
        scratch.close()


def _said(found: Rounds) -> str:
    return " ".join(notes_of(found, argparse.Namespace(rounds=5)))


def test_a_program_that_differs_from_run_to_run_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _turns(monkeypatch, lambda _, at: (0, {"values": [[1, 2.0 + at]], "digest": str(at), "steps": 6}))
    assert found.number >= 5
    assert found.spread.repeats
    assert "differs from run to run by itself" in _said(found)


def test_a_program_that_repeats_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _turns(monkeypatch, lambda _, at: (0, {"values": [[1, 2.0]], "digest": "a", "steps": 6}))
    assert _said(found) == ""


def test_a_full_disk_keeps_the_rounds_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(variant: Variant, at: int) -> Any:
        if at == 5:
            raise ScratchFull("The disk is full.")
        return 0, {"values": [[1, 2.0]], "digest": "a", "steps": 6}

    found = _turns(monkeypatch, made)
    assert found.number == 3 - 1 + (found.base[-1] is not None)
    assert _said(found) == "The disk is full. These are the rounds until then."


def test_a_full_disk_in_the_first_round_leaves_nothing_to_show(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(variant: Variant, at: int) -> Any:
        raise ScratchFull("The disk is full.")

    with pytest.raises(ScratchFull):
        _turns(monkeypatch, made)


def test_where_no_fix_applies_one_round_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"values": [[1, 2.0]], "digest": "a", "steps": 6, "outcomes": {"x": "there is no GPU"}}
    monkeypatch.setattr(module, "outcome", lambda runs, variant: "there is no GPU")
    found = _turns(monkeypatch, lambda _, at: (0, record))
    assert found.number == 1
    assert found.refused == ["", "there is no GPU"]
    assert _said(found) == ""


def test_where_time_is_short_few_fixes_get_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])

    def made(variant: Variant, at: int) -> Any:
        now[0] += 10.0
        return 0, record

    variants = (_BASE, *(Variant(name, ("python",), ".") for name in "abcdef"))
    record = {"values": [[1, 2.0]], "digest": "a", "steps": 6}
    found = _turns(monkeypatch, made, variants, limit_s=100)
    tried = [sum(one is not None for one in runs) for runs in found.runs[1:]]
    assert min(tried[:2]) >= 3
    assert tried[2:] == [0, 0, 0, 0]
    assert "There was no time for" in _said(found)


def test_left_over_processes_are_found_and_ended(tmp_path: Path) -> None:

    processes.adopt_orphans()
    before = processes.below(os.getpid())
    subprocess.run(["sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & exit 0"], check=True)
    found = processes.left_behind(os.getpid(), before)
    assert "sleep 600" in {processes.title(one) for one in found}
    processes.end(found)
    assert not processes.below(os.getpid()) - before
