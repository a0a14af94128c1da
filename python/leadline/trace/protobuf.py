"""The protobuf wire format, writing only: what pprof profiles and Perfetto traces need, without a dependency.

Encoding: protobuf.dev, "Encoding": a field is varint(number << 3 | wire type), then a varint (type 0), eight bytes
(type 1) or a length and bytes (type 2).
"""

from __future__ import annotations

from collections.abc import Iterable

_VARINT, _FIXED64, _LENGTH = 0, 1, 2
_MASK = (1 << 64) - 1


def varint(value: int) -> bytes:
    """Base 128, least significant group first; negative numbers as 64-bit two's complement."""
    value &= _MASK
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer_field(number: int, value: int) -> bytes:
    """An int64, uint64 or bool field; a zero is the default and left out."""
    return varint(number << 3 | _VARINT) + varint(value) if value else b""


def present_field(number: int, value: int) -> bytes:
    """An integer field that is written even where it is zero: fields that a reader asks for by presence."""
    return varint(number << 3 | _VARINT) + varint(value)


def fixed64_field(number: int, value: int) -> bytes:
    """A fixed64 field."""
    return varint(number << 3 | _FIXED64) + (value & _MASK).to_bytes(8, "little")


def text_field(number: int, text: str) -> bytes:
    """A string field; what UTF-8 cannot hold becomes a question mark."""
    return bytes_field(number, text.encode("utf-8", "replace"))


def bytes_field(number: int, payload: bytes) -> bytes:
    """A message, string or bytes field; kept when empty, since the string table needs its empty first entry."""
    return varint(number << 3 | _LENGTH) + varint(len(payload)) + payload


def packed_field(number: int, values: Iterable[int]) -> bytes:
    """A packed repeated integer field."""
    payload = b"".join(varint(value) for value in values)
    return bytes_field(number, payload) if payload else b""
