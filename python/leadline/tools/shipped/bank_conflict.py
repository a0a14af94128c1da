"""Shared memory: instructions whose lanes met in a bank."""

from __future__ import annotations

import numpy as np

from leadline.tools.batch import Batch
from leadline.tools.out import Out
from leadline.tools.tool import Tool, option


class BankConflict(Tool):
    """How many more passes shared-memory instructions take since lanes meet in a bank."""

    tool_name = "bank_conflict"
    events = {"launch": ["launch", "kernel"], "shared_access": ["launch", "instruction", "conflicts", "count"]}
    rows = option(int, "20", "instructions listed")

    def start(self) -> None:
        self.of: dict[tuple[int, int], list[int]] = {}

    def launch(self, b: Batch) -> None:
        """Known by its number from here on."""

    def shared_access(self, b: Batch) -> None:
        kernel = np.asarray(self.launches.kernel[b["launch"]]).tolist()
        columns = (np.asarray(b[name]).tolist() for name in ("launch", "instruction", "conflicts", "count"))
        for of, launch, line, conflicts, warps in zip(kernel, *columns, strict=True):
            known = self.of.setdefault((of, line), [0, 0, launch])
            known[0] += conflicts
            known[1] += warps

    def finish(self, out: Out) -> None:
        if not self.of:
            return
        worst = sorted(self.of.items(), key=lambda one: -one[1][0])
        out.table(
            "shared memory by conflicts",
            [
                {
                    "kernel": self.names[kernel],
                    "instruction": self.names[line],
                    "warps": warps,
                    "passes": warps + conflicts,
                    "of a warp": f"{(warps + conflicts) / max(1, warps):.3g}",
                    "from": out.path(int(self.launches.place[launch])),
                }
                for (kernel, line), (conflicts, warps, launch) in worst[: self.rows]
            ],
        )
