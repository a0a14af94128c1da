"""Torch's snapshot of a device's allocator (`torch.cuda.memory._dump_snapshot("snapshot.pickle")`) as a profile: what
each call path allocated, what was alive when most was, and live memory over the time that the snapshot records.

The format is that of torch 2.1 to 2.13 (torch/cuda/memory.py): `segments` of blocks, and per device a ring of actions,
of which a snapshot may have lost the first. What was alive before the first of them is what must have been there for
the blocks of the end to be there.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Tables
from leadline.schema import TABLES, EventKind, FrameKind, MetricKind
from leadline.trace.allocator import History
from leadline.trace.importers.meta import imported_meta
from leadline.trace.snapshot_file import DAMAGE, LIVE, Actions, NotPlainError, SnapshotFile
from leadline.trace.snapshot_pools import history_of, mapped_at, pools_of
from leadline.trace.source import Source, whole_of
from leadline.trace.tables import TraceError

NAME = "torch's memory snapshot"
ESTIMATED = f"Made from {NAME}, which records memory only: no time was measured."
UNKNOWN = "(without a stack)"
BEFORE = "(allocated before the snapshot's history begins)"

_LARGEST = 8 << 30
_HALF = 1 << 63
_KEYS = (b"segments", b"device_traces", b"allocator_settings")

Ints = NDArray[np.int64]


def recognises(head: bytes, source: Source) -> bool:
    """Whether a file that begins so may be one."""
    return head[:1] == b"\x80" and any(key in head[:256] for key in _KEYS)


def read(source: Source) -> Profile:
    """Raises TraceError."""
    too_much = "which is too much of a snapshot; record fewer entries (max_entries)"
    try:
        if source.compressed:
            file = SnapshotFile(io.BytesIO(whole_of(source, _LARGEST, too_much)))
        elif source.size_bytes > _LARGEST:
            raise TraceError(f"{source.name} has more than {_LARGEST >> 30} GiB, {too_much}")
        else:
            with source.open() as stream:  # the file is not held beside what it says
                file = SnapshotFile(stream)
        return _Booking(source.name, file).profile()
    except NotPlainError as error:
        raise TraceError(f"{source.name} is not {NAME}: {error}.") from None
    except DAMAGE as error:
        raise TraceError(
            f"{source.name} is {NAME} that is damaged or cut off ({error!r}); copy the file again"
        ) from None


@dataclass(frozen=True)
class _Blocks:
    """Blocks of memory as columns; `address` as in `_Changes`."""

    address: Ints
    size: Ints
    node: Ints


@dataclass(frozen=True)
class _Changes:
    """What changed live memory, in order. `address`: less 2^63, so that all 64 bits fit. `size`, `node`: of a block
    that is freed those of its allocation, where that is known. `ends`: the next change at the address, beyond the last
    one where there is none. `unseen`: the changes that free what was there before the first."""

    address: Ints
    size: Ints
    node: Ints
    time_us: Ints
    taken: NDArray[np.bool_]
    ends: Ints
    unseen: Ints


class _Booking:
    def __init__(self, name: str, file: SnapshotFile) -> None:
        self._name = name
        self._file = file
        self._builder = ProfileBuilder()
        self._process = self._builder.process(name, pid=0, rank=-1, complete=1)
        self._top = self._builder.node_of_process(self._process)
        self._nodes: dict[int, int] = {}
        """By the identity of a list of frames, of which the file keeps equal ones once."""
        self._allocators: list[History] = []
        self._events: dict[str, list[Ints]] = {"start_ns": [], "bytes": [], "node": [], "device": []}

    def profile(self) -> Profile:
        at_end = self._at_end(self._file.segments)
        booked = 0
        for index in sorted({*at_end, *range(len(self._file.traces))}):
            actions = self._file.trace(index)
            if actions.size.size or at_end.get(index):
                self._book(index, actions, at_end.get(index, []))
                booked += 1
        if not booked:
            raise TraceError(
                f"{self._name} is {NAME} and holds no allocation; call torch.cuda.memory._record_memory_history() first"
            )
        return self._made()

    def _at_end(self, segments: Sequence[Mapping[str, Any]]) -> dict[int, list[tuple[int, int, int]]]:
        """By device: address, bytes and node of every block in use."""
        found: dict[int, list[tuple[int, int, int]]] = {}
        for segment in segments:
            blocks = found.setdefault(int(segment.get("device", 0)), [])
            address = int(segment.get("address", 0))
            for block in segment["blocks"]:
                place = int(block.get("address", address))
                address = place + int(block["size"])
                if block["state"] in LIVE:
                    history: Mapping[str, Any] = next(iter(block.get("history") or ()), {})
                    frames = block.get("frames") or history.get("frames") or ()
                    size = int(block.get("requested_size", history.get("real_size", block["size"])))
                    blocks.append((place - _HALF, size, self._node(frames)))
        return found

    def _book(self, index: int, actions: Actions, at_end: Sequence[tuple[int, int, int]]) -> None:
        device = self._builder.device(self._process, index, f"CUDA device {index}")
        counted = actions.are("alloc", "free_completed")
        changes = self._changes(actions, counted)
        before = self._before(changes, at_end)
        count, unseen = changes.address.size, changes.unseen.size
        signed = np.where(changes.taken, changes.size, -changes.size)
        level = np.cumsum(signed)
        last = int(np.argmax(level)) if count and int(level.max()) > 0 else -1
        times = _times(changes.time_us)
        self._allocators.append(pools_of(self._file.segments, index, int(times.max(initial=0))))
        if count:
            mapped = mapped_at(actions, counted)
            self._allocators.append(history_of(self._allocators[-1], times, level + before.size.sum(), mapped))

        held = changes.taken & (np.arange(count) <= last) & (changes.ends > last)
        kept = np.concatenate((changes.unseen > last, np.ones(before.size.size - unseen, np.bool_)))
        self._event(device, np.zeros(before.size.size, np.int64), before.size, before.node)
        self._event(device, times, signed, changes.node)
        for metric, blocks, chosen in (
            (MetricKind.ALLOC_BYTES, before, slice(None)),
            (MetricKind.ALLOC_BYTES, changes, changes.taken),
            (MetricKind.FREE_BYTES, changes, ~changes.taken),
            (MetricKind.PEAK_LIVE_BYTES, before, kept),
            (MetricKind.PEAK_LIVE_BYTES, changes, held),
        ):
            self._add(metric, device, blocks.node[chosen], blocks.size[chosen])

    def _changes(self, actions: Actions, counted: NDArray[np.bool_]) -> _Changes:
        """Of the actions that change live memory."""
        taken = actions.are("alloc")
        stacks, which = np.unique(actions.stack[taken], return_inverse=True)
        nodes = np.array([self._node(self._file.frames(one)) for one in stacks.tolist()], np.int64)
        node = np.full(taken.size, -1, np.int64)
        node[taken] = nodes[which]
        return self._paired(actions.address[counted], actions.size[counted], node[counted], actions.time_us[counted])

    def _paired(self, address: Ints, size: Ints, node: Ints, time_us: Ints) -> _Changes:
        """Each free with the allocation before it at its address."""
        count, taken = address.size, node >= 0
        order = np.argsort(address, kind="stable")
        same = address[order[1:]] == address[order[:-1]]
        earlier = np.full(count, -1, np.int64)
        earlier[order[1:]] = np.where(same, order[:-1], -1)
        ends = np.full(count, count, np.int64)
        ends[order[:-1]] = np.where(same, order[1:], count)
        frees = np.flatnonzero(~taken)
        of = earlier[frees]
        known = (of >= 0) & taken[of]
        size[frees[known]], node[frees[known]] = size[of[known]], node[of[known]]
        if not known.all():
            node[frees[~known]] = self._named(BEFORE)
        return _Changes(address, size, node, time_us, taken, ends, frees[of < 0])

    def _before(self, changes: _Changes, at_end: Sequence[tuple[int, int, int]]) -> _Blocks:
        """What was alive before the first change: what is freed and was not allocated, in the order of `unseen`, then
        what is there at the end and was not allocated either."""
        listed = np.array(at_end, np.int64).reshape(-1, 3)
        known = np.sort(changes.address)
        last = np.searchsorted(known, listed[:, 0], side="right") - 1
        listed = listed[(last < 0) | (known[last] != listed[:, 0])] if known.size else listed
        columns = (changes.address, changes.size, changes.node)
        return _Blocks(*(np.concatenate((column[changes.unseen], listed[:, at])) for at, column in enumerate(columns)))

    def _event(self, device: int, start_ns: Ints, size: Ints, node: Ints) -> None:
        columns = {"start_ns": start_ns, "bytes": size, "node": node, "device": np.full(size.size, device)}
        for name, values in columns.items():
            self._events[name].append(values)

    def _add(self, metric: MetricKind, device: int, node: Ints, size: Ints) -> None:
        """One measurement for each block, summed by node."""
        order = np.argsort(node, kind="stable")
        rows, first = np.unique(node[order], return_index=True)
        if not rows.size:
            return
        values = size[order]
        counts = np.diff(np.append(first, values.size))
        squares = np.add.reduceat(values.astype(np.float64) ** 2, first)
        folded = [one.reduceat(values, first) for one in (np.add, np.minimum, np.maximum)]
        for row, count, total, least, most, square in zip(
            *(one.tolist() for one in (rows, counts, *folded, squares)), strict=True
        ):
            self._builder.add_total(row, metric, (count, total, least, most, square), device)

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
        listed = {name: np.concatenate(values) for name, values in self._events.items()}
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
        meta = imported_meta(
            self._name,
            NAME,
            pid=0,
            rank=-1,
            origin_ns=0,
            wall_ns=end_ns,
            estimated=ESTIMATED,
            allocators=self._allocators,
        )
        return Profile(Tables({**tables.columns, "events": columns}), meta)


def _times(microseconds: Ints) -> Ints:
    """Nanoseconds from the first; one after the other where a release of torch tells no times."""
    if not microseconds.size or int(microseconds.min()) < 0:
        return 1000 * np.arange(microseconds.size)
    since_first: Ints = 1000 * (microseconds - microseconds.min())
    return since_first


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
