"""`leadline why` says what it cannot run or read before it says that it measures."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from tests.analysis.test_findings import training

from leadline.cli import main as cli
from leadline.cli import why
from leadline.profiles import Profile, live

if TYPE_CHECKING:
    from leadline.capture.part import PartDirectory


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothere.py"], "Cannot run nothere.py: there is no such file"),
        (["--", "no-such-command"], "Cannot run no-such-command: no such command"),
        (["notes.txt"], "notes.txt is not a profile, a trace that Leadline can read, or a Python script"),
    ],
)
def test_what_cannot_be_measured_is_said_first(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("hello world\n")
    assert cli.main(["why", *words]) != 0
    text = capsys.readouterr().err
    assert said in text
    assert "measuring" not in text
    assert not list(tmp_path.glob("*.leadline"))


class Looks:
    """A run whose looks are given, the last one again and again."""

    def __init__(self, *profiles: Profile) -> None:
        self.left = list(profiles)

    def __call__(self, directory: Path) -> Looks:
        return self

    def read(self) -> SimpleNamespace:
        return SimpleNamespace(whole=self.left.pop(0) if len(self.left) > 1 else self.left[0])


def watched(monkeypatch: pytest.MonkeyPatch, *profiles: Profile) -> why.Watch:
    monkeypatch.setattr(live, "LiveRun", Looks(*profiles))
    return why.Watch(argparse.Namespace(format="text", steps=0, seconds=60.0))


PART = cast("PartDirectory", SimpleNamespace(directory=Path("run.part"), output="run.leadline"))


def test_what_a_set_up_repeats_is_no_step_of_a_program_that_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = watched(monkeypatch, *(training(steps=steps) for steps in (148, 148, 40, 80)))
    said = []
    for passed in (8.0, 12.0, 18.0, 27.0):
        watch.look_now(PART, passed)
        said.append(capsys.readouterr().err)
    assert said[:3] == ["", "", ""]
    assert "80 steps so far" in said[3]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives threads priorities of their own")
@pytest.mark.parametrize("ended", [False, True])
def test_a_look_yields_to_the_program_and_is_silent_once_that_has_ended(
    ended: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    priorities: list[int] = []
    may_go_on = threading.Event()

    class Slow(Looks):
        def read(self) -> SimpleNamespace:
            priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
            assert may_go_on.wait(60)
            return super().read()

    for name in ("_FIRST_LOOK_S", "_LAST_LOOK_S"):
        monkeypatch.setattr(why, name, 0.0)
    watch = watched(monkeypatch, training(steps=60))
    watch.look_now(PART, 8.0)
    monkeypatch.setattr(live, "LiveRun", Slow(training(steps=80)))
    before, own = set(threading.enumerate()), os.getpriority(os.PRIO_PROCESS, 0)
    for _ in range(2):  # the second time one is under way
        watch.look(PART)
    (looking,) = set(threading.enumerate()) - before
    if ended:
        watch.end()
    may_go_on.set()
    looking.join(60)
    assert priorities == [19] and os.getpriority(os.PRIO_PROCESS, 0) == own
    assert ("80 steps so far" in capsys.readouterr().err) is not ended


def test_the_verdict_of_the_whole_run_is_said_unless_it_is_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = watched(monkeypatch, training(steps=40), training(steps=80))
    for passed in (8.0, 12.0):
        watch.look_now(PART, passed)
    capsys.readouterr()
    watch.tell_at_the_end(training(steps=200), "run.leadline")
    assert "the verdict is the same for the whole run" in capsys.readouterr().err
    other_place = training("python main @ /home/ada/train.py:43", "  operator aten::mm | time=900000000/10")
    dense = training("python main @ /home/ada/train.py:43", "  operator aten::to_dense | time=20000000/10")
    assert dense.verdict.fixes and dense.verdict.place == training(steps=200).verdict.place
    for other in (other_place, training(steps=200, loading_ms=8), dense):  # the last: another remedy
        watch.tell_at_the_end(other, "run.leadline")
        said = capsys.readouterr().err
        assert "the same" not in said and "steps, " in said
