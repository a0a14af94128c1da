"""CPU samples of every thread, where they are asked for (`--cpu-sample`). The work is the native side's
(native/providers/cpu).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leadline.capture.config import Options
from leadline.capture.native import Native

_NAME = "cpu"


class CpuProvider:
    """One per session; does nothing where no samples are asked for."""

    name = _NAME

    def __init__(self, native: Native, options: Options) -> None:
        self._native = native
        self._hz = options.sample_hz
        self._frames = options.native
        self._status: dict[str, Any] = {"ok": None, "version": "", "message": "CPU samples were not asked for."}

    def start(self) -> None:
        """Give every thread its timer."""
        if self._hz:
            self._note(self._native.provider_start(_NAME, {"hz": self._hz, "native": self._frames}))

    def stop(self) -> None:
        """Take the timers away and book what is left."""
        if self._hz:
            self._note(self._native.provider_stop(_NAME))

    def forked(self) -> None:
        """Timers stay with the parent: the child gets its own."""
        self.start()

    def status(self) -> dict[str, Any]:
        """See `Provider.status`; `hz`, and how many `samples` of how many `threads` were taken at what cost."""
        return dict(self._status)

    def _note(self, answer: dict[str, Any]) -> None:
        self._status = {"version": "", **answer}


def create(native: Native, options: Options, changed: Callable[[], None]) -> CpuProvider:
    """See `leadline.capture.providers`."""
    return CpuProvider(native, options)
