"""The source files that the page shows: the user's own, as far as they are still what ran."""

from __future__ import annotations

import numpy as np

from leadline.analysis.case import sources_of
from leadline.analysis.origin import Origin, origin
from leadline.analysis.sourcecode import Sources
from leadline.profiles import Profile
from leadline.schema import FrameKind

MOST_BYTES = 2 << 20
"""Of all files together; those with most time come first."""


class PageSources:
    """Text of the files that a profile's Python and kernels are from, and of no others."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._sources: Sources = sources_of(profile)
        tree = profile.tree
        python = tree.frames["kind"] == int(FrameKind.PYTHON)
        strings = tree.tables.strings
        self._named = {strings[row] for row in np.unique(tree.frames["file"][python]).tolist()}
        inside = tree.frames["kind"] == int(FrameKind.INSTRUCTION)
        of_kernels = {strings[row] for row in np.unique(tree.frames["file"][inside]).tolist()}
        self._named |= of_kernels

    def text(self, file: str) -> str | None:
        """The file's text; None where the profile does not name it, it cannot be read or it has changed since."""
        source = self._sources.of(file) if file in self._named else None
        return None if source is None else "\n".join(source.lines)

    def users(self, most_bytes: int = MOST_BYTES) -> dict[str, str]:
        """The user's own files by name, the most expensive first, as many as fit."""
        found: dict[str, str] = {}
        left = most_bytes
        for file in self._by_cost():
            text = self.text(file)
            if text is not None and len(text.encode()) <= left:
                found[file] = text
                left -= len(text.encode())
        return found

    def _by_cost(self) -> list[str]:
        tree = self._profile.tree
        metric = next((name for name in ("gpu_time", "time") if tree.exclusive(name).sum.any()), "time")
        cost = tree.inclusive(metric).sum
        samples = tree.inclusive("instruction_samples").sum
        inside = np.flatnonzero(tree.kinds == int(FrameKind.INSTRUCTION))
        most: dict[str, int] = {}
        for row in inside[np.argsort(-samples[inside], kind="stable")].tolist():
            file = tree.text("file", int(tree.frame_of[row]))
            if file and origin(file) == Origin.USER:
                most.setdefault(file, int(samples[row]))
        rows = np.flatnonzero(tree.kinds == int(FrameKind.PYTHON))
        for row in rows[np.argsort(-cost[rows], kind="stable")].tolist():
            file = tree.text("file", int(tree.frame_of[row]))
            if file not in most and origin(file) == Origin.USER:
                most[file] = int(cost[row])
        return list(most)
