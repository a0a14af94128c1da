"""Search over all frames: a text or, between slashes, a regular expression; as the page searches."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leadline.analysis.columns import Mask, Rows, nearest
from leadline.analysis.layers import merged_layers
from leadline.profiles import Tree


class BadSearchError(ValueError):
    """What stands between the slashes is not a regular expression."""


@dataclass(frozen=True)
class Found:
    """`rows`: outermost nodes that were found, the most expensive first; `total`: what they have with all below."""

    rows: Rows
    total: int


def matcher(text: str) -> Callable[[str], bool]:
    """The test a search text stands for. Raises BadSearchError."""
    if len(text) > 2 and text.startswith("/") and text.endswith("/"):
        try:
            pattern = re.compile(text[1:-1], re.IGNORECASE)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadSearchError(f"Not a regular expression: {error}.") from None
        return lambda candidate: pattern.search(candidate) is not None
    wanted = text.lower()
    return lambda candidate: wanted in candidate.lower()


class Search:
    """Searches one tree; the texts of its frames are put together once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._texts: list[str] | None = None

    def frames(self, text: str) -> Mask:
        """Which frames are found, by name, class, or `file:line`. Raises BadSearchError."""
        matches = matcher(text)
        if self._texts is None:
            self._texts = self._candidates()
        return np.array([matches(candidate) for candidate in self._texts], np.bool_)

    def find(self, text: str, metric: str) -> Found:
        """Raises BadSearchError."""
        tree = self._tree
        whole = tree.inclusive(metric).sum
        found = self.frames(text)[tree.frame_of] & (whole > 0)
        found[:1] = False
        above = nearest(tree.shape, found)[np.maximum(tree.shape.parent, 0)]
        rows = np.flatnonzero(found & (above < 0))
        return Found(rows[np.argsort(-whole[rows], kind="stable")], int(whole[rows].sum()))

    def _candidates(self) -> list[str]:
        strings, frames = self._tree.tables.strings, self._tree.frames
        columns = (frames[name].tolist() for name in ("name", "module", "file", "line"))
        made = []
        for name, module, file, line in zip(*columns, strict=True):
            text = strings[name]
            made.append(f"{text} {merged_layers(text)} {strings[module]} {strings[file]}:{line}")
        return made
