"""CPU samples of every thread, where they are asked for (`--cpu-sample`). The work is the native side's
(native/providers/cpu).
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leadline.capture.config import Options
from leadline.capture.native import Native
from leadline.capture.providers.replaced import Replacements

_NAME = "cpu"


class CpuProvider:
    """One per session; does nothing where no samples are asked for."""

    name = _NAME

    def __init__(self, native: Native, options: Options) -> None:
        self._native = native
        self._hz = options.sample_hz
        self._wanted: dict[str, Any] = {
            "hz": self._hz,
            "native": options.native,
            "counters": list(options.counters),
            "wait_hz": options.wait,
        }
        self._own: set[int] = set()
        self._replaced: Replacements | None = None
        self._status: dict[str, Any] = {"ok": None, "version": "", "message": "CPU samples were not asked for."}

    def start(self) -> None:
        """Give every thread its timer."""
        if self._hz:
            before = _caught()
            self._note(self._native.provider_start(_NAME, self._wanted))
            self._own |= _caught() - before
            if not self._replaced:
                self._replaced = Replacements()
                self._replaced.attribute(signal, "signal", self._keeping(signal.signal))
                if "_set_ident" in vars(threading.Thread):
                    self._replaced.attribute(
                        threading.Thread, "_set_ident", self._meeting(vars(threading.Thread)["_set_ident"])
                    )

    def stop(self) -> None:
        """Take the timers away and book what is left."""
        if self._hz:
            self._note(self._native.provider_stop(_NAME))
        if self._replaced:
            self._replaced.undo()
            self._replaced = None

    def forked(self) -> None:
        """Timers stay with the parent: the child gets its own."""
        self.start()

    @property
    def pausable(self) -> str:
        """What of it a cost budget may let rest; empty for nothing."""
        return "CPU samples" if self._hz else ""

    def pause(self) -> None:
        """No samples until `resume`."""
        self._note(self._native.provider_stop(_NAME))

    def resume(self) -> None:
        """Samples again."""
        self._note(self._native.provider_start(_NAME, self._wanted))

    def status(self) -> dict[str, Any]:
        """See `Provider.status`; `hz`, and how many `samples` of how many `threads` were taken at what cost."""
        return dict(self._status)

    def _keeping(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Python believes that our signals have their default action, since it was set behind its back. A program
        that remembers all handlers and puts them back (Lightning) would have the next timer end the process."""

        @functools.wraps(original)
        def keeping(signalnum: Any, handler: Any) -> Any:
            if handler is signal.SIG_DFL and int(signalnum) in self._own:
                return signal.SIG_DFL
            return original(signalnum, handler)

        return keeping

    def _meeting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Every thread of `threading` says its number first, on itself: one that ends soon is sampled as well."""
        begins = self._native.cpu_thread_begins

        @functools.wraps(original)
        def meeting(thread: threading.Thread) -> Any:
            found = original(thread)
            begins()
            return found

        return meeting

    def _note(self, answer: dict[str, Any]) -> None:
        self._status = {"version": "", **answer}


def _caught() -> set[int]:
    """Signals that this process has a handler for; none where the kernel does not say."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        mask = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    except (OSError, ValueError, StopIteration, IndexError):
        return set()
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def create(native: Native, options: Options, changed: Callable[[], None]) -> CpuProvider:
    """See `leadline.capture.providers`."""
    return CpuProvider(native, options)
