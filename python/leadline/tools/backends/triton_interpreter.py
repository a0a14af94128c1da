"""Kernels written in Triton, run by Triton's own interpreter on the CPU: what they really read and write.

Every access of an interpreted kernel, descriptors and atomics included, ends in one of four functions of Triton's
module `interpreter`; they are replaced by ones that look first. A program is one block of the grid, and lanes are its
elements in order: who shares a warp on a GPU is the compiler's choice, so warps are those of that order.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.tools.backends import Wants
from leadline.tools.backends.rows import ACCESS, LAUNCH, RowsBackend, Variable, signed
from leadline.tools.tool import Context

EVENTS = frozenset({"launch", "touched", "access", "instruction"})
TRAITS = ("real accesses", "Triton kernels on the CPU", "exact", "lines of the kernel", "masks of lanes")
DOC = "real accesses of Triton kernels, which Triton's interpreter runs on the CPU"
NOTHING = "no Triton kernel was launched"

_WARP = 32
_INSTRUCTION = ("launch", "instruction", "pc", "active", "count", "split", "place")


class _Access:
    """One instruction on one storage in one launch."""

    __slots__ = ("bytes", "count", "seen")

    def __init__(self, size: int, bytes_each: int) -> None:
        self.bytes = bytes_each
        self.count = 0
        self.seen = np.zeros(-(-size // bytes_each), np.bool_)  # one for each element


class _Lanes:
    """One instruction in one launch."""

    __slots__ = ("active", "split", "warps")

    def __init__(self) -> None:
        self.active = self.warps = self.split = 0


class _Launch:
    """A launch under way on one thread: where its storages are, and what has been seen of it."""

    def __init__(self, executor: Any, spans: list[tuple[int, int, Any]]) -> None:
        self.file = executor.fn.__code__.co_filename if hasattr(executor.fn, "__code__") else ""
        self.spans = sorted(spans, key=lambda one: one[0])
        self.begins = np.array([begin for begin, _, _ in self.spans], np.uint64)
        self.ends = np.array([end for _, end, _ in self.spans], np.uint64)
        self.accesses: dict[tuple[int, str, bool], _Access] = {}
        self.lanes: dict[str, _Lanes] = {}
        self.outside = 0

    def look(self, pointers: NDArray[Any], mask: NDArray[Any], each: int, *, load: bool, store: bool) -> None:
        """One instruction of one program."""
        line = self._line()
        chosen = np.asarray(mask, np.bool_).reshape(-1)
        addresses = np.asarray(pointers, np.uint64).reshape(-1)
        lanes = self.lanes.setdefault(line, _Lanes())
        padded = np.zeros(-(-len(chosen) // _WARP) * _WARP, np.bool_)
        padded[: len(chosen)] = chosen
        of_warp = padded.reshape(-1, _WARP).sum(axis=1)
        lanes.active += int(of_warp.sum())
        lanes.warps += len(of_warp)
        lanes.split += int(((of_warp > 0) & (of_warp < min(_WARP, len(chosen)))).sum())
        addresses = addresses[chosen]
        if not len(addresses) or not len(self.spans):
            self.outside += len(addresses)
            return
        span = np.searchsorted(self.begins, addresses, side="right") - 1
        inside = (span >= 0) & (addresses < self.ends[span])
        self.outside += int((~inside).sum())
        for number in np.unique(span[inside]).tolist():
            begin, end, _ = self.spans[number]
            offsets = (addresses[inside & (span == number)] - np.uint64(begin)).astype(np.int64)
            for write, does in ((False, load), (True, store)):
                if does:
                    key = (number, line, write)
                    access = self.accesses.get(key)
                    if access is None:
                        access = self.accesses[key] = _Access(end - begin, each)
                    access.count += len(offsets)
                    access.seen[offsets // access.bytes] = True

    def _line(self) -> str:
        """The line of the kernel, or of what it calls, that runs now: the innermost frame that is no part of Triton."""
        frame: Any = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if "/triton/" not in file and not file.startswith("<frozen") and file != __file__:
                return f"{file.rpartition('/')[2]}:{frame.f_lineno}"
            frame = frame.f_back
        return self.file.rpartition("/")[2]


class TritonBackend(RowsBackend):
    """Has Triton interpret, and looks at each launch."""

    name = "triton-interpreter"
    events = EVENTS
    traits = TRAITS

    def __init__(self, native: Any, context: Context, wants: Wants) -> None:
        super().__init__(context, wants)
        self._native = native
        self._wants = wants
        self._variable = Variable("TRITON_INTERPRET")
        self._local = threading.local()

    def start(self) -> None:
        self._variable.set("1")
        self.on = True
        if "triton" in sys.modules and self._variable.before != "1":
            self._rows.count_lost("Triton was imported before the tools began; kernels defined until then run compiled")
        self._context.when_imported("triton.runtime.interpreter", self._follow)

    def stop(self) -> None:
        self.on = False
        self._variable.put_back()

    # ---------------------------------------------------------------- on the program's threads

    def _follow(self, interpreter: Any) -> None:
        try:
            executor = interpreter.GridExecutor
            run, copy_arguments = executor.__call__, executor._init_args_hst
            looking = _Looking(interpreter._interpreter, self._local)
        except AttributeError as error:
            self._rows.count_lost(f"Triton's interpreter of this release is not the one that is known ({error})")
            return
        backend = self

        def __call__(this: Any, *arguments: Any, **named: Any) -> Any:
            if not backend.on:
                return run(this, *arguments, **named)
            return backend.run(this, run, arguments, named)

        def _init_args_hst(this: Any, arguments: Any, named: Any) -> Any:
            on_host = copy_arguments(this, arguments, named)
            waiting = getattr(backend._local, "waiting", None)
            if waiting is not None:
                backend._local.launch = _Launch(this, _spans((arguments, named), on_host))
            return on_host

        interpreter._interpreter = looking
        executor.__call__ = __call__
        executor._init_args_hst = _init_args_hst

    def run(self, executor: Any, call: Callable[..., Any], arguments: Any, named: Any) -> Any:
        """Run a kernel's whole grid, looking; its result. It is a region, so that it has a place and a time."""
        name = getattr(executor.fn, "__name__", "kernel")
        token = self._native.region_begin(name, None)
        try:
            place = self._native.published_place()
            number = next(self._context.numbers)
            if not self._selector.chooses(number, name, place):
                return call(executor, *arguments, **named)
            return self._look(number, name, place, executor, call, arguments, named)
        finally:
            self._native.region_end(token)

    def _look(
        self, number: int, name: str, place: int, executor: Any, call: Callable[..., Any], arguments: Any, named: Any
    ) -> Any:
        local = self._local
        before = (getattr(local, "waiting", None), getattr(local, "launch", None))
        local.waiting, local.launch = number, None
        before_ns = time.monotonic_ns()
        try:
            return call(executor, *arguments, **named)
        finally:
            took_ns, launch = time.monotonic_ns() - before_ns, local.launch
            local.waiting, local.launch = before
            try:
                self._note(number, name, place, before_ns, took_ns, launch)
            except Exception as error:
                self._rows.count_lost(f"launches whose tensors could not be inspected ({type(error).__name__})")

    def _note(self, number: int, name: str, place: int, time_ns: int, took_ns: int, launch: _Launch | None) -> None:
        names, at = self._context.names, signed(place)
        thread = threading.get_native_id()
        self._rows.put("launch", LAUNCH, [(number, names.number(name), time_ns, took_ns, thread, -1, at, 0, 0)])
        if launch is None:
            return
        if launch.outside:
            self._rows.count_lost("accesses outside of every tensor that a kernel was given", launch.outside)
        by_span: dict[int, list[tuple[str, bool, _Access]]] = {}
        for (span, line, write), access in launch.accesses.items():
            by_span.setdefault(span, []).append((line, write, access))
        touched, accesses = [], []
        for span, of_span in by_span.items():
            begin, end, tensor = launch.spans[span]
            reads = sum(access.count for _, write, access in of_span if not write)
            writes = sum(access.count for _, write, access in of_span if write)
            thing = self._storages.number(tensor, place, "result" if writes and not reads else "input")
            bytes_seen = np.zeros(end - begin, np.bool_)
            for line, write, access in of_span:
                distinct = int(access.seen.sum()) * access.bytes
                offset = int(access.seen.argmax()) * access.bytes
                row = (number, thing, names.number(line), offset, access.bytes, access.count, distinct, int(write), at)
                accesses.append(row)
                bytes_seen |= np.repeat(access.seen, access.bytes)[: end - begin]
            seen = np.flatnonzero(bytes_seen)
            pages = (len(np.unique(seen // size)) for size in self._wants.pages)
            first, over = int(seen[0]), int(seen[-1]) + 1
            touched.append((number, thing, first, over, len(seen), reads, writes, time_ns, at, *pages))
        self._rows.put("touched", self._touched, touched)
        self._rows.put("access", ACCESS, accesses)
        lanes = launch.lanes.items()
        self._rows.put(
            "instruction",
            _INSTRUCTION,
            [(number, names.number(line), -1, one.active, one.warps, one.split, at) for line, one in lanes],
        )


class _Looking:
    """Stands for Triton's module `interpreter`, and looks at what kernels read and write before they do."""

    def __init__(self, real: ModuleType, local: Any) -> None:
        self._real = real
        self._local = local

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def _look(self, pointers: Any, mask: Any, each: int, *, load: bool = False, store: bool = False) -> None:
        launch = getattr(self._local, "launch", None)
        if launch is not None:
            launch.look(pointers, mask, each, load=load, store=store)

    def load(self, pointers: Any, mask: Any, other: Any, dtype: Any, *more: Any) -> Any:
        self._look(pointers, mask, np.dtype(dtype).itemsize, load=True)
        return self._real.load(pointers, mask, other, dtype, *more)

    def store(self, pointers: Any, value: Any, mask: Any, *more: Any) -> Any:
        self._look(pointers, mask, value.dtype.itemsize, store=True)
        return self._real.store(pointers, value, mask, *more)

    def atomic_cas(self, pointers: Any, compare: Any, value: Any, *more: Any) -> Any:
        self._look(pointers, np.ones_like(pointers, np.bool_), value.dtype.itemsize, load=True, store=True)
        return self._real.atomic_cas(pointers, compare, value, *more)

    def atomic_rmw(self, operation: Any, pointers: Any, value: Any, mask: Any, *more: Any) -> Any:
        self._look(pointers, mask, value.dtype.itemsize, load=True, store=True)
        return self._real.atomic_rmw(operation, pointers, value, mask, *more)


def _spans(given: Any, on_host: Any) -> list[tuple[int, int, Any]]:
    """Begin and end on the host of each storage among a kernel's arguments, and the tensor that the program has."""
    spans: dict[int, tuple[int, int, Any]] = {}
    for theirs, ours in zip(_tensors(given), _tensors(on_host), strict=False):
        storage = ours.untyped_storage()
        if storage.nbytes():
            spans.setdefault(storage.data_ptr(), (storage.data_ptr(), storage.data_ptr() + storage.nbytes(), theirs))
    return list(spans.values())


def _tensors(value: Any) -> Iterable[Any]:
    """Tensors among arguments, in tuples, dictionaries, and what wraps one (a reinterpreted tensor, a descriptor)."""
    if hasattr(value, "untyped_storage"):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _tensors(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _tensors(one)
    elif hasattr(getattr(value, "base", None), "untyped_storage"):
        yield value.base


def probe() -> str:
    """Why it would not work here, or empty."""
    import importlib.util

    return "" if importlib.util.find_spec("triton") else "Triton is not installed; pip install triton"


def create(native: Any, context: Context, wants: Wants) -> TritonBackend:
    """See `leadline.tools.backends`."""
    return TritonBackend(native, context, wants)
