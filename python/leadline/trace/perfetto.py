"""Writes timelines as a Perfetto trace: processes, tracks in them, slices that nest, arrows between slices.

Protobuf by hand (perfetto `trace_packet.proto`, `track_event.proto`, `track_descriptor.proto`), so that no library is
needed. Packets go out one by one: memory holds the names only. Times are nanoseconds from a beginning of the caller's
choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from leadline.trace.protobuf import bytes_field, fixed64_field, present_field, text_field

_SEQUENCE = 1
_BEGIN, _END = 1, 2
_CLEARED, _NEEDED = 1, 2
_TRACKS_PER_PROCESS = 1_000_000


@dataclass(frozen=True)
class Slice:
    """Something that lasts from `start_ns` to `end_ns`; `notes` are shown beside it. Slices that share a number of
    `leaves` and `arrives` are joined by an arrow."""

    start_ns: int
    end_ns: int
    name: str
    notes: Mapping[str, str] = field(default_factory=dict)
    leaves: int = 0
    arrives: int = 0


class PerfettoWriter:
    """Gives packets to `write`; the trace is whole when the caller has written all it has."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._names: dict[str, int] = {}
        self._processes = 0
        self._first = True

    def process(self, title: str) -> int:
        """A new process; its number is of this file, not of any machine: machines share pids."""
        self._processes += 1
        process = self._processes
        descriptor = present_field(1, process) + text_field(6, title)
        self._packet(bytes_field(60, present_field(1, process * _TRACKS_PER_PROCESS) + bytes_field(3, descriptor)))
        return process

    def track(self, process: int, number: int, name: str) -> int:
        """A track of a process, `number` from 1; returns what `slices` takes."""
        track = process * _TRACKS_PER_PROCESS + number
        thread = present_field(1, process) + present_field(2, number) + text_field(5, name)
        self._packet(bytes_field(60, present_field(1, track) + text_field(2, name) + bytes_field(4, thread)))
        return track

    def slices(self, track: int, slices: Sequence[Slice]) -> None:
        """All slices of a track, outer before inner and otherwise in time order; they nest."""
        open_ends: list[int] = []
        for one in slices:
            while open_ends and open_ends[-1] <= one.start_ns:
                self._event(track, open_ends.pop(), _END)
            self._begin(track, one)
            open_ends.append(one.end_ns)
        while open_ends:
            self._event(track, open_ends.pop(), _END)

    def _begin(self, track: int, one: Slice) -> None:
        notes = b"".join(
            bytes_field(4, text_field(10, name) + text_field(6, value)) for name, value in one.notes.items()
        )
        flows = fixed64_field(47, one.leaves) if one.leaves else b""
        flows += fixed64_field(48, one.arrives) if one.arrives else b""
        interned = b""
        number = self._names.get(one.name)
        if number is None:
            number = self._names[one.name] = len(self._names) + 1
            interned = bytes_field(12, bytes_field(2, present_field(1, number) + text_field(2, one.name)))
        self._event(track, one.start_ns, _BEGIN, notes, present_field(10, number) + flows, interned)

    def _event(
        self, track: int, time_ns: int, kind: int, notes: bytes = b"", more: bytes = b"", interned: bytes = b""
    ) -> None:
        body = notes + present_field(9, kind) + present_field(11, track) + more
        self._packet(interned + present_field(8, max(time_ns, 0)) + bytes_field(11, body))

    def _packet(self, body: bytes) -> None:
        flags = _CLEARED if self._first else _NEEDED
        self._first = False
        self._write(bytes_field(1, body + present_field(10, _SEQUENCE) + present_field(13, flags)))
