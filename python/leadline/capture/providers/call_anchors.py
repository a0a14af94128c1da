"""Calls that hold the Python frames outside of them in place, so that reading the stack may end there: of modules, and
of autograd's engine.

Promises: changes nothing that Python can see; `uninstall` takes everything back. Where a torch has no such call, or
something else has taken its place, stacks are read further.
"""

from __future__ import annotations

import weakref
from types import ModuleType
from typing import Any

from leadline.capture.providers.torch.native import TorchNative


class CallAnchors:
    """The classes of modules that have been seen, and the engine's method."""

    def __init__(self, native: TorchNative, torch: ModuleType) -> None:
        self._native = native
        self._module_class: type = torch.nn.Module
        self._engine: type = type(getattr(torch.autograd.Variable, "_execution_engine", None))
        self._classes: weakref.WeakSet[type] = weakref.WeakSet()
        self._installed = False

    def install(self) -> None:
        """Take in the classes that there are; others come with `add`."""
        self._installed = True
        classes = [self._module_class]
        while classes:
            found = classes.pop()
            self.add(found)
            classes += found.__subclasses__()
        self._native.anchor_method(self._engine.__dict__.get("run_backward"))

    def add(self, module_class: Any) -> None:
        """A module of this class has been made."""
        if self._installed and module_class not in self._classes:
            self._classes.add(module_class)
            self._native.anchor_calls_of(module_class)

    def uninstall(self) -> None:
        """Calls are as they were; those that run end as they would have."""
        self._installed = False
        self._native.release_method()
        for module_class in list(self._classes):
            self._native.release_calls_of(module_class)
        self._classes.clear()
