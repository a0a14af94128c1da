"""Calls back once, right after the program itself has imported a package; at once when it has already.

The package's own loader runs unchanged: only its `exec_module` is extended, on the one loader object of that import,
and nothing of it is left when the import has ended.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class ImportHook(MetaPathFinder):
    """Waits for one package at the head of `sys.meta_path`."""

    def __init__(self, package: str, imported: Callable[[ModuleType], None]) -> None:
        self._package = package
        self._imported = imported
        self._busy = False

    def install(self) -> None:
        """Start to wait, or call back now."""
        module = sys.modules.get(self._package)
        if module is not None and not _is_initializing(module):
            self._imported(module)
        else:
            sys.meta_path.insert(0, self)

    def uninstall(self) -> None:
        """Stop waiting."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders give, with the call-back behind its loader; None for every other name."""
        if fullname != self._package or self._busy:
            return None
        self._busy = True
        try:
            spec = _find(fullname, path, target, self)
        finally:
            self._busy = False
        loader = spec.loader if spec is not None else None
        if spec is None or loader is None or not hasattr(loader, "exec_module"):
            return spec
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            loader.__dict__.pop("exec_module", None)
            execute(module)
            self.uninstall()
            self._imported(module)

        # On the instance: the class serves every other import.
        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _find(
    name: str, path: Sequence[str] | None, target: ModuleType | None, without: MetaPathFinder
) -> ModuleSpec | None:
    for finder in list(sys.meta_path):
        if finder is without:
            continue
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find(name, path, target) if find is not None else None
        if spec is not None:
            return spec
    return None


def _is_initializing(module: ModuleType) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))
