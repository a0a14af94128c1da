"""Short windows in which TensorFlow's profiler times the nodes of graphs and the stages of tf.data.

A window is opened before a call from Python and closed after one, so functions in it are whole. A function is timed in
its second call, and once more some calls later, since early calls make what later ones find made.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from leadline.capture.providers.profilers.windows import ProfilerWindows
from leadline.capture.providers.tensorflow.allocators import MOST_MOMENTS, Allocators
from leadline.capture.providers.tensorflow.recorded import NodeSums, Sums, add_times, read
from leadline.capture.providers.tensorflow.runs import FUNCTION, Key

if TYPE_CHECKING:
    from leadline.capture.providers.tensorflow.trace import TracedCalls

_FOLDER = "ram://leadline"
ALWAYS_VARIABLE = "LEADLINE_TENSORFLOW_WINDOWS"
"""Environment: `always` times nodes in processes with a server too."""
_SERVES = (
    "Nodes of TensorFlow's graphs have no times and are in no trace window here: its profiler ends processes that "
    f"serve others (their memory is damaged when it stops while gRPC records); {ALWAYS_VARIABLE}=always tries it."
)
ASKED = "Iterator::Root"
"""The stage of tf.data that runs each time that the program asks for an element."""
_LATER = 8
"""Calls after which a function that was timed early is timed again."""
_OPTIONS = {"host_tracer_level": 3, "device_tracer_level": 0, "python_tracer_level": 0}
"""Below 3 TensorFlow leaves out nodes that it found to be cheap."""


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
        self.functions: dict[str, Sums] = {}
        """By function as TensorFlow calls it."""
        self.stages: dict[str, list[int]] = {}
        self.allocators = Allocators()
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
        window = read(data, keep=self._traces)
        if window.problem:
            self._loss(f"A window of TensorFlow's profiler could not be read: {window.problem}")
            return
        self.count += 1
        for place, (function, runs, nodes) in enumerate(window.functions()):
            sums = self.functions.setdefault(function, Sums())
            if sums.early and not self._for_first_run:
                sums = self.functions[function] = Sums(early=False)
            sums.add(runs, nodes, window.waits(place, self._inputs_of(function, nodes)))
            self._until_again.setdefault(function, _LATER)
        stages = window.stages()
        if not self._for_first_run or any(stage == ASKED for stage, _ in stages):
            for stage, times in stages:  # else ahead of a program that asks for nothing meanwhile
                add_times(self.stages, stage, times)
        shift_ns = None
        if self._traces and self.traced is not None:
            shift_ns = self.traced.add(window)
        self.allocators.add(window.allocators(MOST_MOMENTS), shift_ns)

    def _inputs_of(self, function: str, nodes: Sequence[NodeSums]) -> Callable[[str], tuple[str, ...] | None]:
        ran = dict.fromkeys(name for name, *_ in nodes)
        return lambda node: self.inputs(function, node, ran)


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
