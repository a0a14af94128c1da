"""Records of `perf_event_open` (perf_event.h) to columns: context switches with the time and the CPU.

With `sample_id_all` every record ends with pid, tid, time and CPU.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

from leadline.schema import KernelEventKind
from leadline.trace.kernel.columns import Columns, columns

_HEADER = struct.Struct("<IHH")
_IDENTITY = struct.Struct("<IIQII")
_COUNT = struct.Struct("<Q")
_LOST, _COMM, _EXIT, _FORK, _SWITCH = 2, 3, 4, 7, 14
_OUT, _PREEMPTED = 1 << 13, 1 << 14


def decode(rings: Mapping[int, bytes]) -> tuple[list[Columns], int]:
    """Columns per kind, and how many records the kernel says are missing."""
    rows: dict[KernelEventKind, list[tuple[int, int, int, int, int, str]]] = {}
    lost = 0
    for data in rings.values():
        at = 0
        while at + _HEADER.size <= len(data):
            kind, misc, size = _HEADER.unpack_from(data, at)
            if size < _HEADER.size + _IDENTITY.size or at + size > len(data):
                break
            _, tid, time_ns, cpu, _ = _IDENTITY.unpack_from(data, at + size - _IDENTITY.size)
            body = at + _HEADER.size
            if kind == _SWITCH:
                out = bool(misc & _OUT)
                what = KernelEventKind.SWITCH_OUT if out else KernelEventKind.SWITCH_IN
                rows.setdefault(what, []).append((time_ns, cpu, tid, -1, int(bool(misc & _PREEMPTED)), ""))
            elif kind == _LOST:
                lost += _COUNT.unpack_from(data, body + 8)[0]
            elif kind == _COMM:
                name = data[body + 8 : at + size - _IDENTITY.size].split(b"\0", 1)[0].decode("utf-8", "replace")
                rows.setdefault(KernelEventKind.EXEC, []).append((time_ns, cpu, tid, -1, 0, name))
            elif kind in (_FORK, _EXIT):
                _, _, own, parent = struct.unpack_from("<IIII", data, body)
                if kind == _FORK:
                    rows.setdefault(KernelEventKind.FORK, []).append((time_ns, cpu, parent, own, 0, ""))
                else:
                    rows.setdefault(KernelEventKind.EXIT, []).append((time_ns, cpu, own, -1, 0, ""))
            at += size
    return [_columns(kind, listed) for kind, listed in rows.items()], lost


def _columns(kind: KernelEventKind, rows: list[tuple[int, int, int, int, int, str]]) -> Columns:
    time_ns, cpu, tid, target, value, name = zip(*rows, strict=True)
    given = {"tid": tid, "target": target, "value": value, "name": np.array(name, dtype=object)}
    return columns(kind, np.array(time_ns), np.array(cpu), **given)
