"""Samples that fall into the moments in which C enters the interpreter, or leaves it."""

from __future__ import annotations

import pytest
from tests.cpu.conftest import may_count_tasks

MAY_CALL = {
    "<module>": {"by_key", "passes_on", "many", "Callable.__call__", "Callable.__add__", "Callable.__init__", "spin"},
    "passes_on": {"negative"},
    "many": {"by_key"},
    "Callable.__add__": {"passes_on"},
    "Callable.__init__": {"by_key"},
}
"""Who calls whom in the first program; CPython 3.10 has no names of classes."""


@pytest.mark.skipif(not may_count_tasks(), reason="needs samples on time")
def test_functions_that_c_calls_are_below_who_called_and_none_is_cut(sample) -> None:
    seen = sample(
        """
        class Callable:
            def __init__(self):
                self.one = by_key(1)
            def __call__(self, number):
                return number
            def __add__(self, other):
                return passes_on(other)
        def by_key(number):
            return number
        def passes_on(number):
            return negative(number)
        def negative(number):
            return -number
        def many(count):
            for number in range(count):
                yield by_key(number)
        numbers = list(range(1000))
        one = Callable()
        begin = time.thread_time()
        while time.thread_time() - begin < 4:
            sorted(numbers, key=by_key)
            list(map(passes_on, numbers))
            sum(many(1000))
            list(map(one, numbers))
            for number in range(300):
                one + number
                Callable()
        """,
        hz=9999,
    )
    may_call = {name.rsplit(".", 1)[-1]: {one.rsplit(".", 1)[-1] for one in names} for name, names in MAY_CALL.items()}
    functions = set(may_call) | set().union(*may_call.values())
    tree = seen.profile.tree
    own = tree.inclusive("cpu_sample").sum
    called: dict[tuple[str, str], int] = {}
    for node in tree.walk():
        frames = [frame for frame in node.path() if frame.kind == "python" and frame.file.endswith("script.py")]
        path = [name for frame in frames if (name := frame.name.rsplit(".", 1)[-1]) in functions]
        if len(path) > 1 and frames[-1].row == node.row and own[node.row]:
            called[path[-2], path[-1]] = called.get((path[-2], path[-1]), 0) + int(own[node.row])
    assert {pair for pair in called if pair[1] not in may_call.get(pair[0], ())} == set(), called
    assert ("passes_on", "negative") in called and ("many", "by_key") in called
    assert seen.losses() == {}


def test_what_a_greenlet_runs_stands_at_its_own_root(sample) -> None:
    """Its first evaluation follows the C frame of whoever started it, who goes on meanwhile."""
    pytest.importorskip("greenlet", reason="greenlet is not installed")
    seen = sample(
        """
        import greenlet
        def work():
            while True:
                spin(0.002)
                others.switch()
        def main():
            global others
            others = greenlet.getcurrent()
            one = greenlet.greenlet(work)
            begin = time.thread_time()
            while time.thread_time() - begin < 1:
                sorted(range(100), key=lambda number: -number)
                one.switch()
        main()
        """,
        hz=997,
    )
    tree = seen.profile.tree
    whole = tree.inclusive("cpu_sample").sum
    inside = sum(int(whole[node.row]) for node in tree.walk() if node.name == "work")
    assert inside > 0.8e9
    above = {tuple(frame.name for frame in node.path() if frame.kind == "python") for node in tree.find(name="work")}
    assert above == {("work",)}
    assert seen.losses() == {}
