"""Lanes that took no part: by masks and branches, for each instruction that the backend sees."""

from __future__ import annotations

import numpy as np

from leadline.tools.batch import Batch
from leadline.tools.out import Out
from leadline.tools.tool import Tool, option

_WARP = 32


class Divergence(Tool):
    """How many lanes of a warp take part in each instruction, and where warps are split."""

    tool_name = "divergence"
    events = {"launch": ["launch", "kernel"], "instruction": ["launch", "instruction", "active", "count", "split"]}
    rows = option(int, "20", "instructions listed")

    def start(self) -> None:
        self.of: dict[tuple[int, int], list[int]] = {}

    def launch(self, b: Batch) -> None:
        """Known by its number from here on."""

    def instruction(self, b: Batch) -> None:
        kernel, at = (np.asarray(of[b["launch"]]).tolist() for of in (self.launches.kernel, self.launches.place))
        columns = (np.asarray(b[name]).tolist() for name in ("instruction", "active", "count", "split"))
        for of, place, line, active, warps, split in zip(kernel, at, *columns, strict=True):
            known = self.of.setdefault((of, line), [0, 0, 0, place])
            known[0] += active
            known[1] += warps
            known[2] += split

    def finish(self, out: Out) -> None:
        if not self.of:
            return
        idle = sorted(self.of.items(), key=lambda one: one[1][0] - _WARP * one[1][1])
        out.table(
            "lanes that took part",
            [
                {
                    "kernel": self.names[kernel],
                    "instruction": self.names[line],
                    "warps": warps,
                    "lanes": 100 * active / max(1, _WARP * warps),
                    "split warps": 100 * split / max(1, warps),
                    "from": out.path(place),
                }
                for (kernel, line), (active, warps, split, place) in idle[: self.rows]
            ],
            units={"lanes": "%", "split warps": "%"},
        )
