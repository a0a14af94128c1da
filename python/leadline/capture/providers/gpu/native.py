"""What the native providers of all vendors say of samples and counters."""

from __future__ import annotations

from typing import TypedDict


class WindowDetails(TypedDict):
    """Of what is measured in windows."""

    message: str
    """Why nothing, or less, is measured; empty when all is well."""
    windows: int
    open_ns: int
    spent_ns: int


class InstructionDetails(WindowDetails):
    """Of sampling instructions."""

    mode: str
    samples: int
    by_launch: int
    """Attributed by the launch that the vendor named."""
    unattributed: int
    dropped: int
    other_samples: int
    """Of code that is not the program's, or not known."""
    code_bytes: int


class CounterDetails(WindowDetails):
    """Of reading hardware counters."""

    metrics: list[str]
    """Those that are read."""
    chips: str
    readings: int
    idle: int
    """Readings without a kernel that is known."""
