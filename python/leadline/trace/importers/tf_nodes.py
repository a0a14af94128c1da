"""Nodes that TensorFlow's executors ran, as a profile: what the formats of TensorFlow 1's tracing have in common.

A node stands below its device, on the lines that made it where these are told, in its name scopes; gradients in a
phase `backward`. What is told of its inputs says what it waited for. Where no thread is told, or nodes of one overlap,
they are put side by side, so that what ran at the same time can be seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from leadline._dataclass import dataclass, field
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Tables
from leadline.schema import EventKind, FrameKind, LossKind, MetricKind
from leadline.trace.event_types import device_kind
from leadline.trace.importers.meta import imported_meta
from leadline.trace.tables import Kind, TraceError
from leadline.trace.xspace_tensors import HAS, End
from leadline.xla.events import graph_scopes

Line = tuple[str, int, str]
"""File, line and function."""
LONGEST_NS = 24 * 3600 * 10**9
"""What lies further from the rest, or lasts longer, is damage."""
_STREAM = re.compile(r"/(?:device:)?(?:GPU|gpu):(?P<gpu>\d{1,4})/(?:stream:(?P<stream>\d{1,6}|all)|(?P<copies>memcpy))")
_DEVICE = re.compile(r"(?:device:)?(?P<name>[A-Za-z_]+:\d+)$")
_TASK = re.compile(r"/task:(?P<task>\d+)")
_WORK = {Kind.KERNEL: EventKind.KERNEL, Kind.COPY: EventKind.COPY, Kind.SET: EventKind.SET}
_SENDS, _RECEIVES = ("_Send", "_HostSend"), ("_Recv", "_HostRecv")
_SUFFIX = re.compile(r":\d+$")


@dataclass(frozen=True)
class NodeRun:
    """One node that ran. `thread`: 0 where it is not told; `scheduled_ns`: when it was put into the executor's queue,
    -1 where that is not told; `step`: which call of the graph; `inputs`: names of nodes, of control inputs too."""

    device: str
    name: str
    kind: str
    start_ns: int
    duration_ns: int
    thread: int = 0
    scheduled_ns: int = -1
    inputs: tuple[str, ...] = ()
    step: int = 0
    waits: bool = False
    """It was asynchronous: its thread did something else meanwhile."""
    tensor: str = ""
    """What it sends to another device or process, or receives from one: the edge's name in the rendezvous."""


@dataclass(frozen=True)
class Request:
    """What a process asked another one for, or a rendezvous, until it had it. `kind`: in the log's word."""

    kind: str
    what: str
    start_ns: int
    duration_ns: int


@dataclass
class NodeTrace:
    """Nodes of one file, and requests. `lines`: of nodes by name, the outermost first. `threads`: names by number."""

    runs: list[NodeRun] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    lines: dict[str, Sequence[Line]] = field(default_factory=dict)
    threads: dict[int, str] = field(default_factory=dict)
    losses: dict[str, int] = field(default_factory=dict)
    complete: bool = True


def plain(name: str) -> str:
    """The node that an input such as `^init` or `split:1` comes from."""
    return _SUFFIX.sub("", name.removeprefix("^"))


def profile_of(trace: NodeTrace, source: str, recorder: str) -> Profile:
    """Raises TraceError where there is no node."""
    begin = min((run.start_ns for run in trace.runs), default=0)
    kept = [run for run in trace.runs if 0 <= run.duration_ns < LONGEST_NS and run.start_ns - begin < LONGEST_NS]
    if not kept:
        raise TraceError(f"{source} is {recorder} and holds no node that ran; record a call of a graph")
    if len(kept) < len(trace.runs):
        sentence = "Nodes that lie more than a day after the first, or last longer."
        trace.losses[sentence] = len(trace.runs) - len(kept)
    return _Booking(trace, sorted(kept, key=lambda run: (run.start_ns, -run.duration_ns)), source, recorder).profile()


class _Booking:
    """Nodes in order of time, on their way into a profile."""

    def __init__(self, trace: NodeTrace, runs: Sequence[NodeRun], source: str, recorder: str) -> None:
        self._trace = trace
        self._runs = runs
        self._source = source
        self._recorder = recorder
        near = [one for one in trace.requests if abs(one.start_ns - runs[0].start_ns) + one.duration_ns < LONGEST_NS]
        self._requests = sorted(near, key=lambda one: one.start_ns)
        spans = [(one.start_ns, one.start_ns + one.duration_ns) for one in runs]
        spans += [(one.start_ns, one.start_ns + one.duration_ns) for one in self._requests]
        self._begin_ns = min(begin for begin, _ in spans)
        self._end_ns = max(end for _, end in spans)
        self._builder = ProfileBuilder()
        self._process = self._builder.process(
            source, pid=0, rank=-1, start_ns=self._begin_ns, end_ns=self._end_ns, complete=int(trace.complete)
        )
        self._threads: dict[tuple[str, int, int], int] = {}
        self._free_at: dict[tuple[str, int], list[int]] = {}
        self._ran_ns: dict[int, list[int]] = {}
        """Of each thread when it began, when it ended, and how long nodes ran on it."""
        self._devices: dict[int, int] = {}
        self._step = {step: place for place, step in enumerate(dict.fromkeys(run.step for run in runs))}
        self._tasks = {found["task"] for run in runs if (found := _TASK.search(run.device))}

    def profile(self) -> Profile:
        for run in _once(self._runs):
            if (work := _STREAM.search(run.device)) is not None:
                self._book_work(run, work)
            else:
                self._book(run)
        for request in self._requests:
            self._book_request(request)
        for sentence, count in self._trace.losses.items():
            self._builder.loss(self._process, LossKind.EVENTS_DROPPED, count, sentence)
        tables = self._builder.tables()
        threads = {name: values.copy() for name, values in tables["threads"].items()}
        for row, (begin, end, ran) in self._ran_ns.items():
            threads["wall_ns"][row] = end - begin
            threads["cpu_ns"][row] = threads["operator_ns"][row] = ran
        meta = imported_meta(
            self._source, self._recorder, pid=0, rank=-1, origin_ns=self._begin_ns,
            wall_ns=self._end_ns - self._begin_ns, complete=self._trace.complete,
            estimated=f"Made from {self._recorder}, which records nodes only: other work of threads is not known.",
        )  # fmt: skip
        meta["processes"][0]["dataflow"] = self._dataflow()
        return Profile(Tables({**tables.columns, "threads": threads}), meta)

    def _book(self, run: NodeRun) -> None:
        thread = self._thread(run)
        node = self._node(self._builder.node_of_thread(thread), run.name, run.kind, run.waits)
        self._builder.add(node, MetricKind.CALL_TIME, run.duration_ns)
        self._builder.add(node, MetricKind.WAIT_TIME if run.waits else MetricKind.TIME, run.duration_ns)
        self._builder.event(
            EventKind.OPERATOR, node, run.start_ns - self._begin_ns, run.duration_ns, thread=thread,
            correlation=1 + self._step[run.step],
        )  # fmt: skip
        if run.tensor and run.kind in _RECEIVES:  # a moment of its own, as in TensorFlow's profiles
            node = self._builder.child(node, self._builder.frame(FrameKind.API, HAS))
            end_ns = run.start_ns - self._begin_ns + run.duration_ns
            self._builder.event(EventKind.REGION, node, end_ns, 0, thread=thread)

    def _book_request(self, request: Request) -> None:
        """On threads of their own: whoever asked did something else meanwhile."""
        # one thread for each kind
        run = NodeRun(request.kind, request.what, request.kind, request.start_ns, request.duration_ns)
        thread = self._thread(run)
        self._ran_ns[thread][2] = 0  # it waited
        detail = json.dumps({"tensor": request.what})
        frame = self._builder.frame(FrameKind.API, request.kind, detail=detail)
        node = self._builder.child(self._builder.node_of_thread(thread), frame)
        self._builder.add(node, MetricKind.WAIT_TIME, request.duration_ns)
        begin_ns = request.start_ns - self._begin_ns
        self._builder.event(EventKind.REGION, node, begin_ns, request.duration_ns, thread=thread)

    def _book_work(self, run: NodeRun, where: re.Match[str]) -> None:
        """A kernel or a copy: `node:Operation`, or whatever the driver calls it."""
        index = int(where["gpu"])
        if index not in self._devices:
            self._devices[index] = self._builder.device(self._process, index, f"GPU:{index}")
        device = self._devices[index]
        stream = int(where["stream"]) if (where["stream"] or "all") != "all" else 0
        name, _, kind = run.name.partition(":")
        node = self._node(self._builder.node_of_process(self._process), name, kind or run.kind or name)
        found = device_kind(run.name, Kind.KERNEL)
        frame_kind = FrameKind.KERNEL if found == Kind.KERNEL else FrameKind.COPY
        node = self._builder.child(node, self._builder.frame(frame_kind, run.name))
        self._builder.add(node, MetricKind.GPU_TIME, run.duration_ns, device, stream)
        self._builder.event(
            _WORK[found], node, run.start_ns - self._begin_ns, run.duration_ns, device=device, stream=stream
        )

    def _node(self, above: int, name: str, kind: str, waits: bool = False) -> int:
        builder = self._builder
        for file, line, function in self._trace.lines.get(name, ()):
            above = builder.child(above, builder.frame(FrameKind.PYTHON, function, file=file, line=line))
        for frame_kind, part in graph_scopes(name):
            above = builder.child(above, builder.frame(FrameKind[frame_kind.upper()], part))
        detail = json.dumps({"node": name, **({"asynchronous": True} if waits else {})})
        return builder.child(above, builder.frame(FrameKind.OPERATOR, kind or name, detail=detail))

    def _thread(self, run: NodeRun) -> int:
        """That of the node, or one beside it where another node still runs there."""
        ends = self._free_at.setdefault((run.device, run.thread), [])
        lane = next((place for place, end in enumerate(ends) if end <= run.start_ns), len(ends))
        ends[lane : lane + 1] = [run.start_ns + run.duration_ns]
        key = (run.device, run.thread, lane)
        if key not in self._threads:
            self._threads[key] = self._builder.thread(
                self._process, self._thread_name(run, lane), tid=run.thread or len(self._threads) + 1
            )
        row = self._threads[key]
        times = self._ran_ns.setdefault(row, [run.start_ns, run.start_ns, 0])
        times[1] = max(times[1], run.start_ns + run.duration_ns)
        times[2] += run.duration_ns
        return row

    def _thread_name(self, run: NodeRun, lane: int) -> str:
        device = _DEVICE.search(run.device)
        name = device["name"] if device is not None else run.device or "nodes"
        if len(self._tasks) > 1 and (task := _TASK.search(run.device)) is not None:
            name = f"{name} of task {task['task']}"
        if run.thread:
            name = f"{name} {self._trace.threads.get(run.thread) or f'thread {run.thread}'}"
        return f"{name}, at the same time {lane}" if lane else name

    def _dataflow(self) -> dict[str, Any]:
        """What each node needed, as a process of ours tells it, and how long nodes were in the executor's queue."""
        names: dict[str, int] = {}
        inputs: dict[tuple[int, int], None] = {}
        queued: dict[str, list[int]] = {}
        for run in self._runs:
            names.setdefault(run.name, len(names))
            # some releases tell this moment by a clock that counts cycles
            if 0 <= run.scheduled_ns <= run.start_ns < run.scheduled_ns + LONGEST_NS:
                queued.setdefault(run.kind or run.name, []).append(run.start_ns - run.scheduled_ns)
        for run in self._runs:
            for one in map(plain, run.inputs):
                if one in names and one != run.name:
                    inputs[names[one], names[run.name]] = None
        graph = {"calls": list(names), "edges": [place for pair in inputs for place in pair]}
        found: dict[str, Any] = {"queued": queued} if queued else {}
        if inputs:
            runs = [0] * len(self._step)
            found["programs"] = {"first": 1, "graphs": [graph], "runs": runs, "naming": "node"}
        if tensors := [list(end) for run in self._runs if (end := self._end_of(run)) is not None]:
            found["tensors"] = tensors
        return found

    def _end_of(self, run: NodeRun) -> End | None:
        """Of a tensor that was handed over. The two ends are numbered one after the other (`trace/tensors.py`)."""
        if not run.tensor or run.kind not in (*_SENDS, *_RECEIVES):
            return None
        sends = run.kind in _SENDS
        begin = run.start_ns - self._begin_ns
        return run.step, f"{run.tensor}/_{0 if sends else 1}", int(sends), begin, begin + run.duration_ns, ""


def _once(runs: Sequence[NodeRun]) -> Iterable[NodeRun]:
    """Work of a device once: it is told for its stream, and again for all of them together."""
    numbered: set[str] = set()
    for run in runs:
        work = _STREAM.search(run.device)
        if work is not None and (work["copies"] or work["stream"] != "all"):
            numbered.add(work["gpu"])
    for run in runs:
        work = _STREAM.search(run.device)
        if work is None or work["stream"] != "all" or work["gpu"] not in numbered:
            yield run


def labelled(label: str) -> tuple[str, tuple[str, ...]]:
    """Operation and inputs of `name = MatMul(a, b:1)`, as TensorFlow labels a node; after a tensor's device and size
    where it was received."""
    found = _LABEL.search(label)
    if found is None:
        return "", ()
    inputs = tuple(part.strip() for part in found["inputs"].split(",") if part.strip())
    return found["kind"], inputs


_LABEL = re.compile(r" = (?P<kind>[\w>]+)\((?P<inputs>[^()]*)\)")
