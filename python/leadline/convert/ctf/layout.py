"""A CTF trace as data: what its events look like, whatever metadata language says so.

Everything is little-endian and aligned to bytes, so a record is the packed concatenation of its fields, which is what
NumPy's structured types are.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, field

MAGIC = 0xC1FC1FC1


@dataclass(frozen=True)
class Integer:
    """An integer of 8, 16, 32 or 64 bits; with `labels` (the name of a label list of the trace) an enumeration."""

    bits: int
    signed: bool = False
    base: int = 10
    labels: str = ""

    @property
    def dtype(self) -> str:
        return f"<{'i' if self.signed else 'u'}{self.bits // 8}"


@dataclass(frozen=True)
class Text:
    """UTF-8 text in a field of so many bytes, ended by a zero."""

    length: int

    @property
    def dtype(self) -> str:
        return f"S{self.length}"


FieldType: TypeAlias = Integer | Text
Fields: TypeAlias = Mapping[str, FieldType]


@dataclass(frozen=True)
class EventClass:
    """One sort of event. Field names are as a reader shows them, without the underscore that TSDL puts before."""

    name: str
    fields: Fields


@dataclass(frozen=True)
class StreamClass:
    """Streams whose events share a context and a list of event classes; an event's id is its place in the list."""

    name: str
    context: Fields
    events: Sequence[EventClass]

    def record(self, event: EventClass) -> np.dtype[np.void]:
        """A record of the class `event` in a packet: header, context, payload."""
        header = [("id", "<u2"), ("timestamp", "<u8")]
        fields = [(name, one.dtype) for name, one in (*self.context.items(), *event.fields.items())]
        return np.dtype([*header, *fields])


@dataclass(frozen=True)
class Clock:
    """CLOCK_MONOTONIC of a machine since it was started: `uuid` names both, `offset_ns` is CLOCK_REALTIME minus it."""

    uuid: uuid.UUID
    offset_ns: int
    name: str = "monotonic"
    description: str = "Monotonic Clock"


@dataclass(frozen=True)
class Layout:
    """All that the metadata says. `labels`: texts by the name of their list; the number of a text is its place."""

    uuid: uuid.UUID
    clock: Clock
    environment: Mapping[str, str | int]
    streams: Sequence[StreamClass]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """Events of one class: their places in the order of the stream, and one record each with id and time filled in."""

    places: NDArray[np.int64]
    records: NDArray[np.void]


@dataclass(frozen=True)
class Stream:
    """A file of packets. `cpu`: -1 where its events are not of one CPU. `discarded`: events that are missing, known by
    their number only."""

    name: str
    kind: int
    cpu: int
    batches: Sequence[Batch]
    discarded: int = 0


def smallest(count: int, labels: str) -> Integer:
    """The smallest enumeration that has room for `count` labels."""
    bits = next(bits for bits in (8, 16, 32) if count <= 1 << bits)
    return Integer(bits, labels=labels)


def widths(layout: Layout, labels: str) -> set[int]:
    """The sizes in bits of the fields that use a list of labels."""
    every = [fields for stream in layout.streams for fields in (stream.context, *(one.fields for one in stream.events))]
    return {
        one.bits for fields in every for one in fields.values() if isinstance(one, Integer) and one.labels == labels
    }
