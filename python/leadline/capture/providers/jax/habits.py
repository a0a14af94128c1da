"""Habits of a JAX program that cost: what is noted of its programs while they are lowered and run, for the analyzer.

Notes are small dicts, a bounded number of each kind, in the provider's status as `habits`; a note of the same function
and place again replaces the older one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leadline.capture.native import Native
from leadline.capture.providers.jax.arguments import Arguments
from leadline.capture.providers.jax.lowered import Lowerings
from leadline.capture.providers.jax.reasons import Reasons
from leadline.capture.providers.jax.runs import function_name
from leadline.capture.providers.jax.waits import Waits

_MOST = 40
"""Notes of one kind."""


class Habits:
    """One per session; `changed` is called when something has been learnt, for readers of a program that goes on."""

    def __init__(self, native: Native, loss: Callable[[str], None], changed: Callable[[], None]) -> None:
        self._changed = changed
        self._noted: dict[str, dict[str, dict[str, Any]]] = {}
        self._loss = loss
        self._reasons = Reasons(self.note)
        self._lowerings = Lowerings(self.note, self._reasons.lowered, loss)
        self._arguments = Arguments(self._lowerings.donatable)
        self._waits = Waits(native, loss)

    def install(self) -> None:
        """Begin to look."""
        self._reasons.install()
        self._lowerings.install()
        self._waits.install()

    def uninstall(self) -> None:
        """Look no more, and leave JAX as it was found."""
        self._lowerings.uninstall()
        self._reasons.uninstall()
        self._waits.uninstall()

    def inspect(self, function: Any, name: str, arguments: Any, named: Any, output: Any) -> bool:
        """See `Arguments.inspect`; `name` is `jit(f)`. Whether to inspect the next call of this kind in any case."""
        try:
            copied = self._arguments.inspect(function, function_name(name), arguments, named, output)
            self._waits.given(copied)
        except Exception as error:
            self._loss(f"The arguments of a JAX program could not be inspected ({error!r}).")
            return False
        return bool(copied)

    def note(self, kind: str, fact: dict[str, Any]) -> None:
        """Keep a fact about a function."""
        noted = self._noted.setdefault(kind, {})
        told = (*(fact.get(part, "") for part in ("function", "kind", "shape", "number")), *fact.get("frames", ())[:1])
        key = " ".join(map(str, told))
        if key in noted or len(noted) < _MOST:
            times = noted.get(key, {}).get("times", 0) + 1
            noted[key] = {**fact, "times": times}
            if times & (times - 1) == 0:  # seldom for what is often, as each is written to a file
                self._changed()

    def facts(self) -> dict[str, list[dict[str, Any]]]:
        """All notes by their kind, at the end of the session."""
        for kind, fact in self._arguments.facts():
            self.note(kind, fact)
        return self.until_now()

    def until_now(self) -> dict[str, list[dict[str, Any]]]:
        """The same of what has been noted so far."""
        return {kind: list(noted.values()) for kind, noted in tuple(self._noted.items()) if noted}
