"""Text of `perf script`: samples with their stacks as a call tree, switches and wakings as what the kernel did.

Functions of Python stand in stacks where the program ran with `python -X perf` (3.12 and later), as
`py::function:file`; they have no line being executed. Frames of the interpreter and of C libraries are native frames as
in profiles of ours.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, TextIO

from leadline._dataclass import dataclass, field
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Tables
from leadline.schema import METRICS, FrameKind, KernelEventKind, LossKind, MetricKind
from leadline.trace.importers.meta import imported_meta
from leadline.trace.source import Source
from leadline.trace.tables import TraceError

NAME = "text of perf script"

_HEAD = re.compile(
    r"^\s*(?P<comm>\S.*?)\s+(?P<ids>-?\d+(?:/-?\d+)?)\s+(?:\[(?P<cpu>\d+)\]\s+)?(?P<s>\d+)\.(?P<part>\d{6}|\d{9}):\s+"
    r"(?:(?P<period>\d+)\s+)?(?P<event>[A-Za-z][\w:/.,=-]*?):(?P<rest>\s.*)?$"
)
_FRAME = re.compile(r"^\s+(?P<address>[0-9a-f]+)\s+(?P<symbol>.+?)(?:\+0x[0-9a-f]+)?\s+\((?P<file>.*)\)$")
_PYTHON = re.compile(r"^py::(?P<name>[^:]+):(?P<file>.+)$")
_SWITCH = re.compile(
    r"prev_pid=(?P<left>\d+) .*?prev_state=(?P<state>\S+) ==> next_comm=(?P<comm>.*?) next_pid=(?P<came>\d+)"
    r"|^\s*.*?:(?P<left2>\d+) \[-?\d+\] (?P<state2>\S+) ==> (?P<comm2>.*?):(?P<came2>\d+) \["
)
_WAKING = re.compile(
    r"comm=(?P<comm>.*?) pid=(?P<pid>\d+)(?: prio=-?\d+)?(?: success=\d+)? target_cpu=(?P<cpu>\d+)"
    r"|^\s*(?P<comm2>.*?):(?P<pid2>\d+) \[-?\d+\](?: success=\d+)? CPU:(?P<cpu2>\d+)"
)
_STATES = {"R": 0, "S": 1, "D": 2, "T": 4, "t": 8, "X": 0x10, "Z": 0x20, "P": 0x40, "I": 0x80}
_MEASURED = frozenset(["cpu_sample", *(str(info.kind) for info in METRICS if info.doc.startswith("counter:"))])
_CLOCKS = ("cpu-clock", "task-clock")
_ASK_FOR = "--ns -F +pid"


def recognises(head: bytes, source: Source) -> bool:
    """Whether a file that begins so may be one: text whose first line is that of a sample."""
    lines = head.decode("utf-8", "replace").splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return _HEAD.match(first) is not None


def read(source: Source) -> Profile:
    """The profile of everything in the text. Raises TraceError."""
    with source.open() as stream:
        return _Reading(source.name).profile(io.TextIOWrapper(stream, "utf-8", "replace"))


@dataclass
class _ThreadSamples:
    """A thread as far as it was sampled: from what its first sample stands for to its last one."""

    row: int
    process: int
    first_ns: int
    last_ns: int
    ran_ns: int = 0

    @property
    def wall_ns(self) -> int:
        """At least what it ran: clocks of two cores may make samples overlap."""
        return max(self.last_ns - self.first_ns, self.ran_ns)


@dataclass
class _Reading:
    """One text on its way into a profile."""

    name: str
    builder: ProfileBuilder = field(default_factory=ProfileBuilder)
    processes: dict[int, int] = field(default_factory=dict)
    threads: dict[tuple[int, int], _ThreadSamples] = field(default_factory=dict)
    metrics: dict[str, MetricKind | None] = field(default_factory=dict)
    unread: dict[str, int] = field(default_factory=dict)
    broken_lines: int = 0

    def profile(self, text: TextIO) -> Profile:
        for head, frames in self._blocks(text):
            self._take(head, frames)
        if not self.processes:
            raise TraceError(f"{self.name} holds no sample; write it with perf script {_ASK_FOR}")
        process = next(iter(self.processes.values()))
        for event, count in self.unread.items():
            self.builder.loss(process, LossKind.EVENTS_DROPPED, count, f"Events {event} of perf are not read.")
        if self.broken_lines:
            sentence = "Lines of the text that no release of perf script is known to write."
            self.builder.loss(process, LossKind.EVENTS_DROPPED, self.broken_lines, sentence)
        begin = min(thread.first_ns for thread in self.threads.values())
        end = max(thread.first_ns + thread.wall_ns for thread in self.threads.values())
        meta = imported_meta(
            self.name, NAME, pid=next(iter(self.processes)), origin_ns=begin, wall_ns=end - begin
        )  # fmt: skip
        return Profile(Tables({**self.builder.tables().columns, **self._times()}), meta)

    # ------------------------------------------------------------------ lines

    def _blocks(self, text: TextIO) -> Iterator[tuple[re.Match[str], list[str]]]:
        """Each event with the lines of its stack, innermost first."""
        head: re.Match[str] | None = None
        frames: list[str] = []
        for line in chain(text, [""]):
            found = None if line[:1] in ("\t", "") or _FRAME.match(line) else _HEAD.match(line)
            if head is not None and (found or not line.strip()):
                yield head, frames
                head, frames = None, []
            if found:
                head = found
            elif line.strip() and not line.startswith("#"):
                if head is None or not _FRAME.match(line.rstrip("\n")):
                    self.broken_lines += 1
                else:
                    frames.append(line.rstrip("\n"))

    def _take(self, head: re.Match[str], frames: list[str]) -> None:
        ids = [int(part) for part in head["ids"].split("/")]
        pid, tid = ids[0], ids[-1]
        time_ns = int(head["s"]) * 10**9 + int(head["part"].ljust(9, "0"))
        event = head["event"].strip(":")
        said = head["rest"] or ""
        if event.startswith(("sched:", "sched_")):
            self._kernel(event.rpartition(":")[2], said, tid, int(head["cpu"] or -1), time_ns)
            return
        metric = self._metric(event)
        if metric is None:
            self.unread[event] = self.unread.get(event, 0) + 1
            return
        value = int(head["period"] or 1)
        runs = value if metric == MetricKind.CPU_SAMPLE else 0
        thread = self._thread(pid, tid, head["comm"], time_ns, runs)
        node = self.builder.node_of_thread(thread.row)
        for line in reversed(frames):
            node = self.builder.child(node, self._frame(line))
        self.builder.add(node, metric, value)
        thread.last_ns = max(thread.last_ns, time_ns)
        thread.ran_ns += runs

    def _metric(self, event: str) -> MetricKind | None:
        """What a sample counts: CPU time of the kernel's clocks, or a counter by perf's name for it."""
        plain = event.partition(":")[0].strip("/").rpartition("/")[2]
        if plain not in self.metrics:
            name = "cpu_sample" if plain in _CLOCKS else plain.replace("-", "_").lower()
            self.metrics[plain] = MetricKind[name.upper()] if name in _MEASURED else None
        return self.metrics[plain]

    def _frame(self, line: str) -> int:
        found = _FRAME.match(line)
        assert found is not None  # `_blocks` let it pass
        symbol, file = found["symbol"], found["file"]
        python = _PYTHON.match(symbol)
        if python:
            return self.builder.frame(FrameKind.PYTHON, python["name"], file=python["file"])
        known = symbol if symbol != "[unknown]" else ""
        address = 0 if known else int(found["address"], 16)
        return self.builder.frame(FrameKind.NATIVE, known, file="" if file == "[unknown]" else file, address=address)

    # ------------------------------------------------------------------ the kernel

    def _kernel(self, event: str, said: str, tid: int, cpu: int, time_ns: int) -> None:
        if event == "sched_switch" and (found := _SWITCH.search(said)):
            state = found["state"] or found["state2"]
            self.builder.kernel_event(
                KernelEventKind.SWITCH, time_ns, found["comm"] or found["comm2"], cpu=cpu,
                tid=int(found["left"] or found["left2"]), target=int(found["came"] or found["came2"]),
                value=_STATES.get(state[:1], 1),
            )  # fmt: skip
        elif event in ("sched_waking", "sched_wakeup", "sched_wakeup_new") and (found := _WAKING.search(said)):
            self.builder.kernel_event(
                KernelEventKind.WAKING, time_ns, found["comm"] or found["comm2"], tid=tid, cpu=cpu,
                target=int(found["pid"] or found["pid2"]), value=int(found["cpu"] or found["cpu2"]),
            )  # fmt: skip
        else:
            self.unread[event] = self.unread.get(event, 0) + 1

    # ------------------------------------------------------------------ processes and threads

    def _thread(self, pid: int, tid: int, comm: str, time_ns: int, before_ns: int) -> _ThreadSamples:
        if pid not in self.processes:
            self.processes[pid] = self.builder.process(comm, pid=pid, rank=-1)
        if (pid, tid) not in self.threads:
            name = "main" if pid == tid else comm
            row = self.builder.thread(self.processes[pid], name, tid=tid)
            self.threads[pid, tid] = _ThreadSamples(row, self.processes[pid], time_ns - before_ns, time_ns)
        return self.threads[pid, tid]

    def _times(self) -> dict[str, dict[str, Any]]:
        tables = self.builder.tables()
        found = {
            table: {name: values.copy() for name, values in tables[table].items()} for table in ("threads", "processes")
        }
        threads, processes = found["threads"], found["processes"]
        for row in self.processes.values():
            mine = [thread for thread in self.threads.values() if thread.process == row]
            processes["start_ns"][row] = min(thread.first_ns for thread in mine)
            processes["end_ns"][row] = max(thread.first_ns + thread.wall_ns for thread in mine)
        for thread in self.threads.values():
            threads["wall_ns"][thread.row] = thread.wall_ns
            threads["cpu_ns"][thread.row] = thread.ran_ns
        return found
