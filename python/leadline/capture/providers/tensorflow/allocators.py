"""What TensorFlow's allocators said of themselves in windows of its profiler: a sentence of their sums, and their
histories in the trace window, as `leadline.trace.allocator` reads them.

On CPUs an allocator that tells all is used only where oneDNN is off and `TF_CPU_ALLOCATOR_USE_BFC=1`; by default large
requests are told, without what else is held.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypedDict

MOST_MOMENTS = 20_000
"""Of one allocator in one trace window."""
_SERIES = (
    *("bytes in use", "bytes reserved", "bytes available"),
    *("fragmentation, per mille", "blocks in use", "bytes wasted"),
)
_DEVICE = re.compile(r"GPU_(\d{1,4})_bfc")


class AllocatorRecord(TypedDict):
    """Of one allocator in one window. `moments`: when, in picoseconds, and the values of `_SERIES`."""

    name: str
    allocations: int
    frees: int
    requested_bytes: int
    given_bytes: int
    peak_bytes: int
    reserved_bytes: int
    fragmentation: int
    moments: Sequence[tuple[int, ...]]


class Allocators:
    """Over all windows."""

    def __init__(self) -> None:
        self._sums: dict[str, dict[str, int]] = {}
        self._histories: dict[str, list[tuple[int, ...]]] = {}

    def add(self, told: Sequence[AllocatorRecord], shift_ns: int | None) -> None:
        """What a window has of them; `shift_ns`: from its times to those of the trace window, where it is part of
        that."""
        for one in told:
            name = one["name"] or "allocator"
            sums = self._sums.setdefault(name, {})
            for what in ("allocations", "frees", "requested_bytes", "given_bytes"):
                sums[what] = sums.get(what, 0) + int(one[what])
            for what in ("peak_bytes", "reserved_bytes", "fragmentation"):
                sums[what] = max(sums.get(what, 0), int(one[what]))  # type: ignore[literal-required]
            if shift_ns is not None:
                history = self._histories.setdefault(name, [])
                history += [(at // 1000 + shift_ns, *values) for at, *values in one["moments"]]

    def status(self) -> dict[str, dict[str, int]]:
        """By allocator the sums of windows; empty where none told anything."""
        return self._sums

    def sentences(self) -> list[str]:
        """For a report: what was asked for beside what was given."""
        return [_sentence(name, sums) for name, sums in self._sums.items() if sums["allocations"]]

    def dataflow(self) -> list[dict[str, Any]]:
        """Histories for the process's record."""
        found = []
        for name, moments in self._histories.items():
            device = _DEVICE.search(name)
            times, *columns = zip(*moments, strict=True) if moments else ((),)
            values = {word: list(column) for word, column in zip(_SERIES, columns, strict=bool(moments))}
            found.append(
                {"device": int(device[1]) if device else -1, "name": name, "time_ns": list(times), "values": values}
            )
        return found


def _sentence(name: str, sums: dict[str, int]) -> str:
    asked, given = sums["requested_bytes"], sums["given_bytes"]
    text = f"TensorFlow's allocator {name} gave {given:,} bytes in timed windows for {asked:,} asked for"
    text += f" in {sums['allocations']:,} allocations; at most {sums['peak_bytes']:,} were in use"
    if sums["reserved_bytes"]:
        text += f" of {sums['reserved_bytes']:,} reserved"
    if sums["fragmentation"]:
        text += f", and fragmentation was at most {sums['fragmentation'] / 10:.1f} %"
    return text + "."
