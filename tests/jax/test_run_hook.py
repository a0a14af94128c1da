"""The native hook counts what it was told to count, and asks Python about everything else."""

from __future__ import annotations

import importlib
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import leadline

_NATIVE: Any = importlib.import_module("leadline._native")
RunHook, place = _NATIVE.RunHook, _NATIVE.place


class State:
    """Of somebody else's: what JAX's configuration holds."""

    value: Any = None


class Counted:
    """A hook, what came to Python, and one place to call it from."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.hook = RunHook(lambda function, *_: self.asked.append(function.__name__))
        self.hook.quiet_until_s = math.inf

    def run(self, function: Any) -> int:
        """The place that a run of this function is counted at."""
        return int([self.hook(function, (), {}, None), place()][1])  # on one line: that is a place

    def runs(self, function: Any, times: int = 1) -> None:
        for _ in range(times):
            self.run(function)


def train() -> None: ...


def evaluate() -> None: ...


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counted]:
    with leadline.profile(tmp_path / "x.leadline", quiet=True):
        yield Counted()


def test_a_run_is_counted_where_and_as_what_it_was_added(counted: Counted) -> None:
    for times in range(3):
        here = counted.run(train)
        counted.hook.add(here, train.__name__)
        assert counted.asked == ["train"], "only the first comes to Python"
        assert counted.hook.counts() == ([(here, "train", times)] if times else [])
    counted.runs(train)  # at another place
    counted.runs(evaluate)
    assert counted.asked == ["train", "train", "evaluate"]
    counted.hook.clear()
    assert counted.hook.counts() == []


def test_many_functions_are_told_apart(counted: Counted) -> None:
    functions = [SimpleNamespace(__name__=f"f{number}") for number in range(500)]
    for number, function in enumerate(functions):
        for _ in range(number % 3 + 1):
            counted.hook.add(counted.run(function), function.__name__)
    assert sorted(runs for _, _, runs in counted.hook.counts()) == [1] * 167 + [2] * 166


def test_python_is_asked_when_it_is_time_and_while_somebody_else_has_a_hook(counted: Counted) -> None:
    state = State()
    counted.hook.state = state
    moments: list[Callable[[], Any]] = [lambda: None, lambda: setattr(counted.hook, "quiet_until_s", 0.0)]
    moments += [lambda: setattr(counted.hook, "quiet_until_s", math.inf), lambda: setattr(state, "value", print)]
    moments += [lambda: setattr(counted.hook, "state", None)]
    asked = []
    for moment in [lambda: None, *moments]:
        moment()
        counted.asked.clear()
        counted.hook.add(counted.run(train), train.__name__)
        asked.append(bool(counted.asked))
    assert asked == [True, False, True, False, True, False]
    assert [runs for _, _, runs in counted.hook.counts()] == [3], "what came to Python it counts itself"


def test_a_forked_child_comes_to_python_once() -> None:
    """Without a session, so nothing else does."""
    counted = Counted()
    counted.runs(train)
    assert not counted.asked
    child = os.fork()
    if child == 0:
        counted.runs(train, 3)
        os._exit(len(counted.asked))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_an_error_of_the_function_in_python_is_the_callers() -> None:
    def slow(*_: Any) -> None:
        raise FloatingPointError("nan")

    with pytest.raises(FloatingPointError, match="nan"):
        RunHook(slow)(train, (), {}, None)


def test_from_a_run_to_the_next_of_its_place_is_a_turn(counted: Counted) -> None:
    before = 0
    for times in range(6):
        if times == 1:
            before = time.monotonic_ns()
        here = counted.run(train)
        counted.hook.add(here, train.__name__)
    passed = time.monotonic_ns() - before
    ((name, number, total, shortest, longest, squares),) = counted.hook.turns()
    assert (name, number) == ("train", 4), "the first was not counted here, the second ends no turn"
    assert 0 < shortest <= total / 4 <= longest <= total <= passed
    assert total**2 / 4 <= squares * 1.0001 <= total**2 * 1.0001
    assert counted.hook.turns() == [], "each is returned once"


def test_what_was_ours_is_no_turn(counted: Counted) -> None:
    here = counted.run(train)
    counted.hook.turn(here, train.__name__, True)
    assert counted.hook.turns() == [], "nothing came before it"
    counted.hook.turn(here, train.__name__, False)
    assert counted.hook.turns() == []
    counted.hook.turn(here, train.__name__, True)
    assert [one[:2] for one in counted.hook.turns()] == [("train", 1)]
    assert counted.hook.counts() == [], "none of them was counted here"
