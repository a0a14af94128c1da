"""Qualified names of nn.Module objects: tells the native side which object is whose child, and how roots are called.

Promises: costs something when modules are made, nothing when they run; holds no module alive; `uninstall` removes every
hook; raises nothing into the program. Copies made by deepcopy or unpickling bypass torch's registration hooks, so
`Module.__setstate__` is extended too.
"""

from __future__ import annotations

import functools
import sys
import weakref
from types import CodeType, FrameType, ModuleType
from typing import Any

from leadline.capture.native import Native
from leadline.capture.providers.assigned_name import Destination, assigned_name
from leadline.capture.providers.replaced import living

_DEEPEST_CONSTRUCTION = 64
"""Frames between a registration and the statement that makes the root: nested constructors and their super() calls."""
_STATEMENTS = 4096
"""Statements remembered by what they assign to."""
_ROOT = 0
"""Stands for the parent where there is none."""


class ModuleTracker:
    """Follows the making of modules in this process."""

    def __init__(self, native: Native, torch: ModuleType) -> None:
        self._native = native
        self._module_class: type = torch.nn.Module
        self._registry: Any = torch.nn.modules.module
        self._known: dict[int, weakref.ref[Any]] = {}
        self._handles: list[Any] = []
        self._original_setstate: Any = None
        self._own_setstate: Any = None
        self._destinations: dict[tuple[int, int], tuple[CodeType, Destination]] = {}

    def install(self) -> None:
        """Hook into registration, and take in the modules that there are."""
        self._handles = [
            self._registry.register_module_module_registration_hook(self._on_module),
            self._registry.register_module_parameter_registration_hook(self._on_parameter),
        ]
        self._extend_setstate()
        self._take_in_existing()

    def uninstall(self) -> None:
        """Remove the hooks, and forget all names: nobody would say when these objects die."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        if self._own_setstate is not None and self._module_class.__dict__.get("__setstate__") is self._own_setstate:
            self._module_class.__setstate__ = self._original_setstate  # type: ignore[attr-defined]
        for key in list(self._known):
            self._native.module_forget(key)
        self._known.clear()  # with the weak references go their callbacks
        self._destinations.clear()

    def _on_module(self, parent: Any, name: str, child: Any) -> None:
        """torch's hook: `child` becomes the attribute `name` of `parent`. None unregisters, and has no name to give."""
        if child is None:
            return
        try:
            if id(parent) not in self._known:
                self._know(parent)
                self._name_root(parent, sys._getframe(1))
            self._register(parent, name, child)
        except Exception as error:
            self._count(error)

    def _on_parameter(self, module: Any, name: str, parameter: Any) -> None:
        """torch's hook: seen for leaf modules, which have parameters but no children."""
        if id(module) in self._known:
            return
        try:
            self._know(module)
            self._name_root(module, sys._getframe(1))
        except Exception as error:
            self._count(error)

    def _count(self, error: Exception) -> None:
        """The program builds its model whatever we make of it."""
        self._native.count_loss("internal_error", 1, f"A module could not be given its name ({error!r}).")

    def _register(self, parent: Any, name: str, child: Any) -> None:
        is_new = id(child) not in self._known
        self._know(child)
        self._native.module_register(id(parent), id(child), name)
        if is_new:  # it came ready-made: a copy, or one built before measuring began
            self._register_children(child)

    def _register_children(self, parent: Any) -> None:
        self._know(parent)
        for name, child in _children(parent):
            self._register(parent, name, child)

    def _know(self, module: Any) -> None:
        """Remember the object until it dies; its address may come again."""
        key = id(module)
        if key in self._known:
            return
        known, native = self._known, self._native

        def forget(_: weakref.ref[Any]) -> None:
            if known.pop(key, None) is not None:
                native.module_forget(key)

        known[key] = weakref.ref(module, forget)

    def _name_root(self, module: Any, frame: FrameType | None) -> None:
        """Name a module after what the statement that makes it assigns it to, as far as the statement tells.

        The name is provisional: the native side replaces it when the module becomes somebody's child.
        """
        classes = type(module).__mro__
        for _ in range(_DEEPEST_CONSTRUCTION):
            if frame is None or not _is_method(frame.f_code, classes):
                break
            frame = frame.f_back
        while frame is not None:
            destination = self._destination(frame.f_code, frame.f_lasti)
            name = destination.name or (_global_name(frame, module) if not destination.returned else "")
            if name:
                self._native.module_register(_ROOT, id(module), name)
            if not destination.returned:
                return
            frame = frame.f_back

    def _destination(self, code: CodeType, offset: int) -> Destination:
        """`assigned_name`, remembered per statement: the layers of a model are made by few."""
        if len(self._destinations) > _STATEMENTS:
            self._destinations.clear()
        # The code object is kept so that its id stays its own; hashing it would cost as much as reading it.
        kept = self._destinations.get((id(code), offset))
        if kept is None:
            kept = self._destinations[id(code), offset] = (code, assigned_name(code, offset))
        return kept[1]

    def _take_in_existing(self) -> None:
        """Modules built before measuring began: one pass over all objects, and only where torch was there already."""
        modules = living(self._module_class)
        roots = {id(module) for module in modules}
        for module in modules:
            self._know(module)
            for name, child in _children(module):
                self._know(child)
                self._native.module_register(id(module), id(child), name)
                roots.discard(id(child))
        main = sys.modules.get("__main__")
        # Locals are found by the native side when the model runs; globals are not locals of any frame.
        for name, value in list(vars(main).items()) if main is not None else []:
            if id(value) in roots and not name.startswith("_"):
                self._native.module_register(_ROOT, id(value), name)

    def _extend_setstate(self) -> None:
        original = self._module_class.__dict__.get("__setstate__")
        if original is None:
            return
        register_children, count = self._register_children, self._count

        @functools.wraps(original)
        def __setstate__(module: Any, state: Any) -> None:
            original(module, state)
            try:
                register_children(module)
            except Exception as error:
                count(error)

        self._original_setstate, self._own_setstate = original, __setstate__
        self._module_class.__setstate__ = __setstate__  # type: ignore[attr-defined]


def _children(module: Any) -> list[tuple[str, Any]]:
    """Attribute names and modules below one; empty while its constructor has not got that far."""
    return [(name, child) for name, child in module.__dict__.get("_modules", {}).items() if child is not None]


def _global_name(frame: FrameType, module: Any) -> str:
    """The global variable that holds the module, where the statement is one of a script's own (not of a function)."""
    if frame.f_code.co_name != "<module>":
        return ""
    return next((name for name, value in list(frame.f_globals.items()) if value is module), "")


def _is_method(code: CodeType, classes: tuple[type, ...]) -> bool:
    """Whether a frame runs a method of one of the classes: the constructor of the module, or what it calls on itself.

    Looks at code, not at the frame's locals: reading those would keep the program's objects alive.
    """
    return any(getattr(vars(kind).get(code.co_name), "__code__", None) is code for kind in classes)
