"""Functions of a framework replaced by ours, and put back; one that somebody else has replaced since is left alone."""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType
from typing import Any

from leadline.capture.native import load_native


class Replacements:
    """What one provider has replaced, in order."""

    def __init__(self) -> None:
        self._attributes: list[tuple[Any, str, Any, Any]] = []
        self._everywhere: list[tuple[str, Any, Any]] = []

    def attribute(self, owner: Any, name: str, replacement: Any) -> None:
        """Replace an attribute of a class or module; raises KeyError where the owner itself has none of that name."""
        self._attributes.append((owner, name, vars(owner)[name], replacement))
        setattr(owner, name, replacement)
        _be_found(owner, name, replacement)

    def everywhere(self, name: str, original: Any, replacement: Any) -> None:
        """Replace a function wherever it has been imported to; who imports it later gets the replacement."""
        self._everywhere.append((name, original, replacement))
        _exchange([(name, original, replacement)])
        _be_found(sys.modules.get(getattr(original, "__module__", None) or ""), name, replacement)

    def undo(self) -> None:
        """Put everything back, last first."""
        for owner, name, original, replacement in reversed(self._attributes):
            if vars(owner).get(name) is replacement:
                setattr(owner, name, original)
        self._attributes.clear()
        if self._everywhere:
            _exchange([(name, replacement, original) for name, original, replacement in reversed(self._everywhere)])
        self._everywhere.clear()


def _be_found(owner: object, name: str, replacement: object) -> None:
    """pickle looks a function up by its module and name, and refuses one that another function is found for: `os._exit`
    calls itself `posix._exit`, which is not replaced."""
    if not isinstance(owner, ModuleType) or not isinstance(replacement, FunctionType):
        return
    found: Any = sys.modules.get(replacement.__module__)
    for part in replacement.__qualname__.split("."):
        found = getattr(found, part, None)
    is_found, is_here = found is replacement, getattr(owner, name, None) is replacement
    if is_here and not is_found:
        replacement.__module__, replacement.__qualname__ = owner.__name__, name


def living(base: type) -> list[Any]:
    """Every living instance of a class and its subclasses, found in one pass of native code over all objects."""
    return load_native().instances_of(base)


def _exchange(changes: list[tuple[str, Any, Any]]) -> None:
    """Each change is a name, what it has to be for that, and what it becomes. In one pass: programs have thousands of
    modules."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        for name, old, new in changes:
            if names.get(name) is old:
                setattr(module, name, new)
