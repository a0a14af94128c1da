"""Kernels that torch.compile and Triton generate: which operators and which lines of the program each one came from.

Three sources, all the framework's own records: the graph nodes that Inductor fuses (while it generates code), the line
map it keeps with generated code (also from its cache), and the `@triton.jit` function of a hand-written kernel.
GPU kernels get them by name; CPU kernels, which call no operator that could be seen, become regions with that detail.
Compilation is a phase, with what it spends in dynamo, inductor and autotuning below it. Promises: never imports a
compiler by itself, changes no generated code and no cache key; whatever the compiler changes costs the detail only.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from leadline.capture.config import Options
from leadline.capture.import_hook import ImportHook
from leadline.capture.native import Native
from leadline.capture.providers.nvidia import GpuNative

_MOST_SOURCES = 16
"""Lines kept per kernel: a fusion of more is no longer explained by a list."""
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)\n(?P<code>[^\n]*)')
_ATEN_COMMENT = re.compile(r"Original ATen: \[(?P<names>[^\]]*)\]")
_KERNEL_PREFIXES = ("cpp_fused", "triton_")
_PHASES = (
    ("autotun", "autotune"),
    ("benchmark_all_configs", "autotune"),
    ("inductor", "inductor"),
    ("compile_fx", "inductor"),
    ("GraphLowering", "inductor"),
    ("Scheduler", "inductor"),
    ("codegen", "inductor"),
    ("code_gen", "inductor"),
    ("async_compile", "inductor"),
    ("aot", "aot autograd"),
    ("dynamo", "dynamo"),
    ("entire_frame_compile", "dynamo"),
    ("bytecode_tracing", "dynamo"),
)
"""Part of the name of a compile event of torch, and the phase it belongs to; the first that matches counts."""


@dataclass(frozen=True)
class Source:
    """A line of the program that went into a kernel."""

    file: str
    line: int
    function: str
    code: str


@dataclass(frozen=True)
class Origin:
    """What a kernel was made of: operators such as `aten.relu`, and lines, both in the order of the graph."""

    operators: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()

    def joined(self, other: Origin) -> Origin:
        """Both, each entry once: kernels of one name in several graphs cannot be told apart later."""
        operators = tuple(dict.fromkeys((*self.operators, *other.operators)))
        sources = tuple(dict.fromkeys((*self.sources, *other.sources)))[:_MOST_SOURCES]
        return Origin(operators, sources)

    def detail(self) -> str:
        """JSON object for the node's detail; empty when nothing is known."""
        if not self.operators and not self.sources:
            return ""
        sources = [{"file": s.file, "line": s.line, "function": s.function, "code": s.code} for s in self.sources]
        return json.dumps({"operators": list(self.operators), "sources": sources})


class InductorProvider:
    """One per session; waits for the compiler's modules, each of which it follows once the program has imported it."""

    name = "torch.compile"

    def __init__(self, native: Native, options: Options, changed: Callable[[], None]) -> None:
        self._native = native
        self._gpu = cast(GpuNative, native)
        self._changed = changed
        self._origins: dict[str, Origin] = {}
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        self._timed: tuple[Any, Any] | None = None
        self._running = False
        self._phases = PhaseStack(native)
        self._hooks = [
            ImportHook("torch._dynamo.utils", self._guarded(self._follow_phases)),
            ImportHook("torch._inductor.codecache", self._guarded(self._follow_loading)),
            ImportHook("torch._inductor.codegen.cpp", self._guarded(self._follow_cpp)),
            ImportHook("torch._inductor.codegen.triton", self._guarded(self._follow_triton)),
            ImportHook("triton.runtime.jit", self._guarded(self._follow_jit)),
        ]
        self._status: dict[str, Any] = {"ok": None, "version": "", "message": "The program did not compile."}

    def start(self) -> None:
        """Follow what is imported already, and what will be."""
        self._running = True
        for hook in self._hooks:
            hook.install()

    def stop(self) -> None:
        """Take away every hook; generated modules keep kernels that only call through."""
        self._running = False
        for hook in self._hooks:
            hook.uninstall()
        for owner, name, original, replacement in reversed(self._replaced):
            if vars(owner).get(name) is replacement:
                setattr(owner, name, original)
        self._replaced.clear()
        if self._timed is not None:
            original, replacement = self._timed
            _exchange("dynamo_timed", replacement, original)
            self._timed = None

    def status(self) -> dict[str, Any]:
        """See `Provider.status`; `kernels` counts those whose origin is known."""
        return {**self._status, "kernels": len(self._origins)}

    def _guarded(self, follow: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
        """Called at the end of an import of the program, so nothing may escape."""

        def imported(module: ModuleType) -> None:
            try:
                follow(module)
                self._status.update(ok=True, message="")
            except Exception as error:
                sentence = f"{module.__name__} of this torch is not followed ({type(error).__name__}: {error})."
                self._status.update(ok=False, message=sentence)
                self._native.count_loss("provider_unavailable", 1, sentence)
            self._changed()

        return imported

    def _replace(self, owner: Any, name: str, replacement: Any) -> None:
        self._replaced.append((owner, name, vars(owner)[name], replacement))
        setattr(owner, name, replacement)

    # ---------------------------------------------------------------- phases of the compilation

    def _follow_phases(self, utils: ModuleType) -> None:
        """Replace `dynamo_timed` wherever it has been imported to; who imports it later gets the replacement."""
        original = utils.dynamo_timed

        def dynamo_timed(key: str, phase_name: str | None = None, *more: Any, **named: Any) -> Any:
            timing = original(key, phase_name, *more, **named)
            return TimedPhase(self._phases, phase_name or key, timing) if self._running else timing

        self._timed = (original, dynamo_timed)
        _exchange("dynamo_timed", original, dynamo_timed)

    # ---------------------------------------------------------------- origins, while code is generated

    def _follow_cpp(self, module: ModuleType) -> None:
        self._follow_definitions(module.CppScheduling)

    def _follow_triton(self, module: ModuleType) -> None:
        self._follow_definitions(module.TritonScheduling)

    def _follow_definitions(self, scheduling: Any) -> None:
        define = vars(scheduling)["define_kernel"]

        def define_kernel(this: Any, src_code: Any, nodes: Any, *more: Any, **named: Any) -> Any:
            kernel = define(this, src_code, nodes, *more, **named)
            if self._running and isinstance(kernel, str):
                with contextlib.suppress(Exception):  # the graph's records differ between releases; only detail is lost
                    self._learn(kernel, origin_of_nodes(nodes))
            return kernel

        self._replace(scheduling, "define_kernel", define_kernel)

    def _learn(self, kernel: str, origin: Origin) -> None:
        origin = self._origins.get(kernel, Origin()).joined(origin)
        self._origins[kernel] = origin
        file, line = (origin.sources[0].file, origin.sources[0].line) if origin.sources else ("", 0)
        self._gpu.nvidia_kernel_source(kernel, file, line, origin.detail())

    # ---------------------------------------------------------------- generated modules, fresh or from the cache

    def _follow_loading(self, codecache: ModuleType) -> None:
        cache = codecache.PyCodeCache
        load = vars(cache)["load_by_key_path"].__func__

        def load_by_key_path(owner: Any, key: str, path: str, linemap: Any = None, *more: Any, **named: Any) -> Any:
            module = load(owner, key, path, linemap, *more, **named)
            if self._running:
                with contextlib.suppress(Exception):  # as above
                    self._adopt(module, Path(path), linemap or [])
            return module

        self._replace(cache, "load_by_key_path", classmethod(load_by_key_path))

    def _adopt(self, module: ModuleType, path: Path, linemap: list[tuple[int, str | None]]) -> None:
        names = [name for name in vars(module) if name.startswith(_KERNEL_PREFIXES)]
        if not names:
            return
        text = path.read_text(encoding="utf-8").splitlines()
        for name in names:
            if name not in self._origins:
                self._learn(name, origin_of_generated(name, text, linemap))
            kernel = vars(module)[name]
            if name.startswith("cpp_fused") and callable(kernel) and not isinstance(kernel, VisibleKernel):
                setattr(module, name, VisibleKernel(self._native, name, self._origins[name].detail(), kernel))

    # ---------------------------------------------------------------- hand-written Triton kernels

    def _follow_jit(self, jit: ModuleType) -> None:
        initialise = vars(jit.JITFunction)["__init__"]

        def __init__(this: Any, function: Any, *more: Any, **named: Any) -> None:
            initialise(this, function, *more, **named)
            code = getattr(function, "__code__", None)
            if self._running and code is not None and function.__name__ not in self._origins:
                self._gpu.nvidia_kernel_source(function.__name__, code.co_filename, code.co_firstlineno, "")

        self._replace(jit.JITFunction, "__init__", __init__)


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


class TimedPhase(contextlib.ContextDecorator):
    """One of the compiler's own timings and its phase, which stands where the timing was begun."""

    def __init__(self, phases: PhaseStack, event: str, timing: Any) -> None:
        self._phases = phases
        self._event = event
        self._timing = timing

    def __enter__(self) -> Any:
        self._phases.begin(self._event)
        return self._timing.__enter__()

    def __exit__(self, *raised: Any) -> Any:
        try:
            return self._timing.__exit__(*raised)
        finally:
            self._phases.end(self._event)


class PhaseStack:
    """Compile events of torch as nested phases of each thread: `compile` around, then the part of the compiler."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._threads = threading.local()

    def begin(self, event: str) -> None:
        """An event begins; a phase does too when the event belongs to another one than the innermost."""
        stack = self._stack()
        phase = phase_of(event)
        tokens: list[int] = []
        if not stack:
            tokens.append(self._native.phase_begin("compile"))
        inner = stack[-1][1] if stack else ""
        if phase and phase != inner:
            tokens.append(self._native.phase_begin(phase))
        stack.append((event, phase or inner, tokens))

    def end(self, event: str) -> None:
        """The event ends, and with it what had begun with it. An end without its begin is not ours."""
        stack = self._stack()
        if not any(entry[0] == event for entry in stack):
            return
        while stack:
            name, _, tokens = stack.pop()
            for token in reversed(tokens):
                self._native.phase_end(token)
            if name == event:
                return

    def _stack(self) -> list[tuple[str, str, list[int]]]:
        stack: list[tuple[str, str, list[int]]] | None = getattr(self._threads, "stack", None)
        if stack is None:
            stack = self._threads.stack = []
        return stack


def create(native: Native, options: Options, changed: Callable[[], None]) -> InductorProvider:
    """See `leadline.capture.providers`."""
    return InductorProvider(native, options, changed)


def _exchange(name: str, old: Any, new: Any) -> None:
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name) is old:
            setattr(module, name, new)


def phase_of(event: str) -> str:
    """The phase a compile event of torch belongs to; empty for one that is part of whatever is around it."""
    return next((phase for part, phase in _PHASES if part in event), "")


def origin_of_nodes(nodes: Iterable[Any]) -> Origin:
    """From the scheduler's nodes that one kernel fuses, through their graph nodes."""
    operators: dict[str, None] = {}
    sources: dict[Source, None] = {}
    for origin in graph_nodes(nodes):
        aten = origin.meta.get("original_aten")
        packet = getattr(aten, "_overloadpacket", aten)
        if packet is not None:
            operators[str(packet)] = None
        source = innermost_source(str(origin.meta.get("stack_trace") or getattr(origin, "stack_trace", None) or ""))
        if source is not None:
            sources[source] = None
    return Origin(tuple(operators), tuple(sources)[:_MOST_SOURCES])


def graph_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    """The graph nodes behind scheduler nodes, in the order of their graph, each once."""
    found: dict[Any, None] = {}
    for node in nodes:
        origins = getattr(getattr(node, "node", None), "origins", None) or ()
        found.update(dict.fromkeys(origins))
    calls = [node for node in found if getattr(node, "op", "") == "call_function"]
    positions: dict[Any, int] = {}
    for node in calls:
        if node.graph not in positions:
            positions[node.graph] = len(positions)
    order = {node: number for graph in positions for number, node in enumerate(graph.nodes)}
    yield from sorted(calls, key=lambda node: (positions[node.graph], order.get(node, 0)))


def innermost_source(stack_trace: str) -> Source | None:
    """The last frame of a stack trace as the graph keeps it: the program's own line."""
    frames = list(_FRAME.finditer(stack_trace))
    if not frames:
        return None
    last = frames[-1]
    return Source(last["file"], int(last["line"]), last["function"].strip(), last["code"].strip())


def origin_of_generated(kernel: str, text: list[str], linemap: list[tuple[int, str | None]]) -> Origin:
    """From a generated module: the comment above the kernel's call, and the line map for its call. For cached code."""
    operators: dict[str, None] = {}
    sources: dict[Source, None] = {}
    for number, line in enumerate(text, start=1):
        if not re.search(rf"\b{re.escape(kernel)}(\.run)?\(", line):
            continue
        comment = next((found for above in reversed(text[max(0, number - 4) : number - 1])
                        if (found := _ATEN_COMMENT.search(above))), None)  # fmt: skip
        if comment is not None:
            operators.update(dict.fromkeys(name.strip() for name in comment["names"].split(",") if name.strip()))
        trace = next((trace for first, trace in reversed(linemap) if first <= number), None)
        source = innermost_source(trace or "")
        if source is not None:
            sources[source] = None
    if not operators:
        operators.update(dict.fromkeys(operators_of_name(kernel)))
    return Origin(tuple(operators), tuple(sources)[:_MOST_SOURCES])


def operators_of_name(kernel: str) -> list[str]:
    """The operators that a fused kernel's name lists: `cpp_fused_add_relu_0` gives aten.add and aten.relu.

    Names run together (`_softmax_add` may be `_softmax` and `add`), so words are only split, never interpreted.
    """
    found = re.search(r"fused_(?P<names>.*?)_\d+$", kernel)
    return [f"aten.{word}" for word in found["names"].split("_") if word] if found else []
