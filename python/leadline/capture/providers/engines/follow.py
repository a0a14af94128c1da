"""Methods of an engine's classes wrapped, each checked first: what a release has moved is said once, and the rest goes
on."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

from leadline.capture.contained import lose
from leadline.capture.import_hook import ImportHook
from leadline.capture.native import Native
from leadline.capture.providers.replaced import Replacements

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


class Followed:
    """What one provider wraps of an engine, for people called `engine`."""

    def __init__(self, native: Native, engine: str, changed: Callable[[], None]) -> None:
        self._native = native
        self._engine = engine
        self._changed = changed
        self._replaced = Replacements()
        self._hooks: list[ImportHook] = []
        self._moved: list[str] = []
        self._failed: set[str] = set()
        self.release = ""

    @property
    def sentence(self) -> str:
        """What this release of the engine has elsewhere; empty where all was found."""
        if not self._moved:
            return ""
        places = ", ".join(self._moved)
        known = f"{self._engine} {self.release} has no {places} where this release of Leadline expects it"
        return f"{known}; figures that need it are missing."

    def modules(self, wanted: Iterable[tuple[str, Callable[[ModuleType], None]]]) -> None:
        """Follow each of these modules of the engine once it is imported, or now."""
        self._hooks = [ImportHook(name, follow) for name, follow in wanted]
        for hook in self._hooks:
            hook.install()

    def status(self) -> dict[str, Any]:
        """See `Provider.status`."""
        moved = self.sentence
        return {"ok": not moved, "version": self.release, "message": moved}

    def method(self, owner: Any, name: str, wrap: Wrap, first: Sequence[str]) -> bool:
        """Wrap a method whose first arguments behind `self` are called `first`; whether it was there."""
        original = vars(owner).get(name) if isinstance(owner, type) else None
        if not callable(original) or not _takes(original, first):
            self._moved.append(f"{getattr(owner, '__name__', 'class with')}.{name}")
            self._changed()
            return False
        self._replaced.attribute(owner, name, functools.wraps(original)(wrap(original)))
        return True

    def phase(self, owner: Any, name: str, phase: str, *, outermost: bool = False) -> bool:
        """Everything that the method does is in that phase."""
        native = self._native

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def inside(*arguments: Any, **named: Any) -> Any:
                token = native.phase_begin(phase, outermost=outermost)
                try:
                    return original(*arguments, **named)
                finally:
                    native.phase_end(token)

            return inside

        return self.method(owner, name, wrap, ())

    def lose(self, what: str, error: Exception) -> None:
        """What was to be learnt could not be: counted, and said the first time."""
        if what not in self._failed:
            self._failed.add(what)
            lose(self._native, f"{self._engine}: {what} could not be read", error)

    def undo(self) -> None:
        """Put everything back."""
        for hook in self._hooks:
            hook.uninstall()
        self._replaced.undo()


def _takes(function: Callable[..., Any], first: Sequence[str]) -> bool:
    if not first:
        return True
    try:
        names = list(inspect.signature(function).parameters)[1:]
    except (TypeError, ValueError):
        return False
    return names[: len(first)] == list(first)
