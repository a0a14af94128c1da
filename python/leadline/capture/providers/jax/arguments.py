"""What the first calls of a compiled function are given: arguments that nobody holds any more once it has returned,
whose memory its results could take (`donate_argnums`), and NumPy arrays that every call copies to the device.

Looks at a few calls of each function and then never again. Keeps weak references only.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from leadline.capture.providers.jax import places as jax_places

LOOKS = 8
"""Calls of each place and function that are looked at."""
_ENOUGH = 3
"""Calls after which all of what was seen has to agree."""
_LEAST_BYTES = 64 << 10
_MOST = 2_000
"""Functions and places."""


@dataclass
class _Seen:
    """Of one function: `dead`: bytes by the place of an argument, of calls behind which nobody held it any more;
    `held`: places of arguments that somebody held."""

    names: tuple[str, ...] = ()
    judged: int = 0
    dead: dict[int, int] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)


class Arguments:
    """`donatable`: functions whose results could take the memory of arguments; `enough`: calls that have to agree."""

    def __init__(self, donatable: set[str], enough: int = _ENOUGH) -> None:
        self._enough = enough
        self._donatable = donatable
        self._seen: dict[str, _Seen] = {}
        self._pending: tuple[_Seen, list[tuple[int, int, Callable[[], Any]]]] | None = None

    def inspect(self, function: Any, name: str, arguments: Any, named: Any, output: Any) -> list[Any]:
        """To be called behind the first calls of each function. What the call before has left is judged now: until
        here the program had the time to let go of it, and to use it once more. Returns large NumPy arrays that were
        given."""
        self._judge()
        flatten = jax_places.first("jax.tree_util.tree_leaves", "jax._src.tree_util.tree_leaves")
        if flatten is None:
            return []
        given = [(place, leaf) for place, argument in enumerate(arguments) for leaf in flatten(argument)]
        given += [(-1, leaf) for leaf in (flatten(named) if named else ())]
        large = [(place, leaf) for place, leaf in given if _bytes(leaf) >= _LEAST_BYTES]
        # of an operation of JAX's own nobody can change what it donates
        if name in self._donatable and not str(getattr(function, "__module__", "")).startswith(("jax.", "jax_")):
            self._watch(function, name, [one for one in large if one[0] >= 0], flatten(output))
        return [leaf for _, leaf in large if type(leaf).__module__ == "numpy"]

    def _watch(self, function: Any, name: str, given: list[tuple[int, Any]], output: list[Any]) -> None:
        seen = self._seen.get(name)
        if seen is None:
            if len(self._seen) >= _MOST:
                return
            seen = self._seen[name] = _Seen(_names(function))
        if seen.judged >= LOOKS:
            return
        free = Counter(map(_kind, output))
        pending: list[tuple[int, int, Callable[[], Any]]] = []
        for place, leaf in given:
            if free[_kind(leaf)] and not _is_gone(leaf):
                free[_kind(leaf)] -= 1
                pending.append((place, _bytes(leaf), weakref.ref(leaf)))
        if pending:
            self._pending = (seen, pending)

    def facts(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """(kind of habit, note) of each function."""
        for name, seen in self._seen.items():
            dead = {place: size for place, size in seen.dead.items() if place not in seen.held}
            if seen.judged >= self._enough and dead:
                yield (
                    "donatable",
                    {
                        "function": name,
                        "bytes": sum(dead.values()) // seen.judged,
                        "places": sorted(dead),
                        "arguments": [_named(seen, place) for place in sorted(dead)],
                    },
                )

    def _judge(self) -> None:
        if self._pending is None:
            return
        seen, arrays = self._pending
        self._pending = None
        seen.judged += 1
        for place, size, held in arrays:
            if held() is None:
                seen.dead[place] = seen.dead.get(place, 0) + size
            else:
                seen.held.add(place)


def _names(function: Any) -> tuple[str, ...]:
    code = getattr(getattr(function, "__wrapped__", None), "__code__", None)
    return tuple(code.co_varnames[: code.co_argcount]) if code is not None else ()


def _named(seen: _Seen, place: int) -> str:
    return seen.names[place] if place < len(seen.names) else f"argument {place}"


def _bytes(leaf: Any) -> int:
    size = getattr(leaf, "nbytes", 0) if hasattr(leaf, "dtype") else 0
    return size if isinstance(size, int) else 0


def _kind(leaf: Any) -> tuple[Any, str]:
    return getattr(leaf, "shape", None), str(getattr(leaf, "dtype", ""))


def _is_gone(leaf: Any) -> bool:
    """Whether its memory was donated already."""
    asked = getattr(leaf, "is_deleted", None)
    return asked is None or bool(asked())
