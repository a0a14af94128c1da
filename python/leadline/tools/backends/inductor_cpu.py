"""Kernels that torch.compile makes for the CPU: what they really read and wrote, by launch and tensor.

Inductor's kernels are compiled so that each access is counted (`inductor_compiler`). Products and convolutions that
compiled code leaves to a library are not kernels of it and are not seen.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from leadline.tools.backends import Wants
from leadline.tools.backends.inductor_compiler import MOST_SPANS, Counter, make_compiler, why_not
from leadline.tools.backends.rows import ACCESS, LAUNCH, RowsBackend, Variable, signed
from leadline.tools.installed import ACCESSES, installed
from leadline.tools.tool import Context

EVENTS = frozenset({"launch", "touched", "access"})
TRAITS = ("real accesses", "kernels of torch.compile on the CPU", "exact in units of 4 bytes", "no library kernels")
DOC = "real accesses of kernels that torch.compile makes for the CPU"
NOTHING = (
    "no kernel that torch.compile makes for the CPU ran; operators of eager code and of libraries are seen with "
    "--backend declared"
)

_KERNELS = "cpp_"
_ORIGINS = "_leadline_origins"
"""What the session's provider leaves in a generated module: the lines that each kernel was made from."""


class InductorBackend(RowsBackend):
    """Has Inductor compile with accesses counted, and counts each call of a kernel as a launch."""

    name = "inductor-cpu"
    events = EVENTS
    traits = TRAITS

    def __init__(self, native: Any, context: Context, wants: Wants) -> None:
        super().__init__(context, wants)
        self._place: Callable[[], int] = native.published_place
        self._pages = np.array(wants.pages, np.uint64)
        self._lock = threading.Lock()
        self._counter: Counter
        self._compiler = ""
        self._cache = Variable("TORCHINDUCTOR_CACHE_DIR")

    def start(self) -> None:
        self._counter = Counter(installed(ACCESSES))
        compiler = make_compiler()
        self._compiler = str(compiler.command)
        self._cache.set(str(compiler.cache))  # what is made elsewhere is not counted, nor is it to meet plain runs
        self.on = True
        self._context.when_imported("torch._inductor.config", self._configure)
        self._context.when_imported("torch._inductor.codecache", self._follow)

    def stop(self) -> None:
        self.on = False
        self._cache.put_back()

    # ---------------------------------------------------------------- the compiler's modules

    def _configure(self, config: Any) -> None:
        """For kernels only: with CXX set, extensions that the program builds would be counted, and stay so."""
        config.cpp.cxx = (None, self._compiler)
        if hasattr(config, "cpp_cache_precompile_headers"):  # one cannot follow our header
            config.cpp_cache_precompile_headers = False

    def _follow(self, codecache: ModuleType) -> None:
        cache = codecache.PyCodeCache
        load = vars(cache)["load_by_key_path"].__func__

        @functools.wraps(load)
        def load_by_key_path(*arguments: Any, **named: Any) -> Any:
            module = load(*arguments, **named)
            if self.on:
                self._adopt(module)
            return module

        cache.load_by_key_path = classmethod(load_by_key_path)
        before = getattr(cache, "modules", None) or getattr(cache, "cache", None)  # the latter until torch 2.4
        if before:
            self._rows.count_lost("modules that were compiled before the tools began", len(before))

    def _adopt(self, module: Any) -> None:
        for name, kernel in list(vars(module).items()):
            if not name.startswith(_KERNELS) or not callable(kernel):
                continue
            inner = vars(kernel).get("_kernel") if hasattr(kernel, "__dict__") else None
            if isinstance(kernel, CountedKernel) or isinstance(inner, CountedKernel):
                continue
            if inner is not None:  # the session's provider was here first: its region stands around the launch
                kernel._kernel = CountedKernel(self, name, module, inner)
            else:
                setattr(module, name, CountedKernel(self, name, module, kernel))

    # ---------------------------------------------------------------- on the program's threads

    def run(self, kernel: CountedKernel, arguments: tuple[Any, ...]) -> Any:
        """Run a kernel, counting; its result."""
        place = self._place()
        launch = next(self._context.numbers)
        if place and place not in self._context.places.sources and kernel.line:
            self._context.places.sources[signed(place)] = kernel.line
        if not self._selector.chooses(launch, kernel.name, place):
            return kernel.call(*arguments)
        with self._lock:  # kernels hold the GIL, so nobody waits here who would not wait there
            tensors, spans = _spans(arguments)
            counting = len(tensors) <= MOST_SPANS and self._counter.begin(spans)
            before_ns = time.monotonic_ns()
            try:
                result = kernel.call(*arguments)
            finally:
                after_ns = time.monotonic_ns()
                found = self._counter.end(len(tensors), self._pages) if counting else None
        if found is None:
            self._rows.count_lost("launches whose accesses could not be counted (more than 256 tensors, or nested)")
        try:
            self._note(kernel, launch, place, before_ns, after_ns - before_ns, tensors, found)
        except Exception as error:
            self._rows.count_lost(f"launches whose tensors could not be inspected ({type(error).__name__})")
        return result

    def _note(
        self, kernel: CountedKernel, launch: int, place: int, time_ns: int, took_ns: int, tensors: list[Any], found: Any
    ) -> None:
        number, at = self._context.names.number(kernel.name), signed(place)
        self._rows.put("launch", LAUNCH, [(launch, number, time_ns, took_ns, threading.get_native_id(), -1, at, 0, 0)])
        if found is None:
            return
        results, pages, _ = found
        instruction = self._context.names.number(kernel.line or kernel.name)
        touched, accesses = [], []
        for tensor, sums, of_size in zip(tensors, results.tolist(), pages.tolist(), strict=True):
            read, written, loads, stores, read_distinct, written_distinct, distinct, first, end = sums
            if not (loads or stores):
                continue
            thing = self._storages.number(tensor, place, "result" if written and not read else "input")
            size = tensor.element_size()
            row = (launch, thing, first, end, distinct, read // size, written // size, time_ns, at)
            touched.append((*row, *of_size))
            for is_write, total, different in ((0, read, read_distinct), (1, written, written_distinct)):
                if total:
                    accesses.append((launch, thing, instruction, first, size, total // size, different, is_write, at))
        self._rows.put("touched", self._touched, touched)
        self._rows.put("access", ACCESS, accesses)


class CountedKernel:
    """A generated kernel whose calls are launches; otherwise the kernel itself."""

    def __init__(self, backend: InductorBackend, name: str, module: Any, call: Callable[..., Any]) -> None:
        self._backend = backend
        self._module = module
        self.name = name
        self.call = call

    def __call__(self, *arguments: Any) -> Any:
        if not self._backend.on:
            return self.call(*arguments)
        return self._backend.run(self, arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.call, name)

    @functools.cached_property
    def line(self) -> str:
        """file:line of the program that the kernel was made from, the innermost first; empty where unknown."""
        origin = vars(self._module).get(_ORIGINS, {}).get(self.name)
        sources = getattr(origin, "sources", ())
        return f"{sources[-1].file.rpartition('/')[2]}:{sources[-1].line}" if sources else ""


def _spans(arguments: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """A tensor for each storage among the arguments, and begin and end of the storages, ascending and apart."""
    known: dict[int, tuple[int, int, Any]] = {}
    for one in arguments:
        if hasattr(one, "untyped_storage"):
            storage = one.untyped_storage()
            begin, size = storage.data_ptr(), storage.nbytes()
            if size and (begin not in known or known[begin][1] < begin + size):
                known[begin] = (begin, begin + size, one)
    tensors, spans, over = [], [], 0
    for begin, end, tensor in sorted(known.values(), key=lambda one: one[0]):
        if end <= over:
            continue  # another view of the same memory
        tensors.append(tensor)
        spans += [max(begin, over), end]
        over = end
    return tensors, np.array(spans, np.uint64)


def probe() -> str:
    """Why it would not work here, or empty."""
    return why_not()


def create(native: Any, context: Context, wants: Wants) -> InductorBackend:
    """See `leadline.tools.backends`."""
    return InductorBackend(native, context, wants)
