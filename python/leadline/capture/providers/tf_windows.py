"""Short windows in which TensorFlow's profiler times the nodes of graphs and the stages of tf.data.

A window is opened before a call from Python and closed after one, so functions in it are whole.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from leadline.capture.providers.profiler_windows import ProfilerWindows
from leadline.capture.providers.tf_runs import FUNCTION
from leadline.xla.events import Event, Named, named

_FOLDER = "ram://leadline"
_LOCAL = "EagerLocalExecute: "
_PROCESS = "ExecutorState::Process"
_OPTIONS = {"host_tracer_level": 3, "device_tracer_level": 0, "python_tracer_level": 0}
"""Below 3 TensorFlow leaves out nodes that it found to be cheap."""
_NOT_SAID = -(2**63)


@dataclass
class Sums:
    """Over all windows, in picoseconds: count, whole, own, shortest, longest."""

    runs: int = 0
    early: bool = True
    """From the second call of the function only, which still makes what later calls find made."""
    nodes: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """By name of the node and type of its operation."""


class Windows(ProfilerWindows):
    """Windows of TensorFlow's profiler, and what they have added up to."""

    PROFILER = "TensorFlow"
    SHORTEST_S = 0.03
    COST_SHARE = 0.02

    def __init__(self, loss: Callable[[str], None]) -> None:
        super().__init__(loss)
        self._ran: set[str] = set()
        self._profile: Any = None
        self.functions: dict[str, Sums] = {}
        """By function as TensorFlow calls it."""
        self.stages: dict[str, list[int]] = {}

    def before(self, name: str) -> None:
        """An operation or a function is about to run."""
        if self._session is not None or self.off:
            return
        first = name in self._ran and name not in self.functions and FUNCTION.match(name) is not None
        if first and self._may_time_first():
            self._open(first_run=True)
        elif self._is_due() and self._ran:
            self._open(first_run=False)

    def after(self, name: str) -> None:
        """It has ended."""
        if self._session is None:
            if name.startswith("__"):
                self._ran.add(name)
        elif self._is_over():
            self.close()

    def begin_session(self) -> Any:
        module = importlib.import_module("tensorflow.python.profiler.internal._pywrap_profiler")
        session = module.ProfilerSession()
        try:
            session.start(_FOLDER, _OPTIONS)
        except Exception as error:
            if "lready" in str(error) or "ALREADY_EXISTS" in str(error):
                return None
            raise
        return session

    def add_up(self, session: Any) -> None:
        self._add(_exported(session))

    def _add(self, data: bytes) -> None:
        if not data:
            return
        if self._profile is None:
            self._profile = importlib.import_module("leadline._xla").profile
        found = self._profile(data, ["id"], [])
        if found["problem"]:
            self._loss(f"A window of TensorFlow's profiler could not be read: {found['problem']}")
            return
        self.count += 1
        columns = found["events"]
        line, name = (memoryview(columns[one]).cast("I") for one in ("line", "name"))
        start, duration, step = (memoryview(columns[one]).cast("q") for one in ("start_ps", "duration_ps", "id"))
        meanings = [named(text) for text in found["strings"]]
        order = sorted(range(len(line)), key=lambda row: (line[row], start[row], -duration[row]))
        sweep = _Sweep(found["strings"], meanings)
        for row in order:
            sweep.span(line[row], name[row], start[row], duration[row], step[row])
        self._take(sweep)

    def _take(self, sweep: _Sweep) -> None:
        for function in sweep.steps.values():
            sums = self.functions.setdefault(function, Sums())
            if sums.early and not self._for_first_run:
                sums = self.functions[function] = Sums(early=False)
            sums.runs += 1
        for (step_id, node, kind), values in sweep.nodes.items():
            called = sweep.steps.get(step_id)
            if called is not None:
                _add_up(self.functions[called].nodes, (node, kind), values)
        for stage, values in sweep.stages.items():
            _add_up(self.stages, stage, values)


class _Sweep:
    """Spans of all lines, ordered by line and start, outer first."""

    def __init__(self, strings: list[str], meanings: list[Named]) -> None:
        self._strings = strings
        self._meanings = meanings
        self._line = -1
        self._open: list[tuple[int, str, int, list[int] | None]] = []
        """End, function called from Python or empty, number of the step, sums of the node."""
        self.steps: dict[int, str] = {}
        self.nodes: dict[tuple[int, str, str], list[int]] = {}
        self.stages: dict[str, list[int]] = {}

    def span(self, line: int, name: int, start: int, duration: int, step: int) -> None:
        if line != self._line:
            self._line = line
            self._open.clear()
        while self._open and self._open[-1][0] <= start:
            self._open.pop()
        _, function, around, holder = self._open[-1] if self._open else (0, "", _NOT_SAID, None)
        text, one = self._strings[name], self._meanings[name]
        if text.startswith(_LOCAL) and FUNCTION.match(text.removeprefix(_LOCAL)):
            function = text.removeprefix(_LOCAL)
        elif text == "FunctionRun" and function and step != _NOT_SAID:
            self.steps.setdefault(step, function)
        elif text == _PROCESS:
            around = step
        elif one.event == Event.NODE and one.scope and around != _NOT_SAID:
            holder = self._count(self.nodes, (around, one.scope, one.name), duration, holder)
        elif one.event == Event.PIPELINE and text.startswith("Iterator::"):
            holder = self._count(self.stages, text, duration, holder)
        self._open.append((start + duration, function, around, holder))

    def _count(self, sums: dict[Any, list[int]], key: Any, duration: int, holder: list[int] | None) -> list[int]:
        if holder is not None:
            holder[2] -= duration
        values = sums.setdefault(key, [0, 0, 0, duration, duration])
        values[0] += 1
        values[1] += duration
        values[2] += duration
        values[3] = min(values[3], duration)
        values[4] = max(values[4], duration)
        return values


def _add_up(sums: dict[Any, list[int]], key: Any, values: list[int]) -> None:
    held = sums.setdefault(key, [0, 0, 0, values[3], values[4]])
    for place in range(3):
        held[place] += values[place]
    held[3] = min(held[3], values[3])
    held[4] = max(held[4], values[4])


def _exported(session: Any) -> bytes:
    """The profile of a session as bytes, through TensorFlow's file system in memory."""
    files = importlib.import_module("tensorflow.python.lib.io.file_io")
    session.export_to_tb()
    data = b""
    for folder, _, names in files.walk_v2(_FOLDER):
        for name in names:
            if name.endswith(".xplane.pb"):
                data = bytes(files.FileIO(f"{folder}/{name}", "rb").read())
    files.delete_recursively_v2(_FOLDER)
    return data
