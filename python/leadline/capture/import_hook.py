"""Calls back once, right after the program itself has imported a package; at once when it has already.

The package's loader runs untouched, so a failing import shows the traceback it would show without us. What tells that
the import has ended is importlib's own mark on the spec, `_initializing`, set to False as its last act. What goes wrong
in the call is one sentence, never an error of the program's import.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from leadline.capture.messages import say


class ImportHook:
    """Waits for one package at the head of `sys.meta_path`."""

    def __init__(self, package: str, imported: Callable[[ModuleType], None]) -> None:
        self._package = package
        self._imported = imported
        self._busy = False

    def install(self) -> None:
        """Start to wait, or call back now."""
        module = sys.modules.get(self._package)
        if module is None:
            sys.meta_path.insert(0, self)
        elif _is_initializing(module):  # measuring was started from inside the import
            self._watch(module.__spec__)
        else:
            self._call(module)

    def uninstall(self) -> None:
        """Stop waiting."""
        self._package = ""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders give, watched for the end of its import; None for every other name."""
        if fullname != self._package or self._busy:
            return None
        self._busy = True
        try:
            spec = _find(fullname, path, target, self)
        finally:
            self._busy = False
        self._watch(spec)
        return spec

    def _watch(self, spec: ModuleSpec | None) -> None:
        if type(spec) is ModuleSpec:
            spec.__class__ = _WatchedSpec
        if type(spec) is _WatchedSpec:  # another hook may watch the same import
            vars(spec).setdefault("_leadline_ended", []).append(self._import_ended)

    def _import_ended(self) -> None:
        module = sys.modules.get(self._package)  # absent when the import has failed: the program may try again
        if module is not None:
            package = self._package
            self.uninstall()
            self._call(module, package)

    def _call(self, module: ModuleType, package: str = "") -> None:
        try:
            self._imported(module)
        except Exception as error:
            name = package or self._package
            say(f"{name} differs from what this release of Leadline supports and is not measured ({error!r}).")


class _WatchedSpec(ModuleSpec):
    """A spec while its module is being imported; afterwards it is a plain one again."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "_initializing" and not value:
            self.__class__ = ModuleSpec  # type: ignore[assignment]
            for ended in vars(self).pop("_leadline_ended"):
                ended()


def _find(name: str, path: Sequence[str] | None, target: ModuleType | None, without: ImportHook) -> ModuleSpec | None:
    for finder in list(sys.meta_path):
        find = None if finder is without else getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find(name, path, target) if find is not None else None
        if spec is not None:
            return spec
    return None


def _is_initializing(module: ModuleType) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))
