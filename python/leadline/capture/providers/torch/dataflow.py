"""What depends on what while the trace window is open: the graph of every backward pass with the buckets that gradients
are sent in, and the ways of the batches of a data loader with workers; and what torch's allocator says meanwhile.

Promises: nothing is kept outside the window but what is on its way; what would be too much is counted, not kept;
`uninstall` leaves torch as it was found. Times are CLOCK_MONOTONIC, as those of the window's events.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from leadline.capture.current import CURRENT
from leadline.capture.import_hook import ImportHook
from leadline.capture.providers.replaced import Replacements
from leadline.capture.providers.torch.allocator import AllocatorWatch
from leadline.capture.providers.torch.graphs import Graphs

MOST_BATCHES = 20_000
_ON_ITS_WAY = 10_000


class Dataflow:
    """One per session with a trace window."""

    def __init__(self) -> None:
        self._replaced = Replacements()
        self._hooks = [
            ImportHook("torch.utils.data.dataloader", self._follow_loader),
            ImportHook("torch.nn.parallel.distributed", self._follow_reducer),
        ]
        self._graphs = Graphs()
        self._batches: list[list[int]] = []
        self._on_its_way: dict[tuple[int, int], list[int]] = {}
        self._loaders: dict[int, int] = {}
        self._left_out = 0
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
        self._graphs.forget()
        self._batches, self._on_its_way, self._left_out = [], {}, 0
        self._allocator.forked()

    def status(self) -> dict[str, Any]:
        """For the process's record; what has nothing to say is left out."""
        left_out = self._left_out + self._graphs.left_out
        found = {"graphs": self._graphs.facts(), "batches": self._batches, "dataflow_left_out": left_out}
        return {name: value for name, value in found.items() if value} | self._allocator.status()

    def _open(self) -> bool:
        """Whether the trace window of this process is open."""
        native = CURRENT.native
        return native is not None and native.trace_is_open()

    # ---------------------------------------------------------------- backward passes

    def _graphed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def graphed(tensors: Any, *arguments: Any, **named: Any) -> Any:
            with contextlib.suppress(Exception):  # private names of torch: no graph then
                if self._open():
                    self._graphs.walk(tensors if isinstance(tensors, list | tuple) else [tensors])
            return original(tensors, *arguments, **named)

        graphed._torchdynamo_disable = True  # type: ignore[attr-defined]
        return graphed

    # ---------------------------------------------------------------- buckets of gradients

    def _follow_reducer(self, distributed: ModuleType) -> None:
        module = getattr(distributed, "DistributedDataParallel", None)
        if not isinstance(module, type):
            return
        original = vars(module)["__init__"]

        @functools.wraps(original)
        def made(parallel: Any, *arguments: Any, **named: Any) -> None:
            original(parallel, *arguments, **named)
            self._graphs.reducers.follow(parallel)

        self._replaced.attribute(module, "__init__", made)

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
