"""What a program does that none of its operators tells: parameters whose gradients no optimizer uses, of what precision
they are, how long turns of a loop over batches take where no optimizer counts steps, and how long workers to start.

Promises: two looks at the parameters in the first ten steps of an optimizer, two more where there are several, one
clock reading a batch; holds no optimizer, module, gradient or loader alive; `uninstall` takes everything back.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from leadline.capture.import_hook import ImportHook
from leadline.capture.native import PLACE_THREAD, Native
from leadline.capture.providers.booked import turn_frame
from leadline.capture.providers.loaders.batch_makers import BatchMakers
from leadline.capture.providers.loaders.passes import LoaderPasses, tensors_in
from leadline.capture.providers.replaced import Replacements
from leadline.capture.providers.torch.module_types import ModuleTypes, threads
from leadline.capture.providers.torch.optimizer_rounds import OptimizerRounds

_LOOK_FIRST = 5
"""The step of an optimizer at which gradients are noted: one that is the same five steps later is not computed here."""
_LOOK_AT = 10
"""The step of an optimizer at which its program is looked at: gradients are there, and other optimizers have begun."""
_LOOK_AGAIN = 12
"""Until then gradients are followed from step to step, where there are several optimizers."""
_MOST_MODULES = 20
_MOST_LOADERS = 16
_MOST_OPTIMIZERS = 8
"""One for each parameter, as Pyro has them, would compare all gradients with all."""
_NS = 1 << 62
Standing = dict[int, tuple["weakref.ref[Any]", int]]


class Habits:
    """One per session; `modules`: the modules that are alive; `changed` is called when something has been learnt."""

    def __init__(self, native: Native, modules: Callable[[], Iterable[Any]], changed: Callable[[], None]) -> None:
        self._native = native
        self._modules = modules
        self._changed = changed
        self._steps: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._rounds = OptimizerRounds()
        self._noted: Standing = {}
        self._turns: dict[int, Turns] = {}
        self._discarded = Discarded()
        self._thrown: dict[int, weakref.ref[Any]] = {}
        self._makers = BatchMakers()
        self._passes = LoaderPasses()
        self._types = ModuleTypes()
        self._replaced = Replacements()
        self._hook = ImportHook("torch.utils.data.dataloader", self._follow_loader)
        self._handle: Any = None
        self.found: dict[str, Any] = {}

    def install(self) -> None:
        """Follow optimizers and loaders."""
        optimizers: Any = importlib.import_module("torch.optim.optimizer")
        self._handle = optimizers.register_optimizer_step_pre_hook(self._before_step)
        modules: Any = importlib.import_module("torch.nn.modules.module")
        self._replaced.attribute(modules.Module, "_apply", self._types.after(modules.Module._apply))
        self._hook.install()

    def uninstall(self) -> None:
        """Book the turns, and undo `install`."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        self._hook.uninstall()
        self._replaced.undo()
        self._makers.stop()
        self._passes.stop()
        for turns in self._turns.values():
            turns.book(self._native)
        self._turns.clear()

    def forked(self) -> None:
        """In the child: what the parent's loops did is the parent's to say."""
        self._turns.clear()
        self._makers.forked()
        self._passes.forked()

    def facts(self) -> dict[str, Any]:
        """For the process's record."""
        told = {
            "batches": self._makers.facts(),
            "passes": self._passes.facts(),
            "types": self._types.facts(),
            "threads": threads(),
        }
        return {**self.found, **{name: listed for name, listed in told.items() if listed}}

    # ---------------------------------------------------------------- turns of loops over batches

    def _follow_loader(self, dataloader: ModuleType) -> None:
        iterator = getattr(dataloader, "_BaseDataLoaderIter", None)
        if isinstance(iterator, type) and callable(vars(iterator).get("__next__")):
            self._replaced.attribute(iterator, "__next__", self._timed(vars(iterator)["__next__"]))
        of_workers = getattr(dataloader, "_MultiProcessingDataLoaderIter", None)
        if isinstance(of_workers, type) and callable(vars(of_workers).get("__init__")):
            self._replaced.attribute(of_workers, "__init__", self._passes.starting(vars(of_workers)["__init__"]))

    def _timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A batch that has come ends the turn that began with the one before. Loaders are told apart by their data."""

        @functools.wraps(original)
        def following(iterator: Any) -> Any:
            first = None
            with contextlib.suppress(Exception):  # a data set of the program's own may be anything
                self._makers.follow(iterator)
                first = self._passes.first_of(iterator)
            began_ns = time.perf_counter_ns() if first is not None else 0
            batch = original(iterator)
            came_ns = time.perf_counter_ns()
            if first is not None:
                first["first_ns"] += came_ns - began_ns
                with contextlib.suppress(Exception):
                    first["tensors"] = max(first.get("tensors", 0), tensors_in(batch))
            data = id(getattr(iterator, "_dataset", None))
            turns = self._turns.get(data)
            if turns is None:
                if len(self._turns) >= _MOST_LOADERS:
                    return batch
                turns = self._turns.setdefault(data, Turns())
            turns.batch_came(iterator, came_ns)
            return batch

        return following

    # ---------------------------------------------------------------- gradients that nobody uses

    def _before_step(self, optimizer: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """torch's hook; changes nothing."""
        if not self._rounds.begins(optimizer):
            self._native.optimizer_follows()
        steps = self._steps.get(optimizer, 0) + 1
        self._steps[optimizer] = steps
        if steps == _LOOK_FIRST or _LOOK_AT <= steps <= _LOOK_AGAIN:
            try:
                if steps == _LOOK_FIRST:
                    self._noted = self._noted or standing(list(self._modules()))
                    return
                if steps == _LOOK_AT:
                    self._look()
                self._follow_gradients(optimizer)
            except Exception as error:
                self._native.count_loss("internal_error", 1, f"Parameters could not be inspected ({error!r}).")

    def _look(self) -> None:
        updated = {id(one): one for several in map(parameters_of, list(self._steps)) for one in several}
        self._tell("unused_gradients", unused_gradients(list(self._modules()), set(updated), self._noted))
        self._tell("updated", precision(list(updated.values())))

    def _follow_gradients(self, optimizer: Any) -> None:
        """Gradients that were computed for another optimizer's step and are gone at their own."""
        others = [one for one in list(self._steps) if one is not optimizer]
        if not 0 < len(others) < _MOST_OPTIMIZERS:
            return
        own = parameters_of(optimizer)
        theirs = [one for several in map(parameters_of, others) for one in several]
        if thrown := self._discarded.before_step(own, theirs):
            self._thrown.update({id(one): weakref.ref(one) for one in thrown})
            thrown = [one for one in (known() for known in self._thrown.values()) if one is not None]
            modules = list(self._modules())
            with_gradient = {id(one): _own_parameters(one) for one in modules}
            wanted = {id(one): one for one in thrown}
            named = _named(_outermost(modules, with_gradient, wanted))
            self._tell("discarded_gradients", {"modules": named, "parameters": sum(one.numel() for one in thrown)})

    def _tell(self, name: str, found: dict[str, Any]) -> None:
        if found != self.found.get(name):
            self.found[name] = found
            self._changed()


class Turns:
    """From batch to batch of one loader's data: number, sum, smallest, largest, sum of squares."""

    def __init__(self) -> None:
        self.count = self.sum = self.max = 0
        self.min = _NS
        self.squares = 0.0
        self._iterator: Callable[[], Any] = lambda: None
        self._last_ns = 0

    def batch_came(self, iterator: Any, now_ns: int) -> None:
        """The first batch of an iterator ends no turn: the time before it is another pass's."""
        if self._iterator() is iterator:
            turn = now_ns - self._last_ns
            self.count += 1
            self.sum += turn
            self.min, self.max = min(self.min, turn), max(self.max, turn)
            self.squares += float(turn) * turn
        else:
            self._iterator = weakref.ref(iterator)  # the address of one that is gone may be the next one's
        self._last_ns = now_ns

    def book(self, native: Native) -> None:
        """As a phase of this thread, beside its steps."""
        if self.count:
            native.book(
                PLACE_THREAD,
                [turn_frame()],
                [("call_time", self.count, self.sum, self.min, self.max, self.squares)],
                "cpu",
                -1,
                -1,
            )


def standing(modules: list[Any]) -> Standing:
    """The gradients that are there now, by the identity of their parameter, each with how often it was written."""
    having = {id(one): one.grad for module in modules for one in _own_parameters(module)}
    return {key: (weakref.ref(gradient), gradient._version) for key, gradient in having.items()}


def unused_gradients(modules: list[Any], updated: set[int], noted: Standing) -> dict[str, Any]:
    """The outermost modules all of whose gradients belong to no optimizer, with numbers and bytes of parameters; empty
    where there are none, or where optimizers keep parameters of their own (copies in another precision).

    `noted`: what stood some steps ago; what is unchanged since then an earlier part of the program has left behind.
    """
    own = {id(module): [one for one in _own_parameters(module) if _is_new(one, noted)] for module in modules}
    everything = {id(one): one for several in own.values() for one in several}
    unused = {key: one for key, one in everything.items() if key not in updated}
    if not unused or len(unused) == len(everything):
        return {}
    return {
        "modules": _named(_outermost(modules, own, unused)),
        "parameters": sum(one.numel() for one in unused.values()),
        "bytes": sum(one.numel() * one.element_size() for one in unused.values()),
        "of_parameters": sum(one.numel() for one in everything.values()),
    }


class Discarded:
    """Which gradients were there when one optimizer stepped, and are others when their own does: a backward pass that
    went too far, and `zero_grad`. What stayed from their own last step was used in it.

    Needs two steps of the optimizer that a gradient belongs to, and gradients that are set to None, as is usual.
    """

    def __init__(self) -> None:
        self._used: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._waiting: dict[int, weakref.ref[Any]] = {}

    def before_step(self, own: list[Any], others: list[Any]) -> list[Any]:
        """The parameters of this optimizer whose gradients were computed in vain."""
        thrown = []
        for one in own:
            waiting = self._waiting.pop(id(one), None)
            gradient = one.grad
            if gradient is None:
                continue
            if waiting is not None and waiting() is not gradient:
                thrown.append(one)
            self._used[id(one)] = (weakref.ref(gradient), gradient._version)
        mine = {id(one) for one in own}
        for one in others:
            used = self._used.get(id(one))
            gradient = one.grad
            if gradient is None or used is None or id(one) in mine:
                continue
            known, version = used
            unchanged = known() is gradient
            if not unchanged or version != gradient._version:
                self._waiting[id(one)] = weakref.ref(gradient)
        return thrown


def parameters_of(optimizer: Any) -> list[Any]:
    return [one for group in optimizer.param_groups for one in group["params"]]


def precision(updated: list[Any]) -> dict[str, Any]:
    """Numbers and bytes of the parameters that optimizers update, and how many are of double precision."""
    numbers = [one for one in updated if one.is_floating_point()]
    return {
        "parameters": sum(one.numel() for one in numbers),
        "bytes": sum(one.numel() * one.element_size() for one in numbers),
        "double": sum(one.numel() for one in numbers if one.element_size() == 8),
    }


def _named(found: Iterable[tuple[str, Any, list[Any]]]) -> list[dict[str, Any]]:
    named = [
        {"module": name, "class": type(module).__name__, "parameters": sum(one.numel() for one in below)}
        for name, module, below in found
    ]
    return sorted(named, key=lambda one: -one["parameters"])[:_MOST_MODULES]


def _own_parameters(module: Any) -> list[Any]:
    return [one for one in module._parameters.values() if _has_gradient(one)]


def _has_gradient(parameter: Any) -> bool:
    return parameter is not None and parameter.requires_grad and parameter.grad is not None


def _is_new(parameter: Any, noted: Standing) -> bool:
    before = noted.get(id(parameter))
    if before is None:
        return True
    known, version = before
    gradient: Any = known()
    return gradient is None or gradient is not parameter.grad or bool(version != gradient._version)


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
