"""A second reader of `.leadline` files: a ZIP of NumPy columns, by docs/file-format.md alone."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np


class Tables:
    """Columns by `table.column`, texts and meta.json; numbers of kinds are the caller's to know."""

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            self.meta: dict[str, Any] = json.loads(archive.read("meta.json"))
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            self.columns = {name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name))) for name in names}

    def text(self, row: int) -> str:
        offsets, data = self.columns["strings.offsets"], self.columns["strings.bytes"]
        return bytes(data[offsets[row] : offsets[row + 1]]).decode()

    def name(self, node: int) -> str:
        frame = self.columns["nodes.frame"][node]
        return self.text(int(self.columns["frames.name"][frame]))

    def exclusive(self, metric: int) -> Any:
        """Sum of a metric at each node."""
        mine = self.columns["metrics.metric"] == metric
        found = np.zeros(self.columns["nodes.parent"].size, np.int64)
        np.add.at(found, self.columns["metrics.node"][mine], self.columns["metrics.sum"][mine])
        return found

    def inclusive(self, metric: int) -> Any:
        """The same with everything below."""
        found, parent = self.exclusive(metric), self.columns["nodes.parent"]
        for row in range(parent.size - 1, 0, -1):
            found[parent[row]] += found[row]
        return found

    def steps(self, kind: int) -> list[dict[str, int]]:
        """Rows of the table of steps of a kind: 0 are consecutive steps, summed, 1 single slow ones."""
        names = [name for name in self.columns if name.startswith("steps.")]
        rows = np.flatnonzero(self.columns["steps.kind"] == kind).tolist() if names else []
        return [{name.removeprefix("steps."): int(self.columns[name][row]) for name in names} for row in rows]
