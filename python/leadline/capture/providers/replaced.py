"""Functions of a framework replaced by ours, and put back; one that somebody else has replaced since is left alone."""

from __future__ import annotations

import gc
import sys
from typing import Any


class Replacements:
    """What one provider has replaced, in order."""

    def __init__(self) -> None:
        self._attributes: list[tuple[Any, str, Any, Any]] = []
        self._everywhere: list[tuple[str, Any, Any]] = []

    def attribute(self, owner: Any, name: str, replacement: Any) -> None:
        """Replace an attribute of a class or module; raises KeyError where the owner itself has none of that name."""
        self._attributes.append((owner, name, vars(owner)[name], replacement))
        setattr(owner, name, replacement)

    def everywhere(self, name: str, original: Any, replacement: Any) -> None:
        """Replace a function wherever it has been imported to; who imports it later gets the replacement."""
        self._everywhere.append((name, original, replacement))
        _exchange([(name, original, replacement)])

    def undo(self) -> None:
        """Put everything back, last first."""
        for owner, name, original, replacement in reversed(self._attributes):
            if vars(owner).get(name) is replacement:
                setattr(owner, name, original)
        self._attributes.clear()
        if self._everywhere:
            _exchange([(name, replacement, original) for name, original, replacement in reversed(self._everywhere)])
        self._everywhere.clear()


def living(base: type) -> list[Any]:
    """Every living instance of a class and its subclasses.

    Asks for what refers to the classes, not for all objects: a list of all objects would hold a reference to a tuple
    that another thread is just making, and that thread's `tuple(...)` would then fail.
    """
    classes: list[type] = [base]
    known = {base}
    for found in classes:  # grows while it is walked
        children: list[type] = type.__subclasses__(found)
        classes.extend(child for child in children if child not in known)
        known.update(children)
    return [thing for thing in gc.get_referrers(*classes) if issubclass(type(thing), base)]


def _exchange(changes: list[tuple[str, Any, Any]]) -> None:
    """Each change is a name, what it has to be for that, and what it becomes. In one pass: programs have thousands of
    modules."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        for name, old, new in changes:
            if names.get(name) is old:
                setattr(module, name, new)
