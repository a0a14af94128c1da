"""Programs for `interpreter.py`, and what a profile of each has to say: how often every region and operator ran, and
which bytes are alive at the end. Nothing here is measured: it follows from the program."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

Body = list[Any]
LEFT_OUT: dict[str, str] = {}
"""Faults that are known and not mended: generated programs avoid them, and each has an `xfail` in test_generated.py."""
NAMES = ("a", "b", "c", "d")


@dataclass
class Truth:
    """Counts of regions by name and of `work`, in all processes together; bytes that the main process keeps."""

    regions: Counter[str] = field(default_factory=Counter)
    work: int = 0
    alive: int = 0
    paused: bool = False
    """While counting: pauses are no brackets, the first `resume` ends them all."""


def truth(body: Body) -> Truth:
    found = Truth()
    _count(body, found, 1, kept=True)
    return found


def _count(body: Body, found: Truth, times: int, *, kept: bool) -> None:
    for kind, *rest in body:
        if found.paused and kind not in ("forked", "paused"):
            continue  # nothing inside these forks or pauses
        match kind, rest:
            case "work", _:
                found.work += times
            case "keep", [size]:
                found.alive += times * size if kept else 0
            case "region" | "raising" | "abandoned", [name, inside]:
                found.regions[name] += times
                _count(inside, found, times, kept=kept)
            case "overlap", [first, second, *parts]:
                found.regions.update({first: times})
                found.regions.update({second: times})
                for part in parts:
                    _count(part, found, times, kept=kept)
            case "stacked", [names, inside]:
                for name in names:
                    found.regions[name] += times
                _count(inside, found, times, kept=kept)
            case "suspended", [name, inside, outside]:
                found.regions[name] += times
                _count(inside, found, 2 * times, kept=kept)
                _count(outside, found, times, kept=kept)
            case "interleaved", [names, inside]:
                for name in names:
                    found.regions[name] += times
                _count(inside, found, 2 * len(names) * times, kept=kept)
            case "threaded", [bodies]:
                for one in bodies:
                    _count(one, found, times, kept=kept)
            case "forked", [inside]:
                before = found.paused
                _count(inside, found, times, kept=False)
                found.paused = before  # the child's resume is its own
            case "paused", [inside]:
                found.paused = True
                _count(inside, found, times, kept=kept)
                found.paused = False
            case _:
                raise AssertionError(f"no such action: {kind}")


_name = st.sampled_from(NAMES)
_work = st.just(["work"])
_keep = st.builds(lambda size: ["keep", size], st.integers(1, 999))


def _bodies(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Body]:
    return st.lists(inner, max_size=3)


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    body = _bodies(inner)
    names = st.lists(_name, min_size=1, max_size=3)
    kinds = {
        "overlap": st.tuples(st.just("overlap"), _name, _name, body, body, body),
        "stacked": st.tuples(st.just("stacked"), names, body),
        "suspended": st.tuples(st.just("suspended"), _name, body, body),
        "threaded": st.tuples(st.just("threaded"), st.lists(body, min_size=1, max_size=2)),
        "region": st.tuples(st.sampled_from(["region", "raising", "abandoned"]), _name, body),
    }
    return st.one_of(*(kind for name, kind in kinds.items() if name not in LEFT_OUT)).map(list)


_leaf = st.one_of(_work, _keep)
# an event loop runs in no other one, so coroutines hold plain work and regions
_simple = st.one_of(_leaf, st.builds(lambda name: ["region", name, [["work"]]], _name))
_coroutines = st.builds(
    lambda names, body: ["interleaved", names, body], st.lists(_name, min_size=2, max_size=3), _bodies(_simple)
)
nested = st.recursive(st.one_of(_leaf, _coroutines), _compound, max_leaves=8)


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Forks and pauses: of the whole process, so in threads only where no other one works meanwhile, and pauses never."""
    body = _bodies(inner)
    around = [
        st.builds(lambda inside: ["forked", inside], body),
        st.builds(lambda inside, after: ["threaded", [[["forked", inside], *after]]], _bodies(nested), _bodies(nested)),
        st.builds(lambda inside: ["paused", inside], body),
        st.builds(lambda name, inside: ["region", name, inside], _name, body),
    ]
    return st.one_of(*around)


programs = st.lists(st.one_of(nested, _around(nested), _around(_around(nested))), min_size=1, max_size=4)
