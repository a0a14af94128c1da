"""Why `jax.jit` compiles a function again: what is different in the call from the one it was compiled for before.

Calls that do not find a program come by Python; where one is then lowered, its arguments are described and compared
with the last description of the same function. Kept are descriptions, never arguments. Promise: nothing is raised into
the call, and `uninstall` leaves no wrapper.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from leadline.capture.providers.jax import places as jax_places
from leadline.capture.providers.replaced import Replacements

_MOST_FUNCTIONS, _MOST_LEAVES = 2_000, 10_000
_LONGEST = 40
_PYTHON = "a Python "
_VALUES = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True)
class _Leaf:
    """An argument, or what one holds. `value`: of what is no array, as text."""

    name: str
    kind: str
    weak: bool = False
    value: str = ""
    place: Any = None


@dataclass(frozen=True)
class _Call:
    function: Callable[[], Any]
    structure: Any
    leaves: tuple[_Leaf, ...]


@dataclass
class _Asked(threading.local):
    """Calls under way on this thread, the innermost last."""

    calls: list[tuple[Any, Any, Any]] = field(default_factory=list)


class Reasons:
    """`note(kind, fact)` hears of each reason."""

    def __init__(self, note: Callable[[str, dict[str, Any]], None]) -> None:
        self._note = note
        self._replaced = Replacements()
        self._asked = _Asked()
        self._known: dict[Any, _Call] = {}

    def install(self) -> None:
        """Follow calls that do not find a program; a release without the place goes without reasons."""
        pjit = jax_places.member("jax._src.pjit")
        flat = hasattr(pjit, "_run_python_pjit")  # since 0.10: (params, flat arguments, function, arguments, named)
        name = "_run_python_pjit" if flat else "_python_pjit_helper"  # (function, about it, *arguments, **named)
        original = getattr(pjit, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def run(*given: Any, **named: Any) -> Any:
            call = given[2:5] if flat and len(given) >= 5 else (given[0], given[2:], named)
            self._asked.calls.append(call)
            try:
                return original(*given, **named)
            finally:
                self._asked.calls.pop()

        self._replaced.attribute(pjit, name, run)

    def uninstall(self) -> None:
        """Undo `install`."""
        self._replaced.undo()

    def lowered(self, name: str) -> None:
        """The innermost call of this thread has no program yet, so one is made."""
        if not self._asked.calls:
            return
        function, arguments, named = self._asked.calls[-1]
        if str(getattr(function, "__module__", "")).startswith(("jax.", "jax_")):
            return
        now = _described(function, arguments, named)
        key = _code_of(function)
        before = self._known.get(key)
        if before is not None or len(self._known) < _MOST_FUNCTIONS:
            self._known[key] = now
        if before is not None and now is not None:
            kind, text = _difference(before, now, function)
            self._note("recompiled", {"function": name, "kind": kind, "text": text})


def _code_of(function: Any) -> Any:
    """What is the same for every function that one `def` or `lambda` makes."""
    while hasattr(function, "__wrapped__") or hasattr(function, "func"):
        function = getattr(function, "__wrapped__", None) or function.func
    code = getattr(function, "__code__", None)
    return code if code is not None else str(getattr(function, "__qualname__", type(function)))


def _described(function: Any, arguments: Any, named: Any) -> _Call:
    flatten = jax_places.member("jax.tree_util.tree_flatten_with_path")
    say = jax_places.member("jax.tree_util.keystr")
    names = _names(function)
    leaves: list[_Leaf] = []
    structures = []
    given = [(names.get(place, f"argument {place}"), value) for place, value in enumerate(arguments)]
    for name, value in [*given, *sorted((named or {}).items())]:
        found, structure = flatten(value)
        structures.append((name, structure))
        leaves += [_leaf(f"{name}{say(path)}", leaf) for path, leaf in found[: _MOST_LEAVES - len(leaves)]]
    return _Call(_weak(function), structures, tuple(leaves))


def _names(function: Any) -> dict[int, str]:
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    first = 1 if hasattr(function, "__self__") else 0
    return dict(enumerate(code.co_varnames[first : code.co_argcount]))


def _leaf(name: str, leaf: Any) -> _Leaf:
    dtype, shape = getattr(leaf, "dtype", None), getattr(leaf, "shape", None)
    if dtype is not None and isinstance(shape, tuple):
        try:
            place = (getattr(leaf, "sharding", None), bool(getattr(leaf, "committed", False)))
        except Exception:  # an argument that is being traced lies nowhere, and says so with a TypeError
            place = (None, False)
        weak = bool(getattr(leaf, "weak_type", False) or getattr(getattr(leaf, "aval", None), "weak_type", False))
        return _Leaf(name, f"{dtype}[{','.join(map(str, shape))}]", weak, "", place)
    value = repr(leaf) if isinstance(leaf, _VALUES) else _hashed(leaf)
    return _Leaf(name, f"{_PYTHON}{type(leaf).__name__}", False, value[:_LONGEST])


def _hashed(leaf: Any) -> str:
    try:
        return f"{type(leaf).__name__} {hash(leaf):x}"
    except Exception:  # it cannot be static then
        return type(leaf).__name__


def _weak(function: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(function)
    except TypeError:
        return lambda: function


def _difference(before: _Call, now: _Call, function: Any) -> tuple[str, str]:
    """(kind of reason, sentence) for a function that is compiled again."""
    old = before.function()
    if old is not function and not (old is not None and old == function):
        return "function", "another function object of the same code"
    if before.structure != now.structure:
        one = next((pair for pair in zip(before.structure, now.structure, strict=False) if pair[0] != pair[1]), None)
        if one is None or one[0][0] != one[1][0]:
            return "structure", f"{len(now.structure)} arguments, {len(before.structure)} before, or other names"
        (name, now_has), (_, had) = one[1], one[0]
        counts = getattr(now_has, "num_leaves", 0), getattr(had, "num_leaves", 0)
        how = (
            f"{counts[0]} values in it, {counts[1]} before"
            if counts[0] != counts[1]
            else "the same number, nested otherwise"
        )
        return "structure", f"{name}: {how}"
    pairs = list(zip(before.leaves, now.leaves, strict=False))
    for kind, differs, text in _WAYS:
        for was, is_ in pairs:
            if differs(was, is_):
                return kind, text(was, is_)
    return "settings", "the same arguments, under other settings or after jax.clear_caches()"


def _sort(leaf: _Leaf) -> str:
    return leaf.kind.partition("[")[0]


_WEAK = {True: "of a Python number (weak type)", False: "of an array"}
_Way = tuple[str, Callable[[_Leaf, _Leaf], bool], Callable[[_Leaf, _Leaf], str]]
_WAYS: tuple[_Way, ...] = (
    (
        "weak",
        lambda was, now: was.kind.startswith(_PYTHON) is not now.kind.startswith(_PYTHON),
        lambda was, now: f"{now.name}: {now.kind}, was {was.kind}",
    ),
    ("type", lambda was, now: _sort(was) != _sort(now), lambda was, now: f"{now.name}: {now.kind}, was {was.kind}"),
    ("shape", lambda was, now: was.kind != now.kind, lambda was, now: f"{now.name}: {now.kind}, was {was.kind}"),
    (
        "weak",
        lambda was, now: was.weak != now.weak,
        lambda was, now: f"{now.name}: {now.kind} {_WEAK[now.weak]}, was {_WEAK[was.weak]}",
    ),
    (
        "placement",
        lambda was, now: was.place != now.place,
        lambda _, now: f"{now.name}: on other devices, or placed there by other means",
    ),
    ("static", lambda was, now: was.value != now.value, lambda was, now: f"{now.name}: {now.value}, was {was.value}"),
)
