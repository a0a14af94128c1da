"""Writes timelines as a Perfetto trace: processes, tracks in them, slices that nest, arrows between slices, amounts
over time, switches.

Protobuf by hand (perfetto `trace_packet.proto`, `track_event.proto`, `track_descriptor.proto`, `ftrace_event.proto`),
so that no library is needed. All slices of a track are encoded at once: integers take a fixed number of bytes, so a
packet of one shape is a row of a matrix. Times are nanoseconds from a beginning of the caller's choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, field
from leadline.trace.interleave import Matrix, Rows, interleaved, rows_of, signed_varints, varints
from leadline.trace.lanes import Lane
from leadline.trace.protobuf import bytes_field, integer_field, present_field, text_field

_SEQUENCE = 1
_BEGIN, _END, _COUNTER = 1, 2, 4
_UNIT_COUNT, _UNIT_BYTES = 2, 3  # of CounterDescriptor
_CLEARED, _NEEDED = 1, 2
_CATEGORY, _NAME, _NOTE_NAME, _NOTE_TEXT = 1, 2, 3, 29  # fields of InternedData
_LEAVES, _ARRIVES = 47, 48  # flow_ids, terminating_flow_ids
_TRACK_BYTES = 3
_TIME_BYTES, _LONG_TIME_BYTES = 7, 9
_NUMBER_BYTES = 9
_EVENTS_PER_BUNDLE = 5_000
_PRIORITY = 120  # of nice 0; none is recorded


@dataclass(frozen=True)
class Texts:
    """A text per slice, as its row in `labels`; -1 for none."""

    codes: Rows
    labels: Sequence[str]


@dataclass(frozen=True)
class Spans:
    """Slices of one track: their lane and, in its order, their names and what is shown beside them. Notes of numbers
    are left out where they are 0. Slices that share a number of `leaves` and `arrives` (0: none) are joined by an
    arrow."""

    lane: Lane
    names: Texts
    category: Texts | None = None
    notes: Mapping[str, Texts] = field(default_factory=dict)
    numbers: Mapping[str, Rows] = field(default_factory=dict)
    leaves: NDArray[np.uint64] | None = None
    arrives: NDArray[np.uint64] | None = None


class PerfettoWriter:
    """Gives packets to `write`; the trace is whole when the caller has written all it has."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._interned: dict[int, dict[str, int]] = {}
        self._pending = b""
        self._processes = 0
        self._tracks = 0
        self._track_of_process: dict[int, int] = {}
        self._first = True

    def process(self, title: str, pid: int | None = None) -> int:
        """A new process. Its number is of this file, since machines share pids, unless `pid` is given."""
        self._processes += 1
        process = self._processes if pid is None else pid
        descriptor = present_field(1, process) + text_field(6, title)
        track = self._track_of_process[process] = self._track()
        self._packet(bytes_field(60, present_field(1, track) + bytes_field(3, descriptor)))
        return process

    def track(self, process: int, number: int, name: str) -> int:
        """A track of a process, `number` from 1 (of a thread: its own); returns what `slices` takes."""
        track = self._track()
        thread = present_field(1, process) + present_field(2, number) + text_field(5, name)
        self._packet(bytes_field(60, present_field(1, track) + text_field(2, name) + bytes_field(4, thread)))
        return track

    def slices(self, track: int, spans: Spans) -> None:
        """All slices of a track."""
        lane = spans.lane
        if not lane.rows.size:
            return
        begins, ends = lane.places
        width = _TIME_BYTES if int(lane.end_ns.max()) < 1 << 7 * _TIME_BYTES else _LONG_TIME_BYTES
        ended = rows_of(lane.rows.size, present_field(9, _END) + _tag(11) + _track_bytes(track))
        parts = [(ends, _events(ended, varints(np.maximum(lane.end_ns, 0), width), needed=False))]
        for rows, body in self._begun(track, spans):
            times = varints(np.maximum(lane.start_ns[rows], 0), width)
            parts.append((begins[rows], _events(body, times, needed=True)))
        self._flush()
        self._write(interleaved(parts)[0].tobytes())

    def counter(self, process: int, name: str, time_ns: Rows, values: Rows, *, in_bytes: bool) -> None:
        """An amount of a process over time; times in order, values of any sign."""
        if not time_ns.size:
            return
        track = self._track()
        unit = present_field(3, _UNIT_BYTES if in_bytes else _UNIT_COUNT)
        above = present_field(5, self._track_of_process[process])
        self._packet(bytes_field(60, present_field(1, track) + text_field(2, name) + above + bytes_field(8, unit)))
        self._flush()
        told = (present_field(9, _COUNTER) + _tag(11) + _track_bytes(track) + _tag(30), signed_varints(values))
        times = varints(np.maximum(time_ns, 0), _LONG_TIME_BYTES)
        self._write(_events(rows_of(time_ns.size, *told), times, needed=True).tobytes())

    def _begun(self, track: int, spans: Spans) -> list[tuple[Rows, Matrix]]:
        """Bodies of begins by shape: which notes and arrows a slice has."""
        count = spans.lane.rows.size
        columns: list[tuple[NDArray[np.bool_], Callable[[Rows], Matrix]]] = []
        for field_, texts in ((_NAME, spans.names), (_CATEGORY, spans.category)):
            if texts is not None:
                ids = self._ids(field_, texts)
                tag = present_field(10 if field_ == _NAME else 3, 0)[:-1]
                columns.append((ids > 0, _reference(tag, ids)))
        for note, texts in spans.notes.items():
            ids = self._ids(_NOTE_TEXT, texts)
            head = present_field(1, self._intern(_NOTE_NAME, note)) + _tag(17)
            columns.append((ids > 0, _note(head, ids, _id_bytes(ids))))
        for note, numbers in spans.numbers.items():
            head = present_field(1, self._intern(_NOTE_NAME, note)) + _tag(4)
            columns.append((numbers > 0, _note(head, numbers, _NUMBER_BYTES)))
        for field_, flows in ((_LEAVES, spans.leaves), (_ARRIVES, spans.arrives)):
            if flows is not None:
                columns.append((flows > 0, _flow(field_, flows)))
        shape = np.zeros(count, dtype=np.int64)
        for number, (present, _) in enumerate(columns):
            shape |= present.astype(np.int64) << number
        found = []
        for one in np.flatnonzero(np.bincount(shape)).tolist():
            rows = np.flatnonzero(shape == one)
            pieces = [make(rows) for number, (_, make) in enumerate(columns) if one >> number & 1]
            head = present_field(9, _BEGIN) + _tag(11) + _track_bytes(track)
            found.append((rows, rows_of(rows.size, head, *pieces)))
        return found

    def kernel(self) -> None:
        """States of switches are numbered as the kernel has done since 4.14 (256: sent off while it could run). Without
        a release readers take them for those of older ones."""
        name = text_field(1, "Linux") + text_field(3, "4.14.0")
        self._packet(bytes_field(45, bytes_field(1, name)), sequence=False)

    def switches(self, cpu: int, time_ns: Rows, codes: Rows, bodies: Sequence[bytes]) -> None:
        """Events of the scheduler on one CPU in time order: when, and which of `bodies` (`switched`, `woken`)."""
        size = np.array([len(body) for body in bodies], dtype=np.int64)
        parts = []
        for length in np.unique(size[codes]).tolist():
            places = np.flatnonzero(size[codes] == length)
            table = np.zeros((len(bodies), length), dtype=np.uint8)
            for number in np.flatnonzero(size == length).tolist():
                table[number] = np.frombuffer(bodies[number], dtype=np.uint8)
            head = bytes_field(2, bytes(1 + _LONG_TIME_BYTES + length))[: -1 - _LONG_TIME_BYTES - length] + _tag(1)
            times = varints(np.maximum(time_ns[places], 0), _LONG_TIME_BYTES)
            parts.append((places, rows_of(places.size, head, times, table[codes[places]])))
        data, begins = interleaved(parts)
        for low in range(0, codes.size, _EVENTS_PER_BUNDLE):
            high = min(low + _EVENTS_PER_BUNDLE, codes.size)
            bundle = present_field(1, cpu) + data[int(begins[low]) : int(begins[high])].tobytes()
            self._packet(bytes_field(1, bundle), sequence=False)

    def _ids(self, kind: int, texts: Texts) -> Rows:
        """The interned number of every text; 0 for none."""
        used = np.flatnonzero(np.bincount(texts.codes + 1)[1:])
        number = np.zeros(len(texts.labels) + 1, dtype=np.int64)  # the last is that of -1
        for code in used.tolist():
            number[code] = self._intern(kind, texts.labels[code])
        found: Rows = number[texts.codes]
        return found

    def _intern(self, kind: int, text: str) -> int:
        table = self._interned.setdefault(kind, {})
        number = table.get(text)
        if number is None:
            number = table[text] = len(table) + 1
            self._pending += bytes_field(kind, present_field(1, number) + text_field(2, text))
        return number

    def _flush(self) -> None:
        """What was interned must stand before its use."""
        if self._pending:
            self._packet(bytes_field(12, self._pending))
            self._pending = b""

    def _track(self) -> int:
        self._tracks += 1
        return self._tracks

    def _packet(self, body: bytes, *, sequence: bool = True) -> None:
        flags = b""
        if sequence:
            flags = present_field(10, _SEQUENCE) + present_field(13, _CLEARED if self._first else _NEEDED)
            self._first = False
        self._write(bytes_field(1, body + flags))


def switched(left: tuple[str, int], state: int, came: tuple[str, int]) -> bytes:
    """Who left the CPU (name, tid), in which state of the kernel, and who came."""
    who = text_field(1, left[0]) + integer_field(2, left[1]) + integer_field(3, _PRIORITY) + integer_field(4, state)
    fields = who + text_field(5, came[0]) + integer_field(6, came[1]) + integer_field(7, _PRIORITY)
    return present_field(2, left[1]) + bytes_field(4, fields)


def woken(waker: int, who: tuple[str, int], cpu: int) -> bytes:
    """Who (name, tid) was woken for which CPU, and by whom; -1 for nobody."""
    fields = text_field(1, who[0]) + integer_field(2, who[1]) + integer_field(3, _PRIORITY) + integer_field(4, 1)
    return present_field(2, max(waker, 0)) + bytes_field(20, fields + integer_field(5, cpu))


def _tag(field_: int) -> bytes:
    return present_field(field_, 0)[:-1]


def _track_bytes(track: int) -> bytes:
    return varints(np.array([track]), _TRACK_BYTES).tobytes()


def _id_bytes(ids: Rows) -> int:
    return 2 if int(ids.max(initial=0)) < 1 << 14 else 4


def _reference(tag: bytes, ids: Rows) -> Callable[[Rows], Matrix]:
    width = _id_bytes(ids)
    return lambda rows: rows_of(rows.size, tag, varints(ids[rows], width))


def _note(head: bytes, values: Rows, width: int) -> Callable[[Rows], Matrix]:
    size = len(head) + width
    return lambda rows: rows_of(rows.size, b"\x22" + bytes([size]) + head, varints(values[rows], width))


def _flow(field_: int, flows: NDArray[np.uint64]) -> Callable[[Rows], Matrix]:
    tag = _tag(field_)
    fixed = bytes([tag[0] | 1, *tag[1:]])  # wire type 1: eight bytes
    return lambda rows: rows_of(
        rows.size, fixed, np.ascontiguousarray(flows[rows], dtype="<u8").view(np.uint8).reshape(-1, 8)
    )


def _events(bodies: Matrix, times: Matrix, *, needed: bool) -> Matrix:
    """Whole packets round the bodies of track events."""
    size = bodies.shape[1]
    tail = present_field(10, _SEQUENCE) + (present_field(13, _NEEDED) if needed else b"")
    head = b"\x5a" + bytes([size])  # field 11, of fewer than 128 bytes
    whole = 1 + times.shape[1] + len(head) + size + len(tail)
    length = bytes([whole]) if whole < 0x80 else bytes([whole & 0x7F | 0x80, whole >> 7])
    return rows_of(len(bodies), b"\x0a" + length + _tag(8), times, head, bodies, tail)
