"""The AMD provider's Python side: has Leadline be a tool of rocprofiler-sdk, says what became of it, detaches.

The SDK takes tools only while HIP starts. Under `leadline run` it asks for Leadline then (ROCP_TOOL_LIBRARIES);
elsewhere it is asked when torch for ROCm has been imported, which may be too late for some of its releases.

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
from leadline.capture.providers.amd_files import hip_loaded, no_gpu_sentence, sdk_candidates
from leadline.capture.providers.amd_native import AmdNative, Answer
from leadline.capture.providers.nvidia import RECORDING_VARIABLE


class AmdProvider:
    """One per session; follows HIP from its start in the program to the end of the session."""

    name = "amd"

    def __init__(self, native: Native, changed: Callable[[], None]) -> None:
        self._native = cast(AmdNative, native)
        self._count_loss = native.count_loss
        self._changed = changed
        self._hook = ImportHook("torch", self._torch_imported)
        self._status: dict[str, Any] = {"ok": None, "version": "", "message": "The program did not use HIP."}
        self._awaiting = False
        self._attached = False
        self._stopped = False

    def start(self) -> None:
        """Be the SDK's tool now where HIP runs already, else when HIP starts or torch says so."""
        self._attach(wait=True)
        self._hook.install()

    def stop(self) -> None:
        """Let go; the last records are folded first."""
        self._stopped = True
        self._hook.uninstall()
        self._look()
        if self._attached or self._awaiting:
            ended = self._native.detach_amd()
            if self._attached or ended["message"]:
                self._note(ended, ok=bool(self._status["ok"]))
            self._attached = self._awaiting = False
        if self._status["ok"] is None and (sentence := no_gpu_sentence()):
            self._status.update(ok=False, message=sentence)
            self._count_loss("provider_unavailable", 1, sentence)
        self._changed()

    def forked(self) -> None:
        """HIP does not survive a fork; a child that starts it anew is told so by the native side."""
        if self._attached:
            self._attached = False
            self._status = {"ok": None, "version": "", "message": "This process was forked after HIP had started."}

    def status(self) -> dict[str, Any]:
        """See `Provider.status`; `details` holds what the native side says of itself."""
        self._look()
        return dict(self._status)

    def _attach(self, *, wait: bool) -> None:
        answer = self._native.attach_amd(
            {
                "await": wait,
                "candidates": list(sdk_candidates()),
                "recording": os.environ.get(RECORDING_VARIABLE, ""),
            }
        )
        self._awaiting = bool(answer["awaiting"])
        if not self._awaiting:
            self._attached = True
            self._note(answer, ok=bool(answer["measuring"]))
            self._changed()

    def _look(self) -> None:
        """Take over what the native side has begun by itself, told by the SDK."""
        if not self._awaiting:
            return
        details = self._native.amd_status()
        if not details["awaiting"]:
            self._awaiting, self._attached = False, True
            self._note(details, ok=bool(details["measuring"]))

    def _torch_imported(self, torch: ModuleType) -> None:
        """At the end of the program's `import torch`. Nothing may escape from here."""
        try:
            self._look()
            if self._attached or self._stopped or getattr(torch.version, "hip", None) is None or not hip_loaded():
                return
            self._attach(wait=False)
        except Exception as error:
            self._count_loss("provider_unavailable", 1, f"torch's HIP could not be followed ({error!r}).")

    def _note(self, answer: Answer, *, ok: bool) -> None:
        details = self._native.amd_status()
        self._status = {
            "ok": ok,
            "version": str(details.get("sdk_version", "")),
            "message": str(answer["message"]),
            "details": details,
        }


def create(native: Native, options: Options, changed: Callable[[], None]) -> AmdProvider:
    """See `leadline.capture.providers`."""
    return AmdProvider(native, changed)
