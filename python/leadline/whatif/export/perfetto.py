"""A Perfetto trace with the measured timeline and, beside it, the replayed and predicted ones.

Written as protobuf by hand (perfetto `trace_packet.proto`, `track_event.proto`, `track_descriptor.proto`), so that no
library is needed. Every timeline is a process, every lane a thread track in it; all start at the window's begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from leadline.whatif.export.spans import Slices, measured_slices, simulated_slices
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import PHASE_NAMES, LaneKind
from leadline.whatif.simulator import Result

_SEQUENCE = 1
_BEGIN, _END = 1, 2
_CLEARED, _NEEDED = 1, 2


def perfetto_trace(
    measured: Graph, replay: Result | None = None, predictions: Mapping[str, tuple[Graph, Result]] | None = None
) -> bytes:
    """The trace file's bytes. `predictions` maps a title to the edited graph and its simulation."""
    writer = _Writer()
    writer.timeline("measured", measured, measured_slices(measured))
    if replay is not None:
        writer.timeline("replayed", measured, simulated_slices(measured, replay))
    for title, (graph, result) in (predictions or {}).items():
        writer.timeline(f"predicted: {title}", graph, simulated_slices(graph, result))
    return writer.content()


class _Writer:
    """Collects packets; names are interned once per file."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._names: dict[str, int] = {}
        self._processes = 0
        self._first = True

    def content(self) -> bytes:
        return b"".join(self._chunks)

    def timeline(self, title: str, graph: Graph, lanes: Iterable[Slices]) -> None:
        """A process with one track per lane."""
        self._processes += 1
        process = self._processes
        # pids tell timelines apart in the viewer; they are numbers of this file, not of any machine
        descriptor = _varint(1, process) + _text(6, title)
        self._packet(_message(60, _varint(1, process * 1_000_000) + _message(3, descriptor)))
        for slices in lanes:
            self._lane(process, graph, slices)

    def _lane(self, process: int, graph: Graph, slices: Slices) -> None:
        lane = graph.lanes[slices.lane]
        track = process * 1_000_000 + slices.lane + 1
        many = len({item.rank for item in graph.lanes}) > 1
        label = {LaneKind.THREAD: "CPU", LaneKind.STREAM: "GPU", LaneKind.CHANNEL: "channel"}[lane.kind]
        name = f"{'rank ' + str(lane.rank) + ' ' if many else ''}{label} {lane.name}"
        thread = _varint(1, process) + _varint(2, slices.lane + 1) + _text(5, name)
        self._packet(_message(60, _varint(1, track) + _text(2, name) + _message(4, thread)))
        names, layers, phases = graph.column("name"), graph.column("layer"), graph.column("phase")
        open_ends: list[int] = []
        for task, start, end in zip(slices.ids.tolist(), slices.start_ns.tolist(), slices.end_ns.tolist(), strict=True):
            while open_ends and open_ends[-1] <= start:
                self._event(track, open_ends.pop(), _END)
            notes = [_annotation("phase", PHASE_NAMES[phases[task]])] if phases[task] else []
            if layers[task]:
                notes.append(_annotation("layer", graph.layers[layers[task]]))
            self._event(track, start, _BEGIN, graph.names[names[task]], b"".join(notes))
            open_ends.append(end)
        while open_ends:
            self._event(track, open_ends.pop(), _END)

    def _event(self, track: int, time_ns: int, kind: int, name: str = "", notes: bytes = b"") -> None:
        body = notes + _varint(9, kind) + _varint(11, track)
        interned = b""
        if kind == _BEGIN:
            number = self._names.get(name)
            if number is None:
                number = self._names[name] = len(self._names) + 1
                interned = _message(12, _message(2, _varint(1, number) + _text(2, name)))
            body += _varint(10, number)
        self._packet(interned + _varint(8, max(time_ns, 0)) + _message(11, body))

    def _packet(self, body: bytes) -> None:
        flags = _CLEARED if self._first else _NEEDED
        self._first = False
        self._chunks.append(_message(1, body + _varint(10, _SEQUENCE) + _varint(13, flags)))


def _annotation(name: str, value: str) -> bytes:
    return _message(4, _text(10, name) + _text(6, value))


def _number(value: int) -> bytes:
    """Base-128 varint, least significant group first."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _varint(field: int, value: int) -> bytes:
    return _number(field << 3) + _number(value)


def _message(field: int, body: bytes) -> bytes:
    return _number(field << 3 | 2) + _number(len(body)) + body


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode("utf-8", "replace"))
