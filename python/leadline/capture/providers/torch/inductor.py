"""Kernels that torch.compile generates: which operators and which lines of the program each one came from.

Two sources, both the framework's own records: the graph nodes that Inductor fuses (while it generates code), and the
line map it keeps with generated code (also from its cache). Kernels written for Triton by hand are in triton.py.
GPU kernels get them by name; CPU kernels, which call no operator that could be seen, become regions with that detail.
Compilation is a phase, with what it spends in dynamo, inductor and autotuning below it. Promises: never imports a
compiler by itself, changes no generated code and no cache key; whatever the compiler changes costs the detail only.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from leadline.capture.config import Options
from leadline.capture.import_hook import ImportHook
from leadline.capture.native import Native
from leadline.capture.providers.gpu.generated_kernels import GpuKernels
from leadline.capture.providers.replaced import Replacements
from leadline.capture.providers.torch.compile_phases import PhaseStack, follow_timings
from leadline.capture.providers.torch.compiled_graphs import graph_of
from leadline.capture.providers.torch.kernel_origin import Origin, origin_of_generated, origin_of_nodes
from leadline.capture.providers.torch.triton import TritonKernels

_KERNEL_PREFIXES = ("cpp_fused", "triton_")
_MOST_GRAPHS = 64
_KNOWN = "_leadline_origins"
"""What a generated module keeps of its kernels, for the sessions that come after this one."""


class InductorProvider:
    """One per session; waits for the compiler's modules, each of which it follows once the program has imported it."""

    name = "torch.compile"

    def __init__(self, native: Native, options: Options, changed: Callable[[], None]) -> None:
        self._native = native
        self._gpu = cast(GpuKernels, native)
        self._changed = changed
        self._graphs: dict[str, dict[str, list[object]]] = {}
        self._origins: dict[str, Origin] = {}
        self._fresh: dict[str, Origin] = {}
        self._replaced = Replacements()
        self._running = False
        self._phases = PhaseStack(native)
        self._triton = TritonKernels(native, self._gpu, self._phases)
        self._hooks = [
            ImportHook("torch._dynamo.utils", self._guarded(self._follow_phases)),
            ImportHook("torch._inductor.codecache", self._guarded(self._follow_loading)),
            ImportHook("torch._inductor.codegen.cpp", self._guarded(self._follow_cpp)),
            ImportHook("torch._inductor.codegen.triton", self._guarded(self._follow_triton)),
            *(ImportHook(module, self._guarded(follow)) for module, follow in self._triton.hooks.items()),
        ]
        self._status: dict[str, Any] = {"ok": None, "version": "", "message": "The program did not compile."}

    def start(self) -> None:
        """Follow what is imported already, and what will be."""
        self._running = True
        self._triton.start()
        for hook in self._hooks:
            hook.install()

    def stop(self) -> None:
        """Take away every hook; generated modules keep kernels that only call through."""
        self._running = False
        for hook in self._hooks:
            hook.uninstall()
        self._replaced.undo()
        self._triton.stop()

    def forked(self) -> None:
        """Everything goes on in the child."""

    def status(self) -> dict[str, Any]:
        """See `Provider.status`; `kernels` counts those generated, `triton_functions` those written by hand."""
        graphs = {"graphs": list(self._graphs.values())} if self._graphs else {}
        known = {"kernels": len(self._origins), "triton_functions": self._triton.known()}
        return {**self._status, **known, **graphs}

    def _guarded(self, follow: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
        """Called at the end of an import of the program, so nothing may escape."""

        def imported(module: ModuleType) -> None:
            try:
                follow(module)
                self._status.update(ok=True, message="")
            except Exception as error:
                self._step_down(f"{module.__name__} of this release is not followed ({type(error).__name__}: {error}).")
            self._changed()

        return imported

    def _step_down(self, sentence: str) -> None:
        """Something of the compiler is not what is known here: the rest is measured without it."""
        self._status.update(ok=False, message=sentence)
        self._native.count_loss("provider_unavailable", 1, sentence)

    # ---------------------------------------------------------------- phases of the compilation

    def _follow_phases(self, utils: ModuleType) -> None:
        """Replace `dynamo_timed` wherever it has been imported to; who imports it later gets the replacement."""
        original = utils.dynamo_timed
        followed = follow_timings(original, self._phases, lambda: self._running, self._step_down)
        self._replaced.everywhere("dynamo_timed", original, followed)

    # ---------------------------------------------------------------- origins, while code is generated

    def _follow_cpp(self, module: ModuleType) -> None:
        self._follow_definitions(module.CppScheduling)

    def _follow_triton(self, module: ModuleType) -> None:
        self._follow_definitions(module.TritonScheduling)

    def _follow_definitions(self, scheduling: Any) -> None:
        define = vars(scheduling)["define_kernel"]

        signature = inspect.signature(define)  # of all releases: the scheduling, the code, the nodes, ...

        def define_kernel(*arguments: Any, **named: Any) -> Any:
            kernel = define(*arguments, **named)
            if self._running and isinstance(kernel, str):
                with contextlib.suppress(Exception):  # the graph's records differ between releases; only detail is lost
                    _, _, nodes, *_ = signature.bind(*arguments, **named).arguments.values()
                    origin = self._fresh[kernel] = origin_of_nodes(nodes)
                    self._learn(kernel, origin)
            return kernel

        self._replaced.attribute(scheduling, "define_kernel", define_kernel)

    def _learn(self, kernel: str, origin: Origin) -> None:
        origin = self._origins.get(kernel, Origin()).joined(origin)
        self._origins[kernel] = origin
        file, line = (origin.sources[0].file, origin.sources[0].line) if origin.sources else ("", 0)
        self._gpu.gpu_kernel_source(kernel, file, line, origin.detail())

    def _learn_user(self, kernel: str, path: Path, origin: Origin) -> None:
        """What the kernel is made of in one generated file: graphs name their kernels alike."""
        file, line = (origin.sources[0].file, origin.sources[0].line) if origin.sources else ("", 0)
        self._gpu.gpu_kernel_user(kernel, str(path), file, line, origin.detail())

    # ---------------------------------------------------------------- generated modules, fresh or from the cache

    def _follow_loading(self, codecache: ModuleType) -> None:
        cache = codecache.PyCodeCache
        load = vars(cache)["load_by_key_path"].__func__

        signature = inspect.signature(load)

        def load_by_key_path(*arguments: Any, **named: Any) -> Any:
            module = load(*arguments, **named)
            if self._running:
                with contextlib.suppress(Exception):  # as above
                    given = signature.bind(*arguments, **named).arguments
                    self._adopt(module, Path(given["path"]), given.get("linemap") or [])
            return module

        self._replaced.attribute(cache, "load_by_key_path", classmethod(load_by_key_path))
        for module in loaded_modules(cache):  # compiled in an earlier session, or before measuring began
            with contextlib.suppress(Exception):
                path = Path(str(module.__file__))
                lines = list(zip(*cache.linemaps.get(str(path), ()), strict=False))
                self._adopt(module, path, lines)

    def _adopt(self, module: ModuleType, path: Path, linemap: list[tuple[int, str | None]]) -> None:
        names = [name for name, value in vars(module).items()
                 if name.startswith(_KERNEL_PREFIXES) and not isinstance(value, ModuleType)]  # fmt: skip
        if not names:
            return
        source = path.read_text(encoding="utf-8")
        text = source.splitlines()
        launches = "call" in vars(module)  # the code of a graph, not that of one kernel
        if launches and len(self._graphs) < _MOST_GRAPHS and path.name not in self._graphs:
            with contextlib.suppress(SyntaxError, ValueError, RecursionError):
                if graph := graph_of(source):
                    self._graphs[path.name] = graph
        known = vars(module).setdefault(_KNOWN, {})
        for name in names:
            origin = known.get(name)
            if origin is not None:  # of an earlier session, which saw the graph
                self._learn(name, origin)
            else:
                origin = self._fresh.pop(name, None) if launches else self._origins.get(name)
            if origin is None:
                origin = origin_of_generated(name, text, linemap)
                if name not in self._origins or launches:
                    self._learn(name, origin)
            known[name] = origin
            if launches:
                self._learn_user(name, path, origin)
            kernel = vars(module)[name]
            if name.startswith("cpp_fused") and callable(kernel) and not isinstance(kernel, VisibleKernel):
                setattr(module, name, VisibleKernel(self._native, name, origin.detail(), kernel))


class VisibleKernel:
    """A generated CPU kernel whose calls are regions with the kernel's origin; otherwise the kernel itself."""

    def __init__(self, native: Native, name: str, detail: str, kernel: Callable[..., Any]) -> None:
        self._native = native
        self._name = name
        self._detail = detail or None
        self._kernel = kernel

    def __call__(self, *arguments: Any) -> Any:
        if not self._native.is_running():
            return self._kernel(*arguments)
        token = self._native.region_begin(self._name, self._detail)
        try:
            return self._kernel(*arguments)
        finally:
            self._native.region_end(token)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)


def loaded_modules(cache: Any) -> list[ModuleType]:
    """Generated modules that PyCodeCache has loaded; torch 2.4 keeps them by their keys."""
    return list(cache.modules if hasattr(cache, "modules") else cache.cache.values())


def create(native: Native, options: Options, changed: Callable[[], None]) -> InductorProvider:
    """See `leadline.capture.providers`."""
    return InductorProvider(native, options, changed)
