"""What depends on what while the trace window is open: the graph of every backward pass with the buckets that gradients
are sent in, and the ways of the batches of a data loader with workers; and what torch's allocator says meanwhile.

Promises: nothing is kept outside the window but what is on its way; what would be too much is counted, not kept;
`uninstall` leaves torch as it was found. Times are CLOCK_MONOTONIC, as those of the window's events.
"""

from __future__ import annotations

import contextlib
import functools
import struct
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from leadline.capture.current import CURRENT
from leadline.capture.identity import ProcessIdentity
from leadline.capture.import_hook import ImportHook
from leadline.capture.providers.replaced import Replacements
from leadline.capture.providers.torch_allocator import AllocatorWatch

MOST_NODES = 50_000
MOST_BATCHES = 20_000
_TIMES = struct.Struct("<qq")  # the beginning of WindowTimes, native/collector/window_times.h
_NOT_YET = 2**63 - 1
_ON_ITS_WAY = 10_000


class Dataflow:
    """One per session with a trace window."""

    def __init__(self) -> None:
        self._replaced = Replacements()
        self._hooks = [
            ImportHook("torch.utils.data.dataloader", self._follow_loader),
            ImportHook("torch.nn.parallel.distributed", self._follow_reducer),
        ]
        self._reducers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._graphs: list[dict[str, Any]] = []
        self._batches: list[list[int]] = []
        self._on_its_way: dict[tuple[int, int], list[int]] = {}
        self._loaders: dict[int, int] = {}
        self._nodes = 0
        self._left_out = 0
        self._window: Path | None = None
        self._allocator = AllocatorWatch(self._open)

    def install(self, torch: ModuleType) -> None:
        """Wrap `torch.autograd.backward` and `grad`, and loaders now and later."""
        for name in ("backward", "grad"):
            if callable(vars(torch.autograd).get(name)):
                self._replaced.attribute(torch.autograd, name, self._graphed(vars(torch.autograd)[name]))
        for hook in self._hooks:
            hook.install()
        self._allocator.install(torch)

    def uninstall(self) -> None:
        """Undo `install`."""
        for hook in self._hooks:
            hook.uninstall()
        self._replaced.undo()
        self._allocator.uninstall()

    def forked(self) -> None:
        """A child has nothing of its own yet."""
        self._graphs, self._batches, self._on_its_way, self._nodes, self._left_out = [], [], {}, 0, 0
        self._window = None
        self._allocator.forked()

    def status(self) -> dict[str, Any]:
        """For the process's record; what has nothing to say is left out."""
        found = {"graphs": self._graphs, "batches": self._batches, "dataflow_left_out": self._left_out}
        return {name: value for name, value in found.items() if value} | self._allocator.status()

    def _open(self) -> bool:
        """Whether the trace window of this process is open."""
        if self._window is None:
            session = CURRENT.session
            if session is None:
                return False
            self._window = session.part.window(ProcessIdentity.here())
        try:
            with self._window.open("rb") as file:
                begin, end = _TIMES.unpack(file.read(_TIMES.size))
        except (OSError, struct.error):
            return False
        return bool(begin != _NOT_YET and end == _NOT_YET)

    # ---------------------------------------------------------------- backward passes

    def _graphed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def graphed(tensors: Any, *arguments: Any, **named: Any) -> Any:
            with contextlib.suppress(Exception):  # private names of torch: no graph then
                if self._open():
                    self._walk(tensors if isinstance(tensors, list | tuple) else [tensors])
            return original(tensors, *arguments, **named)

        graphed._torchdynamo_disable = True  # type: ignore[attr-defined]
        return graphed

    def _walk(self, roots: Iterable[Any]) -> None:
        numbers: dict[Any, int] = {}
        nodes: list[Any] = []
        edges: list[int] = []
        waiting = [root.grad_fn for root in roots if getattr(root, "grad_fn", None) is not None]
        for one in waiting:
            numbers.setdefault(one, len(numbers))
        buckets = self._buckets()
        while waiting and self._nodes + len(nodes) < MOST_NODES:
            one = waiting.pop()
            sequence = one._sequence_nr()
            node = [numbers[one], one.name(), sequence if sequence < 2**62 else -1]
            if buckets and (variable := getattr(one, "variable", None)) is not None:
                node.append(buckets.get(id(variable), -1))
            nodes.append(node)
            for following, _ in one.next_functions:
                if following is None:
                    continue
                if following not in numbers:
                    numbers[following] = len(numbers)
                    waiting.append(following)
                edges += [numbers[one], numbers[following]]
        self._left_out += len(waiting)
        self._nodes += len(nodes)
        self._graphs.append({"begin_ns": time.monotonic_ns(), "nodes": nodes, "edges": edges})

    # ---------------------------------------------------------------- buckets of gradients

    def _follow_reducer(self, distributed: ModuleType) -> None:
        module = getattr(distributed, "DistributedDataParallel", None)
        if not isinstance(module, type):
            return
        original = vars(module)["__init__"]

        @functools.wraps(original)
        def made(parallel: Any, *arguments: Any, **named: Any) -> None:
            original(parallel, *arguments, **named)
            self._reducers.add(parallel)

        self._replaced.attribute(module, "__init__", made)

    def _buckets(self) -> dict[int, int]:
        """By the id of a parameter the bucket that it is in; empty without a reducer, before it has settled on buckets,
        and with several reducers, whose buckets would go by the same numbers."""
        if len(self._reducers) != 1:
            return {}
        with contextlib.suppress(Exception):  # private names of torch
            (parallel,) = self._reducers
            listed = parallel._get_ddp_logging_data()["rebuilt_per_bucket_param_indices"]
            parameters = parallel._module_parameters
            return {
                id(parameters[int(place)]): number
                for number, places in enumerate(listed.split(","))
                for place in places.split()
            }
        return {}

    # ---------------------------------------------------------------- batches

    def _follow_loader(self, dataloader: ModuleType) -> None:
        iterator = getattr(dataloader, "_MultiProcessingDataLoaderIter", None)
        if not isinstance(iterator, type):
            return
        for name, wrap in (
            ("_try_put_index", self._queued),
            ("_try_get_data", self._received),
            ("_next_data", self._used),
        ):
            if callable(vars(iterator).get(name)):
                self._replaced.attribute(iterator, name, wrap(vars(iterator)[name]))

    def _loader(self, iterator: Any) -> int:
        return self._loaders.setdefault(id(iterator), len(self._loaders))

    def _queued(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def queued(iterator: Any) -> Any:
            begin_ns = time.monotonic_ns()
            result = original(iterator)
            with contextlib.suppress(Exception):
                index = iterator._send_idx - 1
                key = (self._loader(iterator), index)
                if index == 0:
                    self._on_its_way = {known: one for known, one in self._on_its_way.items() if known[0] != key[0]}
                if index >= 0 and key not in self._on_its_way and len(self._on_its_way) < _ON_ITS_WAY:
                    worker = iterator._workers[iterator._task_info[index][0]].pid
                    self._on_its_way[key] = [worker, begin_ns, 0]
            return result

        return queued

    def _received(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def received(iterator: Any, *arguments: Any, **named: Any) -> Any:
            result = original(iterator, *arguments, **named)
            with contextlib.suppress(Exception):
                if result[0]:
                    index = result[1][0]
                    iterator._leadline_last = index
                    self._on_its_way[self._loader(iterator), index][2] = time.monotonic_ns()
            return result

        return received

    def _used(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def used(iterator: Any) -> Any:
            wanted_ns = time.monotonic_ns()
            result = original(iterator)
            with contextlib.suppress(Exception):
                ordered = getattr(iterator, "_in_order", True)
                index = iterator._rcvd_idx - 1 if ordered else iterator._leadline_last
                key = (self._loader(iterator), index)
                worker, queued_ns, received_ns = self._on_its_way.pop(key)
                if self._open():
                    if len(self._batches) < MOST_BATCHES:
                        times = [queued_ns, received_ns, wanted_ns, time.monotonic_ns()]
                        self._batches.append([key[0], index, worker, *times])
                    else:
                        self._left_out += 1
            return result

        return used
