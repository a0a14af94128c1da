"""The AMD provider's Python side: has Leadline be a tool of rocprofiler-sdk, says what became of it, detaches.

The SDK takes tools only while HIP starts. Under `leadline run` it asks for Leadline then (ROCP_TOOL_LIBRARIES);
elsewhere it is asked when torch for ROCm has been imported, which may be too late for some of its releases. ROCm before
6.2 has no SDK but roctracer, which serves one tool at a time, so that is given to torch.profiler while it records.

Promises: never starts HIP; changes no environment variable; what cannot be measured is one sentence in `status()` and a
loss in the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, cast

from leadline.capture.config import Options
from leadline.capture.import_hook import ImportHook
from leadline.capture.native import Native
from leadline.capture.providers.amd.files import (
    hip_loaded,
    no_gpu_sentence,
    older_candidates,
    sdk_candidates,
)
from leadline.capture.providers.amd.native import AmdNative, Answer, Details
from leadline.capture.providers.gpu.provider import (
    RECORDING_VARIABLE,
    GpuProvider,
    counting_options,
    sampling_options,
)
from leadline.capture.providers.profilers.yielding import ProfilerYield

_FORKED = (
    "This process was forked after HIP had started, and HIP does not survive a fork, so GPU work is not measured here; "
    'use the start method "spawn" or "forkserver".'
)
"""As Tool::kForked of the native side, so that both are one."""


class AmdProvider(GpuProvider):
    """One per session; follows HIP from its start in the program to the end of the session."""

    name = "amd"
    VERSION = "sdk_version"

    def __init__(self, native: Native, options: Options, changed: Callable[[], None]) -> None:
        super().__init__(native, changed, "The program did not use HIP.")
        self._options = options
        self._native = cast(AmdNative, native)
        self._hook = ImportHook("torch", self._torch_imported)
        self._yielding: ProfilerYield[Answer] | None = None

    def start(self) -> None:
        """Be the SDK's tool now where HIP runs already, else when HIP starts or torch says so."""
        self._attach(wait=True)
        self._hook.install()

    def stop(self) -> None:
        """Let go; the last records are folded first."""
        self._stopped = True
        self._hook.uninstall()
        if self._yielding is not None:
            self._yielding.uninstall()
            self._yielding = None
        self._let_go()
        self._changed()

    def forked(self) -> None:
        """HIP does not survive a fork; a child that calls it all the same is told so by the native side."""
        if self._left_behind(_FORKED) and self._yielding is not None:
            self._yielding.uninstall()
            self._yielding = None

    def _details(self) -> Details:
        return self._native.amd_status()

    def _detach(self) -> Answer:
        return self._native.detach_amd()

    def _no_gpu(self) -> str:
        return no_gpu_sentence()

    def _attach(self, *, wait: bool) -> None:
        options: dict[str, Any] = {
            "await": wait,
            "candidates": list(sdk_candidates()),
            "older": list(older_candidates()),
            "recording": os.environ.get(RECORDING_VARIABLE, ""),
        }
        if self._options.instructions:
            options |= sampling_options(self._options)
        if self._options.gpu_metrics:
            options |= counting_options(self._options)
        self._answered(self._native.attach_amd(options))

    def _torch_imported(self, torch: ModuleType) -> None:
        """At the end of the program's `import torch`. Nothing may escape from here."""
        try:
            self._look()
            if self._stopped or getattr(getattr(torch, "version", None), "hip", None) is None or not hip_loaded():
                return
            if not self._attached:
                self._attach(wait=False)
            if self._details().get("source") == "roctracer":
                self._yielding = ProfilerYield(self._native.amd_yield, self._native.amd_take_back, torch, self._taken)
                self._yielding.install()
        except Exception as error:
            self._count_loss("provider_unavailable", 1, f"torch's HIP could not be followed ({error!r}).")

    def _taken(self, answer: Answer) -> None:
        self._note(answer, ok=bool(answer["measuring"]))
        self._changed()


def create(native: Native, options: Options, changed: Callable[[], None]) -> AmdProvider:
    """See `leadline.capture.providers`."""
    return AmdProvider(native, options, changed)
