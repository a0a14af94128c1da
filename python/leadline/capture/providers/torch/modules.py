"""Qualified names of nn.Module objects: tells the native side which object is whose child, and how roots are called.

Promises: costs something when modules are made, nothing when they run; holds no module alive; `uninstall` removes every
hook; raises nothing into the program. What bypasses torch's registration hooks is extended: copies by deepcopy and
unpickling (`Module.__setstate__`), attributes deleted, entries taken out of containers, and DataParallel's replicas.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from leadline.capture.providers.assigned_name import Destination, assigned_name, is_returned
from leadline.capture.providers.call_anchors import CallAnchors
from leadline.capture.providers.replaced import Replacements, living
from leadline.capture.providers.torch.native import TorchNative
from leadline.capture.source_hashes import INSTALLED

_DEEPEST_CONSTRUCTION = 64
"""Frames between a registration and the statement that makes the root: nested constructors and their super() calls."""
_STATEMENTS = 4096
"""Statements remembered by what they assign to."""
_ROOT = 0
"""Stands for the parent where there is none."""
_NOBODY = 0
"""Stands for the child where a name is given up."""
_CONTAINERS = ("ModuleList", "ModuleDict", "Sequential")
_TAKE_OUT = ("insert", "pop", "clear", "__delitem__")
"""Methods of containers that exchange children behind the registration's back."""


class ModuleTracker:
    """Follows the making of modules in this process."""

    def __init__(self, native: TorchNative, torch: ModuleType) -> None:
        self._native = native
        self._module_class: type = torch.nn.Module
        self._is_compiling: Callable[[], bool] = getattr(torch.compiler, "is_compiling", bool)
        self._torch_folder = str(Path(torch.__file__).parent) + "/" if torch.__file__ else "<no file>"
        self._registry: Any = torch.nn.modules.module
        self._known: dict[int, weakref.ref[Any]] = {}
        self._held: dict[int, set[str]] = {}
        self._handles: list[Any] = []
        self._replaced = Replacements()
        self._anchors = CallAnchors(native, torch)
        self._containers = tuple(getattr(torch.nn, name) for name in _CONTAINERS)
        self._destinations: dict[tuple[int, int], tuple[CodeType, Destination]] = {}

    def install(self) -> None:
        """Hook into registration, and take in the modules that there are."""
        self._handles = [
            self._registry.register_module_module_registration_hook(self._unless_compiled(self._on_module)),
            self._registry.register_module_parameter_registration_hook(self._unless_compiled(self._on_parameter)),
        ]
        self._extend(self._module_class, "__setstate__", self._register_children)
        self._extend(self._module_class, "__delattr__", self._compare_children)
        for container in self._containers:
            for method in _TAKE_OUT:
                self._extend(container, method, self._compare_children)
        self._extend(self._module_class, "_replicate_for_data_parallel", self._name_replica)
        self._take_in_existing()
        self._anchors.install()

    def uninstall(self) -> None:
        """Remove the hooks, and forget all names: nobody would say when these objects die."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._replaced.undo()
        self._anchors.uninstall()
        self._native.module_forget_all()
        self._known.clear()  # with the weak references go their callbacks
        self._held.clear()
        self._destinations.clear()

    def _unless_compiled(self, hook: Callable[..., None]) -> Callable[..., None]:
        """torch.compile traces what a model does to its modules (`self.layers[:n]` makes a list of them): it sees hooks
        that do nothing, so that none of ours breaks its graph or is compiled again. It is a frame above the hook."""
        is_compiling = self._is_compiling

        def unless_compiled(*arguments: Any) -> None:
            if not is_compiling():
                hook(*arguments)

        return unless_compiled

    def living(self) -> list[Any]:
        """The modules that are followed, without those that are just being made or have died."""
        found = [one() for one in list(self._known.values())]
        return [one for one in found if one is not None and "_parameters" in vars(one)]

    def _on_module(self, parent: Any, name: str, child: Any) -> None:
        """torch's hook: `child` becomes the attribute `name` of `parent`. None unregisters."""
        try:
            if child is None:
                self._native.module_register(id(parent), _NOBODY, name)
                return
            if id(parent) not in self._known:
                self._know(parent)
                self._name_root(parent, sys._getframe(2))
            self._register(parent, name, child)
        except Exception as error:
            self._count(error)

    def _on_parameter(self, module: Any, name: str, parameter: Any) -> None:
        """torch's hook: seen for leaf modules, which have parameters but no children."""
        if id(module) in self._known:
            return
        try:
            self._know(module)
            self._name_root(module, sys._getframe(2))
        except Exception as error:
            self._count(error)

    def _count(self, error: Exception) -> None:
        """The program builds its model whatever we make of it."""
        self._native.count_loss("internal_error", 1, f"A module could not be given its name ({error!r}).")

    def _register(self, parent: Any, name: str, child: Any) -> None:
        is_new = id(child) not in self._known
        self._know(child)
        self._native.module_register(id(parent), id(child), name)
        self._held.setdefault(id(parent), set()).add(name)
        if is_new:  # it came ready-made: a copy, or one built before measuring began
            self._register_children(child)

    def _register_children(self, parent: Any, _: Any = None) -> None:
        self._know(parent)
        for name, child in _children(parent):
            self._register(parent, name, child)

    def _know(self, module: Any) -> None:
        """Remember the object until it dies; its address may come again."""
        key = id(module)
        if key in self._known:
            return
        known, held, native = self._known, self._held, self._native

        def forget(_: weakref.ref[Any]) -> None:
            held.pop(key, None)
            if known.pop(key, None) is not None:
                native.module_forget(key)

        known[key] = weakref.ref(module, forget)
        self._anchors.add(type(module))

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
            if frame.f_code.co_filename.startswith(self._torch_folder):
                frame = frame.f_back  # what torch.compile calls a module inside is no name to its user
                continue
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
            found = assigned_name(code, offset)
            if found.name and any(folder in code.co_filename for folder in INSTALLED) and is_returned(code, found.name):
                found = Destination(found.name, returned=True)
            kept = self._destinations[id(code), offset] = (code, found)
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
                self._held.setdefault(id(module), set()).add(name)
                roots.discard(id(child))
        main = sys.modules.get("__main__")
        # Locals are found by the native side when the model runs; globals are not locals of any frame.
        for name, value in list(vars(main).items()) if main is not None else []:
            if id(value) in roots and not name.startswith("_"):
                self._native.module_register(_ROOT, id(value), name)

    def _extend(self, owner: Any, method: str, then: Callable[..., None]) -> None:
        """Call `then` with the module and what the method returned, each time a method of torch's has done its work."""
        original = vars(owner).get(method)
        if original is None:
            return
        count, is_compiling = self._count, self._is_compiling

        @functools.wraps(original)
        def extended(module: Any, *arguments: Any, **named: Any) -> Any:
            result = original(module, *arguments, **named)
            if is_compiling():
                return result
            try:
                then(module, result)
            except Exception as error:
                count(error)
            return result

        self._replaced.attribute(owner, method, extended)

    def _compare_children(self, parent: Any, _: Any) -> None:
        """Bring the names of a module's children up to date: some may have gone, or moved up."""
        if id(parent) not in self._known:
            return
        told = self._held.get(id(parent), set())
        for name in told.difference(name for name, _ in _children(parent)):
            self._native.module_register(id(parent), _NOBODY, name)
            told.discard(name)
        self._register_children(parent)

    def _name_replica(self, module: Any, replica: Any) -> None:
        """A replica is called like the module it stands for; replicas of children get their parents afterwards."""
        self._know(replica)
        self._native.module_register(_ROOT, id(replica), self._native.module_name(id(module)))


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
