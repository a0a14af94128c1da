"""A calling context tree that is obviously right: measurements in lists, keyed by whole call paths. Slow on purpose."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple


class Frame(NamedTuple):
    """A frame as the file tells it; the order of the fields is that of the `node` line of cct_replay."""

    kind: int
    name: str
    file: str = ""
    line: int = 0
    first_line: int = 0
    module: str = ""
    address: int = 0
    detail: str = ""


Path = tuple[Frame, ...]


class Key(NamedTuple):
    """What is measured: metric number, row of the device (-1: CPU), stream (-1: none)."""

    metric: int
    device: int = -1
    stream: int = -1


@dataclass(frozen=True)
class Values:
    """Values of one metric at one path; units are the metric's."""

    count: int
    sum: int
    min: int
    max: int
    std: float

    @classmethod
    def of(cls, measured: list[int]) -> Values:
        mean = sum(measured) / len(measured)
        variance = sum((value - mean) ** 2 for value in measured) / len(measured)
        return cls(len(measured), sum(measured), min(measured), max(measured), math.sqrt(variance))


@dataclass(frozen=True)
class Event:
    path: Path
    start_ns: int
    duration_ns: int
    kind: int
    thread: int
    bytes: int


@dataclass
class ReferenceTree:
    """The same operations as cct_replay, with paths in place of node numbers."""

    process: Path
    nodes: list[list[Path]] = field(default_factory=list)  # per thread, by node number
    measured: dict[Path, dict[Key, list[int]]] = field(default_factory=dict)
    paths: set[Path] = field(default_factory=set)
    blocks: dict[int, tuple[int, Path, int]] = field(default_factory=dict)  # address: bytes, path, device
    peaks: dict[int, tuple[int, dict[Path, int]]] = field(default_factory=dict)  # device: total, bytes by path
    events: list[Event] = field(default_factory=list)
    unknown_frees: int = 0

    def __post_init__(self) -> None:
        self.paths |= {self.process[:1], self.process}

    def thread(self, frame: Frame) -> None:
        path = (*self.process, frame)
        self.nodes.append([path])
        self.paths.add(path)

    def node(self, thread: int, parent: int, frame: Frame) -> None:
        path = (*self.nodes[thread][parent], frame)
        self.nodes[thread].append(path)
        self.paths.add(path)

    def graft(self, thread: int, target_thread: int, target: int) -> None:
        self.nodes[thread].append(self.nodes[target_thread][target])

    def add(self, thread: int, node: int, key: Key, value: int) -> None:
        self.measured.setdefault(self.nodes[thread][node], {}).setdefault(key, []).append(value)

    def allocate(self, thread: int, node: int, address: int, size: int, device: int) -> None:
        self.blocks.pop(address, None)
        self.blocks[address] = (size, self.nodes[thread][node], device)
        live: dict[Path, int] = {}
        for block_size, path, block_device in self.blocks.values():
            if block_device == device:
                live[path] = live.get(path, 0) + block_size
        total = sum(live.values())
        if total > self.peaks.get(device, (0, {}))[0]:
            self.peaks[device] = (total, live)

    def release(self, address: int) -> None:
        if self.blocks.pop(address, None) is None:
            self.unknown_frees += 1

    def event(self, thread: int, node: int, start_ns: int, duration_ns: int, kind: int, size: int) -> None:
        self.events.append(Event(self.nodes[thread][node], start_ns, duration_ns, kind, thread, size))

    def metrics(self, peak_metric: int) -> dict[Path, dict[Key, Values]]:
        """Everything measured, the shares at each device's peak included."""
        found = {path: {key: Values.of(list_) for key, list_ in keys.items()} for path, keys in self.measured.items()}
        for device, (_, live) in self.peaks.items():
            for path, size in live.items():
                if size:
                    found.setdefault(path, {})[Key(peak_metric, device)] = Values.of([size])
        return found
