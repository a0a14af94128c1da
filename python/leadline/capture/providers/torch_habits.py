"""What a program does that none of its operators tells: parameters whose gradients no optimizer uses, and how long the
turns of a loop over batches take where no optimizer counts steps.

Promises: one look at the parameters in the tenth step of an optimizer, one clock reading a batch; holds no optimizer,
module or loader alive; `uninstall` takes everything back.
"""

from __future__ import annotations

import functools
import importlib
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from leadline.capture.import_hook import ImportHook
from leadline.capture.native import Native
from leadline.capture.providers.replaced import Replacements

PHASE = "turn"
_LOOK_AT = 10
"""The step of an optimizer at which its program is looked at: gradients are there, and other optimizers have begun."""
_MOST_MODULES = 20
_MOST_LOADERS = 16
_NS = 1 << 62


class Habits:
    """One per session; `modules`: the modules that are alive; `changed` is called when something has been learnt."""

    def __init__(self, native: Native, modules: Callable[[], Iterable[Any]], changed: Callable[[], None]) -> None:
        self._native = native
        self._modules = modules
        self._changed = changed
        self._steps: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._turns: dict[int, Turns] = {}
        self._replaced = Replacements()
        self._hook = ImportHook("torch.utils.data.dataloader", self._follow_loader)
        self._handle: Any = None
        self.found: dict[str, Any] = {}

    def install(self) -> None:
        """Follow optimizers and loaders."""
        optimizers: Any = importlib.import_module("torch.optim.optimizer")
        self._handle = optimizers.register_optimizer_step_pre_hook(self._before_step)
        self._hook.install()

    def uninstall(self) -> None:
        """Book the turns, and undo `install`."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        self._hook.uninstall()
        self._replaced.undo()
        for turns in self._turns.values():
            turns.book(self._native)
        self._turns.clear()

    def forked(self) -> None:
        """In the child: what the parent's loops did is the parent's to say."""
        self._turns.clear()

    # ---------------------------------------------------------------- turns of loops over batches

    def _follow_loader(self, dataloader: ModuleType) -> None:
        iterator = getattr(dataloader, "_BaseDataLoaderIter", None)
        if isinstance(iterator, type) and callable(vars(iterator).get("__next__")):
            self._replaced.attribute(iterator, "__next__", self._timed(vars(iterator)["__next__"]))

    def _timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A batch that has come ends the turn that began with the one before. Loaders are told apart by their data."""

        @functools.wraps(original)
        def following(iterator: Any) -> Any:
            batch = original(iterator)
            data = id(getattr(iterator, "_dataset", None))
            turns = self._turns.get(data)
            if turns is None:
                if len(self._turns) >= _MOST_LOADERS:
                    return batch
                turns = self._turns.setdefault(data, Turns())
            turns.batch_came(id(iterator), time.perf_counter_ns())
            return batch

        return following

    # ---------------------------------------------------------------- gradients that nobody uses

    def _before_step(self, optimizer: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """torch's hook; changes nothing."""
        steps = self._steps.get(optimizer, 0) + 1
        self._steps[optimizer] = steps
        if steps == _LOOK_AT:
            try:
                self._look()
            except Exception as error:
                self._native.count_loss("internal_error", 1, f"Parameters could not be looked at ({error!r}).")

    def _look(self) -> None:
        updated = {
            id(parameter) for one in list(self._steps) for group in one.param_groups for parameter in group["params"]
        }
        found = unused_gradients(list(self._modules()), updated)
        if found != self.found.get("unused_gradients"):
            self.found["unused_gradients"] = found
            self._changed()


class Turns:
    """From batch to batch of one loader's data: number, sum, smallest, largest, sum of squares."""

    def __init__(self) -> None:
        self.count = self.sum = self.max = 0
        self.min = _NS
        self.squares = 0.0
        self._iterator, self._last_ns = 0, 0

    def batch_came(self, iterator: int, now_ns: int) -> None:
        """The first batch of an iterator ends no turn: the time before it is another pass's."""
        if self._iterator == iterator:
            turn = now_ns - self._last_ns
            self.count += 1
            self.sum += turn
            self.min, self.max = min(self.min, turn), max(self.max, turn)
            self.squares += float(turn) * turn
        self._iterator, self._last_ns = iterator, now_ns

    def book(self, native: Native) -> None:
        """As a phase of this thread, beside its steps: of one call each, no time of its own."""
        if self.count:
            frame = ("phase", PHASE, "", "", "", 0, 0, 0)
            native.book(
                -1, [frame], [("call_time", self.count, self.sum, self.min, self.max, self.squares)], "cpu", -1, -1
            )


def unused_gradients(modules: list[Any], updated: set[int]) -> dict[str, Any]:
    """The outermost modules all of whose gradients belong to no optimizer, with numbers and bytes of parameters; empty
    where there are none, or where optimizers keep parameters of their own (copies in another precision)."""
    own = {id(module): [one for one in module._parameters.values() if _has_gradient(one)] for module in modules}
    everything = {id(one): one for several in own.values() for one in several}
    unused = {key: one for key, one in everything.items() if key not in updated}
    if not unused or len(unused) == len(everything):
        return {}
    named = [
        {"module": name, "class": type(module).__name__, "parameters": sum(one.numel() for one in below)}
        for name, module, below in _outermost(modules, own, unused)
    ]
    named.sort(key=lambda one: -one["parameters"])
    return {
        "modules": named[:_MOST_MODULES],
        "parameters": sum(one.numel() for one in unused.values()),
        "bytes": sum(one.numel() * one.element_size() for one in unused.values()),
        "of_parameters": sum(one.numel() for one in everything.values()),
    }


def _has_gradient(parameter: Any) -> bool:
    return parameter is not None and parameter.requires_grad and parameter.grad is not None


def _outermost(
    modules: list[Any], own: dict[int, list[Any]], unused: dict[int, Any]
) -> Iterator[tuple[str, Any, list[Any]]]:
    children = {id(child) for module in modules for child in module._modules.values() if child is not None}
    waiting = [("", module) for module in modules if id(module) not in children]
    seen: set[int] = set()
    while waiting:
        name, module = waiting.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        below = list({id(one): one for part in module.modules() for one in own.get(id(part), ())}.values())
        if below and all(id(one) in unused for one in below):
            seen |= {id(part) for part in module.modules()}
            yield name, module, below
        elif any(id(one) in unused for one in below):
            waiting += [
                (f"{name}.{key}".lstrip("."), child) for key, child in module._modules.items() if child is not None
            ]
