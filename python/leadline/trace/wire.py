"""The protobuf wire format, reading only, for messages of thousands of fields; `native/xla/wire.h` reads millions.

Bytes may be anybody's: nothing outside of a message is read, and what is no message raises `Damaged`.
"""

from __future__ import annotations

Value = int | bytes


class Damaged(ValueError):
    """These bytes are no message."""


class Fields:
    """The fields of one message by number, each in the order of the message."""

    def __init__(self) -> None:
        self._held: dict[int, list[Value]] = {}

    def add(self, number: int, value: Value) -> None:
        self._held.setdefault(number, []).append(value)

    def last(self, number: int) -> Value:
        """A field that is there once: what comes later holds. 0 where it is not there, which is every default."""
        held = self._held.get(number)
        return held[-1] if held else 0

    def messages(self, number: int) -> list[bytes]:
        """Messages, texts or bytes of a repeated field."""
        return [value for value in self._held.get(number, ()) if isinstance(value, bytes)]

    def integers(self, number: int) -> list[int]:
        """Integers of eight bytes of a repeated field, each by itself or all in a row."""
        found: list[int] = []
        for value in self._held.get(number, ()):
            if isinstance(value, int):
                found.append(whole(value))
            else:
                found += [whole(int.from_bytes(value[at : at + 8], "little")) for at in range(0, len(value) - 7, 8)]
        return found


def whole(value: Value) -> int:
    """An integer with its sign; 0 for what is none."""
    if not isinstance(value, int):
        return 0
    return value - (1 << 64) if value >= 1 << 63 else value


def text(value: Value) -> str:
    """A text; empty for what is none."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def fields(data: bytes) -> Fields:
    """The fields of a message. Raises Damaged."""
    found = Fields()
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            found.add(number, value)
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise Damaged("an unknown kind of field")
        if size > end - at:
            raise Damaged("a field longer than its message")
        part = data[at : at + size]
        found.add(number, part if wire == 2 else int.from_bytes(part, "little"))
        at += size
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value & ((1 << 64) - 1), at
        shift += 7
    raise Damaged("a number without an end")
