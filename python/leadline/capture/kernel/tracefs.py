"""An instance of the kernel's own tracer for one program: scheduler, and on request system calls, block I/O, faults.

The instance is ours alone, so other tracers are not disturbed. It is named after this process, and whoever records
next takes away those whose process has ended: nothing stays behind after a kill either. The buffers are read once, at
the end: a reader that polls them records itself.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from leadline.capture.config import KERNEL_LEVELS
from leadline.capture.identity import Life, ProcessIdentity
from leadline.capture.kernel.mount import tracefs, write
from leadline.capture.kernel.namespaces import require_the_same
from leadline.capture.kernel.recording import Recording, Refused

PREFIX = "leadline_"
_BUDGET_BYTES = 256 << 20
_MOST_PER_CPU_BYTES = 32 << 20
_READ_BYTES = 1 << 20
_EVENTS = {
    "sched": (
        "sched/sched_switch",
        "sched/sched_waking",
        "sched/sched_process_fork",
        "sched/sched_process_exec",
        "sched/sched_process_exit",
    ),
    "syscalls": ("raw_syscalls/sys_enter", "raw_syscalls/sys_exit"),
    "io": ("block/block_rq_issue", "block/block_rq_complete", "irq/irq_handler_entry", "irq/irq_handler_exit"),
    "faults": ("exceptions/page_fault_user",),
}


class TracefsRecorder:
    """Made, it follows this process's children; it keeps events between `begin` and `end`."""

    def __init__(self, level: str, budget_bytes: int = _BUDGET_BYTES) -> None:
        """Raises Refused."""
        self._level = level
        root, self._mount = tracefs()
        self._instance = root / "instances" / f"{PREFIX}{ProcessIdentity.here()}"
        self._missing: list[str] = []
        try:
            remove_forgotten(root)
            self._instance.mkdir()
            self._set_up(budget_bytes)
            require_the_same(self._instance)
        except Refused:
            self.remove()
            raise
        except OSError as error:
            self.remove()
            raise Refused(f"this user may not make an instance of the kernel's tracer ({error.strerror})") from None

    @property
    def switch(self) -> Path:
        """Whoever writes `1` there begins the recording."""
        return self._instance / "tracing_on"

    def _set_up(self, budget_bytes: int) -> None:
        per_cpu = min(budget_bytes // (os.cpu_count() or 1), _MOST_PER_CPU_BYTES)
        self._write("tracing_on", "0")
        self._write("trace_clock", "mono")
        self._write("options/overwrite", "0")
        self._write("options/event-fork", "1")
        self._write("buffer_size_kb", str(max(per_cpu >> 10, 16)))
        self._write("set_event_pid", str(os.getpid()))  # children are followed from their first instruction
        for event in self._wanted():
            try:
                self._write(f"events/{event}/enable", "1")
            except OSError:
                self._missing.append(event)
        if "sched/sched_switch" in self._missing:
            raise OSError(0, "it has no scheduler events")

    def _wanted(self) -> list[str]:
        levels = KERNEL_LEVELS[: KERNEL_LEVELS.index(self._level) + 1]
        return [event for level in levels for event in _EVENTS[level]]

    def begin(self) -> None:
        """Nothing to do: the program's own process turns the switch when its window opens, so nothing is missed."""

    def end(self) -> None:
        """Keep no more events."""
        with contextlib.suppress(OSError):
            self._write("tracing_on", "0")

    def save(self, folder: Path) -> Recording:
        """Everything that was kept, as raw pages. Raises OSError."""
        recording = Recording("tracefs", self._level)
        for cpu in sorted((self._instance / "per_cpu").iterdir()):
            number = int(cpu.name.removeprefix("cpu"))
            _copy(cpu / "trace_pipe_raw", folder / f"cpu{number}.raw")
            recording.lost += _lost((cpu / "stats").read_text(encoding="ascii"))
        formats = {
            event: (self._instance / "events" / event / "format").read_text(encoding="utf-8")
            for event in self._wanted()
            if event not in self._missing
        }
        recording.details = {"formats": formats, "machine": os.uname().machine, "names": self._names()}
        if self._missing:
            recording.sentences.append(f"this kernel has no {', '.join(self._missing)}")
        return recording

    def _names(self) -> dict[str, str]:
        """Names of threads by number, as far as the kernel has kept them."""
        with contextlib.suppress(OSError):
            text = (self._instance.parents[1] / "saved_cmdlines").read_text(encoding="utf-8", errors="replace")
            pairs = (line.partition(" ") for line in text.splitlines())
            return {tid: name for tid, _, name in pairs if tid.isdecimal()}
        return {}

    def remove(self) -> None:
        """Leave nothing behind. Raises nothing."""
        with contextlib.suppress(OSError):
            self._write("tracing_on", "0")
        with contextlib.suppress(OSError):
            self._write("events/enable", "0")
        with contextlib.suppress(OSError):
            self._instance.rmdir()
        if self._mount >= 0:
            with contextlib.suppress(OSError):
                os.close(self._mount)
            self._mount = -1

    def _write(self, name: str, text: str) -> None:
        write(self._instance / name, text)


def remove_forgotten(root: Path) -> list[str]:
    """Take away instances whose recorder has ended on this machine without doing so; gives their names."""
    removed = []
    for place in (root / "instances").iterdir():
        identity = ProcessIdentity.parse(place.name.removeprefix(PREFIX)) if place.name.startswith(PREFIX) else None
        if identity is None or identity.life() is not Life.GONE:
            continue
        with contextlib.suppress(OSError):
            (place / "tracing_on").write_text("0", encoding="ascii")
            (place / "events/enable").write_text("0", encoding="ascii")
            place.rmdir()
            removed.append(place.name)
    return removed


def _copy(source: Path, target: Path) -> None:
    descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with target.open("wb") as file:
            while True:
                try:
                    data = os.read(descriptor, _READ_BYTES)
                except BlockingIOError:
                    break
                if not data:
                    break
                file.write(data)
    finally:
        os.close(descriptor)


def _lost(stats: str) -> int:
    """Events that did not fit, from the file `stats` of a CPU's buffer."""
    found: dict[str, Any] = dict(line.split(": ", 1) for line in stats.splitlines() if ": " in line)
    return sum(int(found.get(name, 0)) for name in ("overrun", "commit overrun", "dropped events"))
