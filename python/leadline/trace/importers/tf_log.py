"""Verbose logs of TensorFlow: when each node began and ended, and where (`TF_CPP_VMODULE=executor=2`), and what
processes asked each other for (`grpc_remote_worker=3`, `base_rendezvous_mgr=3`).

A node goes from `Process node` to `Synchronous kernel done` or `Async kernel done`. Dead ones, on the side of a
condition that was not taken and behind the end of a loop, do so without running, and are left out. A loop processes a
node again, and the first to begin is taken to be the first to end.
"""

from __future__ import annotations

import io
import re
from collections import deque
from datetime import datetime, timezone

from leadline._dataclass import replace
from leadline.profiles.profile import Profile
from leadline.trace.importers.tf_nodes import NodeRun, NodeTrace, Request, profile_of
from leadline.trace.source import Source
from leadline.trace.tables import TraceError

NAME = "a verbose log of TensorFlow's executor"

_PREFIX = re.compile(
    r"^(?:[IWEF](?P<month>\d\d)(?P<day>\d\d) (?:00:00:(?P<unix>\d{9,11}\.\d{6})|(?P<time>\d\d:\d\d:\d\d\.\d{6}))"
    r" +(?P<thread>\d+)|(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}): [IWEF]) (?P<file>[\w./-]+\.(?:cc|h)):\d+\] "
)
"""Of a line of today's logs, before and after their start, and of those until 2.18, which tell no thread."""
_STATE = re.compile(
    r"(?P<state>Process node|Synchronous kernel done|Async kernel done): (?P<node>\d+) step (?P<step>-?\d+) "
    r"(?:\{\{node (?P<name>[^{}]+)\}\}|(?P<bare>\S+)) = (?P<kind>[\w>]+)\["
)
_TENSOR = re.compile(r'\btensor_name="(?P<name>[^"]*)"')
_OF_CLIENT = "client_terminated=true"
_ASKS = re.compile(r"(?P<asks>RecvTensorAsync req|RemoteRendezvous Recv)\b:?(?P<rest>.*)")
_HAS = re.compile(r"(?P<has>done callback|RemoteRendezvous Finished (?:Local|Remote) Recv)\b,?(?P<rest>.*)")
_KEY = re.compile(r'^rendezvous_key: "(?P<key>[^"]+)"')
_RPC, _RENDEZVOUS = "RecvTensor", "RemoteRendezvous Recv"
_END = re.compile(r"\]\((?P<inputs>[^()]*)\)(?P<dead> is dead)?(?:,? device: (?P<device>\S+))?\s*$")
_OPEN = "Nodes that had begun and not ended where the log ends."
_UNKNOWN = "Ends of nodes whose begin is not in the log."


def recognises(head: bytes, source: Source) -> bool:
    """Whether a file that begins so may be one: a line of TensorFlow's logs is there; what the program wrote itself may
    stand before."""
    lines = head.decode("utf-8", "replace").splitlines()
    return any(_PREFIX.match(line) is not None for line in lines)


def read(source: Source) -> Profile:
    """The profile of every call of a graph that the log has. Raises TraceError."""
    reading = _Reading()
    with source.open() as stream:
        for line in io.TextIOWrapper(stream, "utf-8", "replace"):
            reading.take(line)
    trace = reading.trace()
    if not trace.runs:
        raise TraceError(
            f"{source.name} is a log of TensorFlow without a node that ran; start the program with "
            "TF_CPP_VMODULE=executor=2 in the environment"
        )
    return profile_of(trace, source.name, NAME)


class _Reading:
    """The nodes that have begun, by step and number, and those that have ended."""

    def __init__(self) -> None:
        self._begun: dict[tuple[int, int], deque[NodeRun]] = {}
        self._trace = NodeTrace()
        self._unknown = 0
        self._asked: dict[tuple[str, str], deque[int]] = {}
        self._message: tuple[bool, int] | None = None
        """Of the request whose fields the next lines tell: whether it was answered, and when that was written."""

    def take(self, line: str) -> None:
        prefix = _PREFIX.match(line)
        if prefix is None:
            self._told_key(line)
            return
        self._message = None
        if prefix["file"].endswith(("grpc_remote_worker.cc", "base_rendezvous_mgr.cc")):
            self._exchange(line[prefix.end() :], _time_ns(prefix))
        if not prefix["file"].endswith("executor.cc"):
            return
        state = _STATE.match(line, prefix.end())
        end = _END.search(line, state.end() - 1) if state is not None else None
        if state is None or end is None or end["dead"]:
            return
        step, number = int(state["step"]), int(state["node"])
        if state["state"] != "Process node":
            begun = self._begun.get((step, number))
            if not begun:
                self._unknown += 1
                return
            self._ended(begun.popleft(), _time_ns(prefix), state["state"].startswith("Async"))
        else:
            inputs = tuple(part.strip() for part in end["inputs"].split(",") if part.strip())
            thread = int(prefix["thread"] or 0) & 0xFFFFFFFF
            # what a client feeds and fetches is handed to no device
            tensor = None if _OF_CLIENT in line else _TENSOR.search(line, state.end())
            run = NodeRun(
                end["device"] or "", state["name"] or state["bare"], state["kind"], _time_ns(prefix), 0,
                thread=thread, inputs=inputs, step=step, tensor=tensor["name"] if tensor is not None else "",
            )  # fmt: skip
            self._begun.setdefault((step, number), deque()).append(run)

    def _exchange(self, text: str, time_ns: int) -> None:
        """A line on what was asked for, or came. Requests tell their key in lines that follow."""
        asks, has = _ASKS.match(text), _HAS.match(text)
        if (asks is not None and asks["asks"].startswith(_RPC)) or (has is not None and has["has"] == "done callback"):
            self._message = (has is not None, time_ns)
        elif asks is not None:
            self._handed(_RENDEZVOUS, asks["rest"].strip(), False, time_ns)
        elif has is not None:
            self._handed(_RENDEZVOUS, has["rest"].strip(), True, time_ns)

    def _told_key(self, line: str) -> None:
        key = _KEY.match(line)
        if key is not None and self._message is not None:
            self._handed(_RPC, key["key"], *self._message)
            self._message = None

    def _handed(self, kind: str, key: str, came: bool, time_ns: int) -> None:
        """`key`: sender, its incarnation, receiver, name of the edge, and which turn of a loop; a rendezvous' own
        address may stand before."""
        asked = self._asked.setdefault((kind, key), deque())
        if not came:
            asked.append(time_ns)
        elif asked:
            begin = asked.popleft()
            parts = key.split(";")
            what = parts[3] if len(parts) > 3 else key
            self._trace.requests.append(Request(kind, what, begin, max(time_ns - begin, 0)))

    def _ended(self, run: NodeRun, end_ns: int, waits: bool) -> None:
        self._trace.runs.append(replace(run, duration_ns=max(end_ns - run.start_ns, 0), waits=waits))

    def trace(self) -> NodeTrace:
        still = sum(len(begun) for begun in self._begun.values())
        told = {_OPEN: still, _UNKNOWN: self._unknown}
        self._trace.losses = {sentence: count for sentence, count in told.items() if count}
        return self._trace


def _time_ns(prefix: re.Match[str]) -> int:
    """Since 1970. Logs tell the machine's local time, some without the year: these are of no date."""
    if prefix["unix"]:
        seconds, _, part = prefix["unix"].partition(".")
        return int(seconds) * 10**9 + int(part) * 1000
    stamp = prefix["stamp"] or f"1972-{prefix['month']}-{prefix['day']} {prefix['time']}"  # a leap year
    try:
        found = datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=timezone.utc)
    except ValueError:
        return 0
    return (int(found.timestamp()) * 10**6 + found.microsecond) * 1000
