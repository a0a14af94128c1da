"""The NVIDIA provider's Python side: attaches when the program starts CUDA, yields to torch.profiler, detaches.

The driver tells of its start where CUDA_INJECTION64_PATH names our library (as under `leadline run`), torch by its own.

Promises: never starts CUDA, so only processes that use a GPU are measured on it; changes no environment variable; what
cannot be measured is one sentence in `status()` and a loss in the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

from leadline.capture.config import Options
from leadline.capture.import_hook import ImportHook
from leadline.capture.native import Native
from leadline.capture.providers.gpu.provider import (
    RECORDING_VARIABLE,
    GpuProvider,
    counting_options,
    number,
    sampling_options,
)
from leadline.capture.providers.nvidia.files import (
    INJECT_LIBRARY,
    NVTX_VARIABLE,
    cupti_candidates,
    driver_loaded,
    no_gpu_sentence,
)
from leadline.capture.providers.nvidia.native import Answer, Details, NvidiaNative
from leadline.capture.providers.profilers.yielding import ProfilerYield

PERIOD_VARIABLE = "LEADLINE_SAMPLE_PERIOD"
"""Environment: instructions are sampled every 2^N cycles, 5 to 31; CUPTI chooses where it is not set."""
INTERVAL_VARIABLE = "LEADLINE_COUNTER_INTERVAL"
"""Environment: microseconds between two readings of hardware counters."""
INTERVAL_US = 50
SKIPPED_DOMAINS = ("NCCL", "cuDNN", "cudnn", "cuBLAS", "cuBLASLt", "cuSPARSE", "CCCL", "XLA", "TSL")
"""NVTX domains of libraries whose ranges would bury the program's own."""
_EXCLUDED = (
    "The Compute Sanitizer (--backend sanitizer) cannot share a process with CUPTI, so this run has no GPU times; "
    "`leadline tool join` brings them from another run."
)
_FORKED = (
    "This process was forked after CUDA had started, and CUDA does not survive a fork, so GPU work is not measured "
    'here; use the start method "spawn" or "forkserver".'
)


class NvidiaProvider(GpuProvider):
    """One per session; follows CUDA from its start in the program to the end of the session."""

    name = "nvidia"
    VERSION = "cupti_version"

    def __init__(self, native: Native, options: Options, changed: Callable[[], None]) -> None:
        self._excluded = bool(options.tools) and "sanitizer" in options.backend.split("+")
        unused = _EXCLUDED if self._excluded else "The program did not use CUDA."
        super().__init__(native, changed, unused)
        self._native = cast(NvidiaNative, native)
        self._options = options
        self._hook = ImportHook("torch", self._torch_imported)
        self._nvtx_hook = ImportHook("nvtx", self._nvtx_imported)
        self._yielding: ProfilerYield[Answer] | None = None

    def start(self) -> None:
        """Attach now where CUDA runs already, else when the driver or torch says that it starts."""
        if self._excluded:
            return
        self._start_nvtx(os.environ.get(NVTX_VARIABLE, ""))
        self._hook.install()
        if not self._attached:
            self._answered(self._native.await_nvidia(_attach_options(self._options)))

    def stop(self) -> None:
        """Let go of CUPTI and take away every hook; the last records are folded first."""
        self._stopped = True
        self._hook.uninstall()
        self._nvtx_hook.uninstall()
        if self._yielding is not None:
            self._yielding.uninstall()
            self._yielding = None
        self._native.nvtx_stop()
        self._let_go()
        self._status["nvtx"] = self._native.nvtx_status()
        self._changed()

    def forked(self) -> None:
        """CUDA does not survive a fork."""
        if self._left_behind(_FORKED) and self._yielding is not None:
            self._yielding.uninstall()
            self._yielding = None

    def _details(self) -> Details:
        return self._native.nvidia_status()

    def _detach(self) -> Answer:
        return self._native.detach_nvidia()

    def _no_gpu(self) -> str:
        return no_gpu_sentence()

    def _start_nvtx(self, injected: str) -> None:
        if not injected:
            return
        if Path(injected).name == INJECT_LIBRARY:
            self._native.nvtx_start(skipped_domains(self._options.nvtx), left_alone(self._options.nvtx))
            self._nvtx_hook.install()
        else:
            sentence = f"NVTX ranges are not seen because {NVTX_VARIABLE} names another tool ({injected}); unset it."
            self._count_loss("provider_unavailable", 1, sentence)

    def _nvtx_imported(self, nvtx: ModuleType) -> None:
        """NVTX's own Python package: its regions are its callers'. Nothing may escape from here."""
        methods = vars(getattr(nvtx, "annotate", object))
        openers = [methods.get("__enter__"), *(vars(nvtx).get(name) for name in ("start_range", "push_range"))]
        codes = [getattr(function, "__code__", None) for function in openers]
        decorate = getattr(methods.get("__call__"), "__code__", None)
        inside = [code for code in getattr(decorate, "co_consts", ()) if getattr(code, "co_name", "") == "inner"]
        self._native.add_openers([code for code in (*codes, *inside) if isinstance(code, CodeType)])

    def _torch_imported(self, torch: ModuleType) -> None:
        """At the end of the program's `import torch`: wait for its CUDA to start. Nothing may escape from here."""
        try:
            if getattr(getattr(torch, "version", None), "cuda", None) is None:
                self._status["message"] = "This build of torch has no CUDA."
                return
            native = self._native
            self._yielding = ProfilerYield(native.nvidia_yield, native.nvidia_take_back, torch, self._changed_by_yield)
            self._yielding.install()
            lazy_call = getattr(torch.cuda, "_lazy_call", None)
            if lazy_call is not None:
                lazy_call(self._attach)
            elif driver_loaded():
                self._attach()
        except Exception as error:
            self._count_loss("provider_unavailable", 1, f"torch's CUDA could not be followed ({error!r}).")

    def _attach(self) -> None:
        """Called by torch inside its own start of CUDA, so nothing may escape."""
        if self._attached or self._stopped:
            return
        try:
            self._answered(self._native.attach_nvidia(_attach_options(self._options)))
        except Exception as error:
            self._count_loss("provider_unavailable", 1, f"GPU work is not measured ({type(error).__name__}: {error}).")
            self._changed()

    def _changed_by_yield(self, answer: Answer) -> None:
        self._note(answer, ok=bool(answer["measuring"]))
        self._changed()


def skipped_domains(shown: str) -> list[str]:
    """NVTX domains left out when those in `shown` (comma-separated, any case; `all` for every one) are to be seen."""
    names = {name.strip().lower() for name in shown.split(",")}
    return [] if "all" in names else [domain for domain in SKIPPED_DOMAINS if domain.lower() not in names]


def left_alone(shown: str) -> list[str]:
    """NVTX domains that are to find no tool: those with a minus in front, such as `-TSL`."""
    names = [name.strip() for name in shown.split(",")]
    return [name.removeprefix("-") for name in names if name.startswith("-")]


def create(native: Native, options: Options, changed: Callable[[], None]) -> NvidiaProvider:
    """See `leadline.capture.providers`."""
    return NvidiaProvider(native, options, changed)


def _attach_options(options: Options) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "cupti_candidates": list(cupti_candidates()),
        "recording": os.environ.get(RECORDING_VARIABLE, ""),
        # Records of waits cost more than all else together (bench/results/gpu_launch_cost.md), calls on events are as
        # many as launches; a window draws its edges from both.
        "traces": options.trace is not None,
    }
    if options.gpu_metrics:
        asked |= _counting_options(options)
    return {**asked, **_sampling_options(options)} if options.instructions else asked


def _counting_options(options: Options) -> dict[str, Any]:
    return {
        **counting_options(options),
        "replay": options.replay,
        "counter_interval_ns": max(1, number(INTERVAL_VARIABLE, INTERVAL_US)) * 1000,
    }


def _sampling_options(options: Options) -> dict[str, Any]:
    return {**sampling_options(options), "sample_period": number(PERIOD_VARIABLE, 0)}
