"""What a measured process says of where its threads are: the operators, modules and regions that are open.

It writes that down whenever it writes a segment (some seconds apart), in a piece of memory with a name of its own. Of
a program that hangs it is right; of one that runs it is as old as `age_s` says.
"""

from __future__ import annotations

import struct
import time

from leadline._dataclass import dataclass
from leadline.attach.target import AttachError, Target

_NAME = "/memfd:leadline-whereabouts"
_HEAD = struct.Struct("<QqQ")
_MOST = 1 << 18
_TRIES = 20
_SHOWN = {4: "module", 5: "operator", 7: "api", 12: "region", 13: "phase"}
"""Kinds of frames (schema: FrameKind) that say what the program is at; Python frames are read as they are now."""


@dataclass(frozen=True)
class Scope:
    """One that is open. `kind`: module, operator, api, region or phase."""

    kind: str
    name: str


@dataclass(frozen=True)
class OpenScopes:
    """`scopes`: by thread, the outermost first. `age_s`: how long ago that was written."""

    age_s: float
    scopes: dict[int, tuple[Scope, ...]]


def open_scopes(target: Target) -> OpenScopes | None:
    """None where the process is not measured."""
    place = next((one.begin for one in target.mappings if one.path == _NAME), 0)
    if not place:
        return None
    for _ in range(_TRIES):
        try:
            changes, time_ns, size = _HEAD.unpack(target.read(place, _HEAD.size))
            text = target.read(place + _HEAD.size, min(size, _MOST))
            if changes % 2 == 0 and target.read(place, 8) == struct.pack("<Q", changes):
                return OpenScopes(max(time.monotonic() - time_ns / 1e9, 0.0), _parsed(text.decode("utf-8", "replace")))
        except AttachError:
            return None
        time.sleep(0.002)
    return None


def _parsed(text: str) -> dict[int, tuple[Scope, ...]]:
    found: dict[int, tuple[Scope, ...]] = {}
    tid = -1
    for line in text.splitlines():
        if line.startswith("T ") and line[2:].isdigit():
            tid = int(line[2:])
            found[tid] = ()
            continue
        kind, _, rest = line.partition("\t")
        if kind.isdigit() and int(kind) in _SHOWN and tid in found:
            found[tid] = (*found[tid], Scope(_SHOWN[int(kind)], rest.partition("\t")[0]))
    return found
