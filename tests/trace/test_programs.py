"""Edges inside of programs: drawn events of one run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.schema import EventKind
from leadline.trace.programs import program_edges

Pairs = set[tuple[int, int]]


def _edges(executed: list[tuple[str, int]], graph: dict[str, object], first: int = 1) -> tuple[Pairs, Pairs]:
    """Of operands and of launches, as pairs of begins; `executed`: names and begins, the call without a name."""
    count = len(executed)
    events: dict[str, NDArray[Any]] = {
        "start_ns": np.array([begin for _, begin in executed], dtype=np.int64),
        "kind": np.full(count, int(EventKind.OPERATOR), dtype=np.uint8),
        "correlation": np.full(count, first, dtype=np.uint64),
    }
    told = {"first": first, "graphs": [graph], "runs": [0]}
    found, launched = program_edges(events, np.arange(count), [name for name, _ in executed], told)
    begins = [begin for _, begin in executed]
    return {(begins[one], begins[other]) for one, other in found}, {
        (begins[one], begins[other]) for one, other in launched
    }


def test_a_later_turn_waits_for_the_one_before_and_was_not_launched_by_the_call() -> None:
    graph = {"calls": ["sin", "mul"], "edges": [0, 1, 1, 0]}
    executed = [("", 0), ("sin", 10), ("mul", 20), ("sin", 30), ("mul", 40)]
    for first in (1, 1 << 32):
        found, launched = _edges(executed, graph, first)
        assert found == {(10, 20), (20, 30), (30, 40)} and launched == {(0, 10)}
    found, launched = _edges(executed, {"calls": ["sin", "mul"], "edges": [0, 1]})
    assert found == {(10, 20), (30, 40)} and launched == {(0, 10)}  # of the turn at 30 nothing is told


def test_what_is_not_told_of_is_not_launched_by_the_call() -> None:
    graph = {"calls": ["made", "put in"], "edges": [], "unknown": [1]}
    found, launched = _edges([("", 0), ("made", 10), ("put in", 20)], graph)
    assert not found and launched == {(0, 10)}
