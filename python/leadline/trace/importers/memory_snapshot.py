"""Torch's snapshot of a device's allocator (`torch.cuda.memory._dump_snapshot("snapshot.pickle")`) as a profile: what
each call path allocated, what was alive when most was, and live memory over the time that the snapshot records.

The format is that of torch 2.1 to 2.13 (torch/cuda/memory.py): `segments` of blocks, and per device a ring of actions,
of which a snapshot may have lost the first. What was alive before the first of them is what must have been there for
the blocks of the end to be there.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Tables
from leadline.schema import TABLES, EventKind, FrameKind, MetricKind
from leadline.trace.importers.meta import imported_meta
from leadline.trace.plain_pickle import DAMAGE, NotPlainError, load_plain
from leadline.trace.source import Source, whole_of
from leadline.trace.tables import TraceError

NAME = "torch's memory snapshot"
ESTIMATED = f"Made from {NAME}, which tells of memory only: no time was measured."
UNKNOWN = "(without a stack)"
BEFORE = "(allocated before the snapshot's history begins)"

_LIVE = ("active_allocated", "active_awaiting_free", "active_pending_free")
_LARGEST = 8 << 30
_KEYS = (b"segments", b"device_traces", b"allocator_settings")


def recognises(head: bytes, source: Source) -> bool:
    """Whether a file that begins so may be one."""
    return head[:1] == b"\x80" and any(key in head[:256] for key in _KEYS)


def read(source: Source) -> Profile:
    """Raises TraceError."""
    data = whole_of(source, _LARGEST, "which is too much of a snapshot; record fewer entries (max_entries)")
    try:
        content = load_plain(io.BytesIO(data))
        del data
        segments, traces = content["segments"], content.get("device_traces") or []
        return _Booking(source.name).profile(segments, traces)
    except NotPlainError as error:
        raise TraceError(f"{source.name} is not {NAME}: {error}.") from None
    except DAMAGE as error:
        raise TraceError(
            f"{source.name} is {NAME} that is damaged or cut off ({error!r}); copy the file again"
        ) from None


class _Device:
    """One device while its actions are booked, in bytes."""

    def __init__(self, row: int) -> None:
        self.row = row
        self.alive: dict[int, tuple[int, int]] = {}  # by address: node, bytes
        self.live = self.most = 0
        self.at_peak: list[tuple[int, int]] = []


class _Booking:
    def __init__(self, name: str) -> None:
        self._name = name
        self._builder = ProfileBuilder()
        self._process = self._builder.process(name, pid=0, rank=-1, complete=1)
        self._top = self._builder.node_of_process(self._process)
        self._nodes: dict[int, int] = {}
        """By the identity of a list of frames: a snapshot shares them between actions."""
        self._events: dict[str, list[int]] = {"start_ns": [], "bytes": [], "node": [], "device": []}
        self._devices: dict[int, _Device] = {}
        self._peaked_at: dict[int, int] = {}

    def profile(self, segments: Sequence[Mapping[str, Any]], traces: Sequence[Sequence[Mapping[str, Any]]]) -> Profile:
        at_end: dict[int, dict[int, tuple[int, int]]] = {}
        for segment in segments:
            blocks = at_end.setdefault(int(segment.get("device", 0)), {})
            address = int(segment.get("address", 0))
            for block in segment["blocks"]:
                place = int(block.get("address", address))
                address = place + int(block["size"])
                if block["state"] in _LIVE:
                    history: Mapping[str, Any] = next(iter(block.get("history") or ()), {})
                    frames = block.get("frames") or history.get("frames") or ()
                    size = int(block.get("requested_size", history.get("real_size", block["size"])))
                    blocks[place] = (self._node(frames), size)
        for index in range(max(len(traces), max(at_end, default=-1) + 1)):
            actions = traces[index] if index < len(traces) else ()
            if actions or at_end.get(index):
                self._book(index, actions, at_end.get(index, {}))
        if not self._devices:
            raise TraceError(
                f"{self._name} is {NAME} and holds no allocation; call torch.cuda.memory._record_memory_history() first"
            )
        return self._made()

    def _book(self, index: int, actions: Sequence[Mapping[str, Any]], at_end: Mapping[int, tuple[int, int]]) -> None:
        device = self._devices[index] = _Device(self._builder.device(self._process, index, f"CUDA device {index}"))
        changes, before = self._changes(actions, at_end)
        times = _times([int(action.get("time_us", -1)) for action, *_ in changes])
        for address, (node, size) in before.items():
            device.alive[address] = (node, size)
            device.live += size
            self._event(device, 0, size, node)
            self._builder.add(node, MetricKind.ALLOC_BYTES, size, device.row)
        device.most, device.at_peak = device.live, list(device.alive.values())
        # where most was alive is found first, so what was is only listed once
        live = peak = device.live
        last = -1
        for place, (_, _, size, taken) in enumerate(changes):
            live += size if taken else -size
            if live > peak:
                peak, last = live, place
        for place, (action, address, size, taken) in enumerate(changes):
            if taken:
                node = self._node(action.get("frames") or ())
                device.alive[address] = (node, size)
                self._builder.add(node, MetricKind.ALLOC_BYTES, size, device.row)
            else:
                node, size = device.alive.pop(address, (self._named(BEFORE), size))
                self._builder.add(node, MetricKind.FREE_BYTES, size, device.row)
            self._event(device, times[place], size if taken else -size, node)
            if place == last:
                device.at_peak = list(device.alive.values())
        for node, size in device.at_peak:
            self._builder.add(node, MetricKind.PEAK_LIVE_BYTES, size, device.row)

    def _changes(
        self, actions: Sequence[Mapping[str, Any]], at_end: Mapping[int, tuple[int, int]]
    ) -> tuple[list[tuple[Mapping[str, Any], int, int, bool]], dict[int, tuple[int, int]]]:
        """What changed live memory (action, address, bytes, whether it was taken), and what was alive before the first
        of it: what is freed and was not allocated, and what is there at the end and was not allocated either."""
        changes: list[tuple[Mapping[str, Any], int, int, bool]] = []
        known: set[int] = set()
        before: dict[int, tuple[int, int]] = {}
        for action in actions:
            what, address = action["action"], int(action.get("addr", 0))
            if what == "alloc":
                known.add(address)
            elif what == "free_completed":
                if address not in known:
                    before.setdefault(address, (self._named(BEFORE), int(action["size"])))
                known.add(address)
            else:
                continue
            changes.append((action, address, int(action["size"]), what == "alloc"))
        for address, found in at_end.items():
            if address not in known:
                before[address] = found
        return changes, before

    def _event(self, device: _Device, start_ns: int, size: int, node: int) -> None:
        events = self._events
        events["start_ns"].append(start_ns)
        events["bytes"].append(size)
        events["node"].append(node)
        events["device"].append(device.row)

    def _node(self, frames: Sequence[Mapping[str, Any]]) -> int:
        """The call path of a stack with the innermost first. Frames of Python, where there are any."""
        known = self._nodes.get(id(frames)) if frames else None
        if known is not None:
            return known
        named = [(str(one["name"]), str(one["filename"]), int(one["line"])) for one in frames]
        python = [one for one in named if one[1].endswith(".py") or one[1].startswith("<")]
        phase = _phase(python)
        node = self._top
        if phase:
            node = self._builder.child(node, self._builder.frame(FrameKind.PHASE, phase))
        for name, file, line in reversed(python or named):
            kind = FrameKind.PYTHON if python else FrameKind.NATIVE
            node = self._builder.child(node, self._builder.frame(kind, name, file=file, line=line))
        if not named:
            return self._named(UNKNOWN)
        self._nodes[id(frames)] = node
        return node

    def _named(self, name: str) -> int:
        return self._builder.child(self._top, self._builder.frame(FrameKind.REGION, name))

    def _made(self) -> Profile:
        tables = self._builder.tables()
        listed = {name: np.array(values, np.int64) for name, values in self._events.items()}
        order = np.argsort(listed["start_ns"], kind="stable")
        end_ns = int(listed["start_ns"].max(initial=0))
        columns: dict[str, Any] = {}
        for column in TABLES["events"].columns:
            like = tables["events"][column.name].dtype
            none = 0 if column.name in ("duration_ns", "correlation") else -1
            values = listed[column.name][order] if column.name in listed else np.full(order.size, none)
            if column.name == "kind":
                values = np.full(order.size, int(EventKind.ALLOCATE))
            columns[column.name] = values.astype(like)
        meta = imported_meta(self._name, NAME, pid=0, rank=-1, origin_ns=0, wall_ns=end_ns, estimated=ESTIMATED)
        return Profile(Tables({**tables.columns, "events": columns}), meta)


def _times(microseconds: Sequence[int]) -> list[int]:
    """Nanoseconds from the first; one after the other where a release of torch tells no times."""
    if not microseconds or min(microseconds) < 0:
        return [1000 * place for place in range(len(microseconds))]
    first = min(microseconds)
    return [1000 * (time - first) for time in microseconds]


def _phase(frames: Sequence[tuple[str, str, int]]) -> str:
    """What a training step did, by torch's own code on the stack; empty where that does not tell."""
    for name, file, _ in frames:
        path = file.replace("\\", "/")
        if "/torch/optim/" in path:
            return "optimizer"
        if path.endswith(("/torch/autograd/graph.py", "/torch/autograd/__init__.py")) and "backward" in name:
            return "backward"
    if any(file.endswith("torch/nn/modules/module.py") and name.endswith("_call_impl") for name, file, _ in frames):
        return "forward"
    return ""
