"""The flight recorder of a process: the last collectives it began, in a file that is there however it ends.

`native/base/flight_recorder.h` lays the file out and writes it while it is read here, so every number is checked, and
an entry that changes while it is read is left out. Nothing is loaded for this but the standard library.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

from leadline._dataclass import dataclass
from leadline.profiles.errors import ProfileFileError

_MAGIC = b"LDLFLT02"
_HEAD = struct.Struct("<8sIIIIqqQ")
_GROUP = struct.Struct("<QQQQQII48s48s")
_ENTRY = struct.Struct("<QqqqQQIIq48s")
_GROUPS_AT = 4096
_MOST = 1 << 16
_BUSY = _UNKNOWN = (1 << 64) - 1


@dataclass(frozen=True)
class Group:
    """A process group as this rank has used it. `begun`, `done`: collectives so far; nobody may have told of ends.

    `since`: so many had begun before this rank was measured, -1 where nobody knows; they are in `begun`. `sure`: torch
    counts as many. Messages of two ranks count from when they were measured; `since` is that of their group."""

    name: str
    description: str
    size: int
    rank: int
    begun: int
    done: int
    since: int = 0
    sure: bool = False

    @property
    def label(self) -> str:
        """As a person calls it."""
        return self.description or self.name


@dataclass(frozen=True)
class Collective:
    """`sequence`: the how manieth of its group on this rank, 0 where the group is unknown. Times in ns of
    CLOCK_REALTIME; 0: not yet, or nobody tells."""

    name: str
    group: Group | None
    sequence: int
    elements: int
    tid: int
    begin_ns: int
    returned_ns: int
    done_ns: int

    def __str__(self) -> str:
        """`allreduce no. 4 of default_pg`."""
        return f"{self.name} no. {self.sequence} of {self.group.label}" if self.group else self.name


@dataclass(frozen=True)
class Flight:
    """What a process recorded. `collectives`: the last ones, in the order they began."""

    pid: int
    begun: int
    groups: tuple[Group, ...]
    collectives: tuple[Collective, ...]

    @property
    def last(self) -> Collective | None:
        return self.collectives[-1] if self.collectives else None


def read_flight(path: str | os.PathLike[str], here: bool = False) -> Flight:
    """`here`: the process lives on this machine, so its times are told by this clock, as it is set now. Raises
    ProfileFileError for what is no such file."""
    try:
        data = Path(path).read_bytes()
        again = Path(path).read_bytes()
    except OSError as error:
        raise ProfileFileError(f"{os.fspath(path)} cannot be read: {error.strerror}.") from error
    return parse_flight(data, again, os.fspath(path), here)


def parse_flight(data: bytes, again: bytes, name: str, here: bool) -> Flight:
    """`data` and `again`: two readings, of which what both hold counts; `name`: what an error calls it. Raises
    ProfileFileError for what is no such recorder."""
    if len(data) < _HEAD.size or data[:8] != _MAGIC:
        raise ProfileFileError(f"{name} is not a flight recorder file of this release.")
    _, entries, groups, pid, _, realtime_ns, monotonic_ns, begun = _HEAD.unpack_from(data)
    entries_at = _GROUPS_AT + groups * _GROUP.size
    if max(entries, groups) > _MOST or min(len(data), len(again)) < entries_at + entries * _ENTRY.size:
        raise ProfileFileError(f"{name} is cut off.")
    clock_ns = time.time_ns() - time.monotonic_ns() if here else realtime_ns - monotonic_ns
    known = [_group(data, _GROUPS_AT + row * _GROUP.size) for row in range(groups)]
    found = []
    for row in range(entries):
        at = entries_at + row * _ENTRY.size
        number = _ENTRY.unpack_from(data, at)[0]
        if number not in (0, _BUSY) and number == _ENTRY.unpack_from(again, at)[0]:  # else it was being written
            found.append((number, _collective(data, at, known, clock_ns)))
    found.sort(key=lambda one: one[0])
    return Flight(pid, begun, tuple(one for one in known if one is not None), tuple(one for _, one in found))


def _group(data: bytes, at: int) -> Group | None:
    key, begun, done, since, told, size, rank, name, description = _GROUP.unpack_from(data, at)
    if not key:
        return None
    described = _text(description)
    since = -1 if since == _UNKNOWN else since
    begun += _before(since, described)
    return Group(_text(name), described, size, rank, begun, done + _before(since, described), since, told == begun)


def _before(since: int, description: str) -> int:
    """How many of a group nobody has seen here; messages are counted from where they were seen."""
    return 0 if since < 0 or description.startswith("from ") else since


def _collective(data: bytes, at: int, groups: list[Group | None], clock_ns: int) -> Collective:
    _, begin, returned, done, tid, sequence, group, _, elements, name = _ENTRY.unpack_from(data, at)
    known = groups[group] if sequence and group < len(groups) else None
    sequence += _before(known.since, known.description) if known is not None else 0
    begin, returned, done = (ns + clock_ns if ns else 0 for ns in (begin, returned, done))
    return Collective(
        _text(name).removeprefix("c10d::").rstrip("_"), known, sequence, elements, tid, begin, returned, done
    )


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")
