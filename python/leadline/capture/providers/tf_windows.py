"""Short windows in which TensorFlow's profiler times the nodes of graphs and the stages of tf.data.

A window is opened before a call from Python and closed after one, so functions in it are whole. A function is timed in
its second call, and once more some calls later, since early calls make what later ones find made.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from leadline.capture.providers.profiler_windows import ProfilerWindows
from leadline.capture.providers.tf_runs import FUNCTION, Key
from leadline.capture.providers.tf_sweep import NOT_SAID, Sweep, add_times, add_values
from leadline.xla.events import Event, named
from leadline.xla.recorded import origin_ns

if TYPE_CHECKING:
    from leadline.capture.providers.tf_trace import TracedCalls

_FOLDER = "ram://leadline"
ALWAYS_VARIABLE = "LEADLINE_TENSORFLOW_WINDOWS"
"""Environment: `always` times nodes in processes with a server too."""
_SERVES = (
    "Nodes of TensorFlow's graphs have no times and are in no trace window here: its profiler ends processes that "
    f"serve others (their memory is damaged when it stops while gRPC records); {ALWAYS_VARIABLE}=always tries it."
)
_LATER = 8
"""Calls after which a function that was timed early is timed again."""
_OPTIONS = {"host_tracer_level": 3, "device_tracer_level": 0, "python_tracer_level": 0}
"""Below 3 TensorFlow leaves out nodes that it found to be cheap."""


@dataclass
class Sums:
    """Over all windows, in picoseconds: count, whole, own, shortest, longest."""

    runs: int = 0
    early: bool = True
    """From the second call of the function only, which still makes what later calls find made."""
    nodes: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """By name of the node and type of its operation."""
    taken: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """Memory that nodes took from the allocator, in bytes: count, sum, smallest, largest."""
    elsewhere: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """Nodes that hold no thread until they are done (collectives, tensors that are received): count, sum, shortest,
    longest of what they took."""
    waits: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """From the end of a node's last input to its start: count, sum, shortest, longest."""


class Windows(ProfilerWindows):
    """Windows of TensorFlow's profiler, and what they have added up to."""

    PROFILER = "TensorFlow"
    SHORTEST_S = 0.03
    COST_SHARE = 0.02

    def __init__(self, loss: Callable[[str], None], trace_is_open: Callable[[], bool] | None = None) -> None:
        super().__init__(loss, trace_is_open)
        self.traced: TracedCalls | None = None
        """What puts calls into the trace window, where there is one."""
        self._ran: set[str] = set()
        self._until_again: dict[str, int] = {}
        """Calls of functions that were timed early, until they are timed once more."""
        self._profile: Any = None
        self.functions: dict[str, Sums] = {}
        """By function as TensorFlow calls it."""
        self.stages: dict[str, list[int]] = {}
        self.inputs: Callable[[str, str, Collection[str]], tuple[str, ...] | None] = _none
        """Names of the nodes that a node of a function waits for, given those that ran."""

    def before(self, name: str) -> None:
        """An operation or a function is about to run."""
        if self._trace_turns():
            self._turn(None)
        if self._session is not None or not self.may_open():
            return
        first = name in self._ran and name not in self.functions and FUNCTION.match(name) is not None
        if first and self._may_time_first():
            self._open(first_run=True)
        elif self._is_time_again(name) or (self._is_due() and self._ran):
            self._open(first_run=False)

    def _is_time_again(self, name: str) -> bool:
        """Whether a function is to be timed once more, since few of its calls were."""
        left = self._until_again.get(name, 0)
        if left:
            self._until_again[name] = left - 1
        return left == 1

    def after(self, key: Key, began_ns: int, took_ns: int) -> None:
        """It has ended."""
        if self._session is None:
            if key[1].startswith("__"):
                self._ran.add(key[1])
            return
        if self._traces and self.traced is not None:
            self.traced.called(key, began_ns, took_ns)
        if self._trace_turns():
            self._turn(None)
        elif self._is_over():
            self.close()

    def begin_session(self) -> None:
        if os.environ.get(ALWAYS_VARIABLE) != "always" and _serves_other_processes():
            self.off = _SERVES
            return
        module = importlib.import_module("tensorflow.python.profiler.internal._pywrap_profiler")
        session = (self.session_type or module.ProfilerSession)()
        self.begun.append(session)  # before it starts, see there
        try:
            session.start(_FOLDER, _OPTIONS)
        except Exception as error:
            self.begun.clear()
            if not _is_in_use(error):
                raise

    def stop(self, session: Any) -> bytes:
        return _exported(session)

    def add_up(self, seen: bytes) -> None:
        self._add(seen)

    def discard(self, session: Any) -> int:
        return len(session.stop()) // 2  # twice of what is exported

    def _add(self, data: bytes) -> None:
        if not data:
            return
        if self._profile is None:
            self._profile = importlib.import_module("leadline._xla").profile
        found = self._profile(data, ["id", "step_id", "requested_bytes"], ["name", "kernel_type"])
        if found["problem"]:
            self._loss(f"A window of TensorFlow's profiler could not be read: {found['problem']}")
            return
        self.count += 1
        events, stats, strings = found["events"], found["stats"], found["strings"]
        line, name, start, duration = (events[one] for one in ("line", "name", "start_ps", "duration_ps"))
        step, run, taken = (stats.get(one, [NOT_SAID] * len(line)) for one in ("id", "step_id", "requested_bytes"))
        node, kind = (stats.get(one, [0] * len(line)) for one in ("name", "kernel_type"))
        meanings = [named(text) for text in strings]
        order = sorted(range(len(line)), key=lambda row: (line[row], start[row], -duration[row]))
        sweep = Sweep(strings, meanings, keep=self._traces)
        for row in order:
            if meanings[name[row]].event == Event.ALLOCATE:
                sweep.taken_by_node(line[row], start[row], taken[row])
            elif node[row] and kind[row] and run[row] != NOT_SAID:
                called = (run[row], strings[node[row]], strings[kind[row]])
                sweep.asynchronous(strings[name[row]], called, start[row])
            else:
                sweep.span(line[row], name[row], start[row], duration[row], step[row])
        sweep.finish()
        self._take(sweep)
        if self._traces and self.traced is not None:
            self.traced.add(sweep, found["lines"], origin_ns(found["planes"], found["base_ns"]))

    def _take(self, sweep: Sweep) -> None:
        for function in sweep.steps.values():
            sums = self.functions.setdefault(function, Sums())
            if sums.early and not self._for_first_run:
                sums = self.functions[function] = Sums(early=False)
            sums.runs += 1
            self._until_again.setdefault(function, _LATER)
        for (step_id, node, kind), values in sweep.nodes.items():
            called = sweep.steps.get(step_id)
            if called is not None:
                add_times(self.functions[called].nodes, (node, kind), values)
        for (step_id, node, kind), values in sweep.taken.items():
            called = sweep.steps.get(step_id)
            if called is not None:
                add_values(self.functions[called].taken, (node, kind), values)
        for (step_id, node, kind), values in sweep.elsewhere.items():
            called = sweep.steps.get(step_id)
            if called is not None:
                add_values(self.functions[called].elsewhere, (node, kind), values)
        for step_id, called in sweep.steps.items():
            waits = self.functions[called].waits
            for key, waited_ps in sweep.waits(step_id, partial(self.inputs, called)):
                add_values(waits, key, [1, waited_ps, waited_ps, waited_ps])
        for stage, values in sweep.stages.items():
            add_times(self.stages, stage, values)


def _is_in_use(error: Exception) -> bool:
    """Whether a session could not begin because there is another."""
    return type(error).__name__ == "AlreadyExistsError" or "ALREADY_EXISTS" in str(error) or "lready" in str(error)


def _serves_other_processes() -> bool:
    """Whether TensorFlow has a server of a cluster in this process. bench/results/tf_profiler_servers.md has what
    happens then, without Leadline."""
    context = getattr(sys.modules.get("tensorflow.python.eager.context"), "context", None)
    if context is None:
        return False
    found = context()
    return any(getattr(found, name, None) is not None for name in ("_server_def", "_collective_ops_server_def"))


def _none(function: str, node: str, ran: Collection[str]) -> tuple[str, ...] | None:
    return None


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
