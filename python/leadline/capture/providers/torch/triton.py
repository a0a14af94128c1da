"""Hand-written Triton kernels: a kernel's node names the file and line of its `@triton.jit` function.

Triton's compiled kernels know the exact name that the driver reports and the function they were made from, whether
fresh or from Triton's cache; functions compiled elsewhere (in Inductor's worker processes) are known by their own name.
Compiling and autotuning are phases. Promises: never imports Triton by itself; raises nothing into the program.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from leadline.capture.native import Native
from leadline.capture.providers.gpu.generated_kernels import GpuKernels
from leadline.capture.providers.replaced import Replacements, living
from leadline.capture.providers.torch.compile_phases import PhaseStack

_GENERATED = "triton_heuristics"
"""Every module of kernels that Inductor writes imports this name; such kernels have an origin, not an author."""
_LANGUAGE = "triton.language."
"""Modules of Triton whose functions are called by kernels and are none."""
_MOST_DEFINITIONS = 8
"""Places listed for a name that several functions have."""


class TritonKernels:
    """The part of the compiler provider that follows Triton; `hooks` are to be called at the end of each import."""

    def __init__(self, native: Native, gpu: GpuKernels, phases: PhaseStack) -> None:
        self._native = native
        self._gpu = gpu
        self._phases = phases
        self._replaced = Replacements()
        self._places: dict[str, list[tuple[str, int]]] = {}
        self._running = False
        self.hooks: dict[str, Callable[[ModuleType], None]] = {
            "triton.runtime.jit": self._follow_functions,
            "triton.compiler.compiler": self._follow_compiler,
            "triton.runtime.autotuner": self._follow_autotuner,
        }

    def start(self) -> None:
        """To be called before the hooks are installed."""
        self._running = True

    def stop(self) -> None:
        """Take away every replacement."""
        self._running = False
        self._replaced.undo()

    def known(self) -> int:
        """Kernel names whose function is known."""
        return len(self._places)

    def _follow_functions(self, jit: ModuleType) -> None:
        function_class = jit.JITFunction
        initialise = vars(function_class)["__init__"]

        def __init__(this: Any, *arguments: Any, **named: Any) -> None:
            initialise(this, *arguments, **named)
            self._learn(getattr(getattr(this, "fn", None), "__name__", ""), this)

        self._replaced.attribute(function_class, "__init__", __init__)
        for function in living(function_class):
            self._learn(getattr(getattr(function, "fn", None), "__name__", ""), function)

    def _follow_compiler(self, compiler: ModuleType) -> None:
        kernel_class = compiler.CompiledKernel
        initialise = vars(kernel_class)["__init__"]

        def __init__(this: Any, *arguments: Any, **named: Any) -> None:
            initialise(this, *arguments, **named)
            self._learn_compiled(this)

        self._replaced.attribute(kernel_class, "__init__", __init__)
        for kernel in living(kernel_class):
            self._learn_compiled(kernel)
        original = compiler.compile

        def compile(*arguments: Any, **named: Any) -> Any:
            with self._phase("triton jit"):
                return original(*arguments, **named)

        self._replaced.everywhere("compile", original, compile)

    def _follow_autotuner(self, autotuner: ModuleType) -> None:
        bench = vars(autotuner.Autotuner)["_bench"]

        def _bench(this: Any, *arguments: Any, **named: Any) -> Any:
            with self._phase("autotune"):
                return bench(this, *arguments, **named)

        self._replaced.attribute(autotuner.Autotuner, "_bench", _bench)

    @contextlib.contextmanager
    def _phase(self, event: str) -> Iterator[None]:
        if not self._running or not self._native.is_running():
            yield
            return
        self._phases.begin(event)
        try:
            yield
        finally:
            self._phases.end(event)

    def _learn_compiled(self, kernel: Any) -> None:
        self._learn(getattr(kernel, "name", ""), getattr(getattr(kernel, "src", None), "fn", None))

    def _learn(self, name: Any, function: Any) -> None:
        """Objects of Triton differ between releases: what is not there costs the line only."""
        if not self._running:
            return
        with contextlib.suppress(Exception):
            place = definition_of(function)
            if place is None or not isinstance(name, str) or not name:
                return
            places = self._places.setdefault(name, [])
            if place in places or len(places) >= _MOST_DEFINITIONS:
                return
            places.append(place)
            file, line = places[0]
            detail = "" if len(places) == 1 else json.dumps({"defined": [f"{path}:{row}" for path, row in places]})
            self._gpu.gpu_kernel_source(name, file, line, detail)


def definition_of(function: Any) -> tuple[str, int] | None:
    """File and line of the `def` below `@triton.jit`; None for generated kernels and for what is no kernel."""
    python = getattr(function, "fn", None)
    code = getattr(python, "__code__", None)
    if code is None or _GENERATED in getattr(python, "__globals__", {}):
        return None
    if str(getattr(python, "__module__", "")).startswith(_LANGUAGE):
        return None
    first = int(code.co_firstlineno)  # of the first decorator
    source = getattr(function, "raw_src", None) or ()
    above = next((number for number, line in enumerate(source) if line.lstrip().startswith("def ")), 0)
    return str(code.co_filename), first + above
