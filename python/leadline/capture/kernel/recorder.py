"""Chooses the best source that this machine permits and runs it while the program's trace window is open.

The program's processes publish when their windows are open (`*.window`, see native/collector/window_times.h); the
supervisor looks now and then. Nothing here may change how the program runs or ends.
"""

from __future__ import annotations

import contextlib
import shutil
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from leadline.capture.kernel.counters import CounterRecorder
from leadline.capture.kernel.namespaces import monotonic_offset_ns
from leadline.capture.kernel.perf import PerfRecorder
from leadline.capture.kernel.recording import Recording, Refused
from leadline.capture.kernel.tracefs import TracefsRecorder

LOOK_S = 0.05
_TIMES = struct.Struct("<qqI")  # WindowTimes
_NOT_YET = 2**63 - 1


class Source(Protocol):
    """One of the sources, in the order of `_SOURCES`."""

    @property
    def switch(self) -> Path | None: ...
    def begin(self) -> None: ...
    def end(self) -> None: ...
    def save(self, folder: Path) -> Recording: ...
    def remove(self) -> None: ...


_SOURCES: tuple[tuple[str, Callable[[str], Source]], ...] = (
    ("the kernel's tracer", TracefsRecorder),
    ("perf events", PerfRecorder),
    ("counters of /proc", CounterRecorder),
)


class KernelRecorder:
    """`sentence`: what is recorded and, where it is not the best, why; empty where all is well."""

    def __init__(self, level: str, windows: Path) -> None:
        """`windows`: the folder where the program's processes publish their windows. Raises OSError where there is no
        room for temporary files."""
        self._level = level
        self._windows = windows
        self._source: Source | None = None
        self._from_ns = self._until_ns = 0
        self._folder = Path(tempfile.mkdtemp(prefix="leadline-kernel-"))
        refusals = []
        for name, make in _SOURCES:
            try:
                self._source = make(level)
                break
            except Refused as error:
                refusals.append(f"{name}: {error}")
        self._refusals = refusals

    @property
    def sentence(self) -> str:
        """For the person who asked."""
        if self._source is None:
            return f"events of the Linux kernel are missing: {'; '.join(self._refusals)}."
        if not self._refusals:
            return ""
        kinds = {PerfRecorder: "context switches", CounterRecorder: "totals per thread"}
        what = kinds.get(type(self._source), "events")
        return f"only {what} of the Linux kernel can be recorded: {'; '.join(self._refusals)}."

    @property
    def switch(self) -> Path | None:
        """What the program's process writes `1` to when its window opens; None where that has no effect."""
        return self._source.switch if self._source is not None else None

    def poll(self) -> None:
        """Begin where a window has opened, end where all have closed. Raises nothing."""
        with contextlib.suppress(OSError, ValueError):
            self._look()

    def _look(self) -> None:
        if self._source is None or self._until_ns:
            return
        times = _published(self._windows)
        opened = [begin for begin, _ in times if begin != _NOT_YET]
        if opened and not self._from_ns:
            self._source.begin()
            self._from_ns = min(opened) if self._source.switch is not None else time.monotonic_ns()
        if not self._from_ns:
            return
        if drain := getattr(self._source, "drain", None):
            drain()
        if all(end != _NOT_YET for begin, end in times if begin != _NOT_YET):
            self._source.end()
            self._until_ns = time.monotonic_ns()

    def finish(self) -> Path:
        """The folder of the recording, when the program has ended. Raises nothing; `discard` takes the folder away."""
        self.poll()
        recording = Recording("nothing", self._level)
        if self._source is not None:
            try:
                if not self._until_ns:
                    self._source.end()
                    self._until_ns = time.monotonic_ns()
                recording = self._source.save(self._folder)
            except OSError as error:
                recording.sentences.append(f"the recording could not be read ({error.strerror})")
            self._source.remove()
        recording.from_ns, recording.until_ns = self._from_ns, self._until_ns
        recording.ahead_ns = monotonic_offset_ns()
        recording.sentences += self._refusals
        with contextlib.suppress(OSError):
            recording.write(self._folder)
        return self._folder

    def discard(self) -> None:
        """Leave nothing behind. Raises nothing."""
        if self._source is not None:
            self._source.remove()
        shutil.rmtree(self._folder, ignore_errors=True)


def _published(folder: Path) -> list[tuple[int, int]]:
    """(opened, closed) of the window of every process that decides for itself, CLOCK_MONOTONIC or `_NOT_YET`."""
    found = []
    for path in folder.glob("*.window"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            data = file.read(_TIMES.size)
            if len(data) == _TIMES.size:
                begin, end, _ = _TIMES.unpack(data)
                found.append((begin, end))
    return found
