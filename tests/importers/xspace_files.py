"""Draws profiles of XLA (XSpace) in the layout of tsl/profiler/protobuf/xplane.proto."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from leadline.trace.protobuf import bytes_field, fixed64_field, present_field, text_field

Stat = int | str | bytes | float


@dataclass
class Line:
    """A thread, or a stream. `events`: name, start and duration in nanoseconds, statistics."""

    name: str
    events: list[tuple[str, int, int, Mapping[str, Stat]]]
    number: int = 1
    timestamp_ns: int = 0


@dataclass
class Plane:
    name: str
    lines: list[Line] = field(default_factory=list)
    stats: Mapping[str, Stat] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)
    """Display names of events."""
    programs: Mapping[str, tuple[int, bytes]] = field(default_factory=dict)
    """Of `/host:metadata`: by `name(number)` the number and the HloModuleProto."""
    told: Mapping[str, Mapping[str, Stat]] = field(default_factory=dict)
    """Statistics of all events of a name."""


def space(*planes: Plane, errors: tuple[str, ...] = (), hosts: tuple[str, ...] = ()) -> bytes:
    """A profile."""
    made = b"".join(bytes_field(1, _plane(number, plane)) for number, plane in enumerate(planes))
    said = b"".join(text_field(2, error) for error in errors)
    return made + said + b"".join(text_field(4, host) for host in hosts)


def _plane(number: int, plane: Plane) -> bytes:
    names: dict[str, int] = {}
    stats: dict[str, int] = {}
    lines = b"".join(bytes_field(3, _line(line, names, stats)) for line in plane.lines)
    made = present_field(1, number) + text_field(2, plane.name) + lines
    described = {name: text_field(2, name) + text_field(4, plane.shown.get(name, "")) for name in names}
    for name, facts in plane.told.items():
        described[name] += b"".join(bytes_field(5, _stat(stats, key, value)) for key, value in facts.items())
    entries = [(key, described[name]) for name, key in names.items()]
    for name, (key, module) in plane.programs.items():
        proto = _stat(stats, "Hlo Proto", bytes_field(1, module))
        entries.append((key, text_field(2, name) + bytes_field(5, proto)))
    own = b"".join(bytes_field(6, _stat(stats, name, value)) for name, value in plane.stats.items())
    for key, value in entries:
        made += bytes_field(4, present_field(1, key) + bytes_field(2, present_field(1, key) + value))
    for name, key in stats.items():
        made += bytes_field(5, present_field(1, key) + bytes_field(2, present_field(1, key) + text_field(2, name)))
    return made + own


def _line(line: Line, names: dict[str, int], stats: dict[str, int]) -> bytes:
    made = present_field(1, line.number) + text_field(2, line.name) + present_field(3, line.timestamp_ns)
    for name, start_ns, duration_ns, told in line.events:
        event = present_field(1, names.setdefault(name, len(names) + 1))
        event += present_field(2, start_ns * 1000) + present_field(3, duration_ns * 1000)
        for key, value in told.items():
            event += bytes_field(4, _stat(stats, key, value))
        made += bytes_field(4, event)
    return made


def _stat(stats: dict[str, int], name: str, value: Stat) -> bytes:
    made = present_field(1, stats.setdefault(name, len(stats) + 1))
    if isinstance(value, bytes):
        return made + bytes_field(6, value)
    if isinstance(value, float):
        import struct

        return made + fixed64_field(2, struct.unpack("<Q", struct.pack("<d", value))[0])
    if isinstance(value, int):
        return made + present_field(4, value)
    return made + text_field(5, value)
