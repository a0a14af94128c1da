"""Barriers: how long the first warp waited for the last."""

from __future__ import annotations

import numpy as np

from leadline.tools.batch import Batch
from leadline.tools.out import Out
from leadline.tools.tool import Tool, option


class BarrierStall(Tool):
    """How long warps wait for each other at each barrier of a kernel."""

    tool_name = "barrier_stall"
    events = {"launch": ["launch", "kernel"], "barrier": ["launch", "instruction", "waited", "count"]}
    rows = option(int, "20", "barriers listed")

    def start(self) -> None:
        self.of: dict[tuple[int, int], list[int]] = {}

    def launch(self, b: Batch) -> None:
        """Known by its number from here on."""

    def barrier(self, b: Batch) -> None:
        kernel = np.asarray(self.launches.kernel[b["launch"]]).tolist()
        columns = (np.asarray(b[name]).tolist() for name in ("launch", "instruction", "waited", "count"))
        for of, launch, line, waited, count in zip(kernel, *columns, strict=True):
            known = self.of.setdefault((of, line), [0, 0, launch])
            known[0] += waited
            known[1] += count

    def finish(self, out: Out) -> None:
        if not self.of:
            return
        total = sum(one[0] for one in self.of.values())
        longest = sorted(self.of.items(), key=lambda one: -one[1][0])
        out.table(
            "barriers by waiting",
            [
                {
                    "kernel": self.names[kernel],
                    "barrier": self.names[line],
                    "times": count,
                    "cycles": waited,
                    "cycles each": round(waited / max(1, count)),
                    "share": 100 * waited / max(1, total),
                    "from": out.path(int(self.launches.place[launch])),
                }
                for (kernel, line), (waited, count, launch) in longest[: self.rows]
            ],
            units={"share": "%"},
        )
