"""What hardware counters said of kernels, and scratch memory that was taken for them, as the cells of tables."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.analysis.device_copies import LinkRow
from leadline.analysis.hardware import Hardware
from leadline.analysis.scratch import ScratchRow
from leadline.report import phrases
from leadline.units import duration, number, share, size

NOTE = "shares of the device's peak, in the counted time"
_COLUMNS = {
    "occupancy": "occupancy",
    "active": "SMs at work",
    "issue": "issue slots",
    "tensor": "matrix units",
    "dram": "memory",
    "l2": "L2",
    "conflicts": "bank conflicts",
}

_SHORT = {
    "SMs at work": "SMs",
    "issue slots": "issue",
    "matrix units": "matrix",
    "bank conflicts": "banks",
    "sectors/load": "sectors",
}


def short(head: str) -> str:
    """A heading for a terminal of 80 columns."""
    return _SHORT.get(head, head)


def hardware_table(rows: Sequence[Hardware]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells; without columns that no kernel has."""
    shown = [name for name in _COLUMNS if any(getattr(row, name) is not None for row in rows)]
    moved = any(row.dram_bytes_s is not None for row in rows)
    pieces = any(row.sectors is not None for row in rows)
    heads = ["kernel", "time", "counted", *(_COLUMNS[name] for name in shown)]
    heads += [*(["sectors/load"] if pieces else []), *(["GB/s"] if moved else [])]
    cells = []
    for row in rows:
        values = [getattr(row, name) for name in shown]
        line = [phrases.name_text(row.name), duration(row.gpu_ns), duration(row.counted_ns)]
        line += ["-" if value is None else share(value, 1) for value in values]
        if pieces:
            line.append("-" if row.sectors is None else f"{row.sectors:.1f}")
        if moved:
            line.append("-" if row.dram_bytes_s is None else f"{row.dram_bytes_s / 1e9:,.0f}")
        cells.append(line)
    return heads, cells


SCRATCH_NOTE = "memory that the driver allocated while kernels waited; not part of their time"


def scratch_table(rows: Sequence[ScratchRow]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells; `-` for bytes that were not told."""
    heads = ["scratch memory of", "a thread", "taken", "bytes", "given back", "waited"]
    return heads, [
        [
            phrases.name_text(row.name),
            size(row.thread_bytes),
            f"{number(row.taken)} ×",
            "-" if row.taken_bytes is None else size(row.taken_bytes),
            f"{number(row.returned)} ×",
            duration(row.waited_ns),
        ]
        for row in rows
    ]


LINKS_NOTE = "copies only; kernels of collectives move their data"


def links_table(rows: Sequence[LinkRow]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells; `-` where the link or its rate is not told."""
    heads = ["between devices", "link", "copies", "bytes", "time", "GB/s", "of the link"]
    return heads, [
        [
            f"{row.source} → {row.target}",
            row.link or "-",
            number(row.copies),
            size(row.bytes),
            duration(row.ns),
            f"{row.bytes_s / 1e9:,.1f}",
            "-" if row.link_bytes_s is None else share(row.bytes_s, row.link_bytes_s),
        ]
        for row in rows
    ]
