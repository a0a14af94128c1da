"""Columns of events to packets: the same bytes for CTF 1.8 and 2.

A packet is a header, a context (LTTng's, so that a reader finds `cpu_id` and `events_discarded`) and records. What was
lost is a running count in the contexts of two packets: readers report the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from leadline.convert.ctf.layout import MAGIC, Integer, Layout, Stream
from leadline.convert.request import ExportError
from leadline.trace.interleave import interleaved

PACKET_BYTES = 1 << 19
CONTEXT = {
    "timestamp_begin": Integer(64),
    "timestamp_end": Integer(64),
    "content_size": Integer(64),
    "packet_size": Integer(64),
    "packet_seq_num": Integer(64),
    "events_discarded": Integer(64),
    "cpu_id": Integer(32),
}
_PACKET = np.dtype(
    [
        ("magic", "<u4"),
        ("uuid", "V16"),
        ("stream_id", "<u4"),
        ("stream_instance_id", "<u8"),
        *((name, one.dtype) for name, one in CONTEXT.items()),
    ]
)
NO_CPU = 0xFFFFFFFF


_MOST = (1 << 64) - 1


class OutOfOrder(ExportError):
    """The events of a stream go back in time; a reader would refuse the file."""


def packets(layout: Layout, stream: Stream, instance: int) -> Iterator[bytes]:
    """The file of a stream, packet by packet. Raises OutOfOrder."""
    times, data, begins = _joined(stream)
    if (times[1:] < times[:-1]).any():
        raise OutOfOrder(f"The events of {stream.name} go back in time, which CTF cannot hold; the profile is damaged.")
    first = int(times[0]) if times.size else 0
    if stream.discarded:
        yield _head(layout, stream, instance, 0, (first, first), 0, 0)  # so that the count has something to grow from
    borders = _borders(begins)
    for number, (low, high) in enumerate(pairwise(borders)):
        body = data[int(begins[low]) : int(begins[high])].tobytes()
        span = (int(times[low]), int(times[high - 1])) if high > low else (first, first)
        lost = stream.discarded if number == len(borders) - 2 else 0
        yield _head(layout, stream, instance, number + bool(stream.discarded), span, len(body), lost)
        yield body


def _joined(stream: Stream) -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.int64]]:
    """Times of all events in order, their bytes, and where each begins (one more than there are events)."""
    times = np.zeros(sum(batch.places.size for batch in stream.batches), dtype=np.uint64)
    parts = []
    for batch in stream.batches:
        times[batch.places] = batch.records["timestamp"]
        raw = np.ascontiguousarray(batch.records).view(np.uint8).reshape(-1, batch.records.dtype.itemsize)
        parts.append((batch.places, raw))
    return times, *interleaved(parts)


def _borders(begins: NDArray[np.int64]) -> list[int]:
    """Numbers of the first events of all packets, and the number of events."""
    borders = [0]
    while borders[-1] < begins.size - 1:
        fits = int(np.searchsorted(begins, begins[borders[-1]] + PACKET_BYTES, side="right")) - 1
        borders.append(max(fits, borders[-1] + 1))
    return borders if len(borders) > 1 else [0, 0]


def _head(
    layout: Layout, stream: Stream, instance: int, number: int, span: tuple[int, int], body_bytes: int, lost: int
) -> bytes:
    bits = 8 * (_PACKET.itemsize + body_bytes)
    cpu = stream.cpu if stream.cpu >= 0 else NO_CPU
    values = (MAGIC, layout.uuid.bytes, stream.kind, instance, *span, bits, bits, number, min(lost, _MOST), cpu)
    return np.array([values], dtype=_PACKET).tobytes()
