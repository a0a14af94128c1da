"""Loads of what the same launch had loaded before: how often each byte was read, by instruction."""

from __future__ import annotations

import numpy as np

from leadline.tools.batch import Batch
from leadline.tools.out import Out
from leadline.tools.tool import Tool, option


class RedundantLoad(Tool):
    """How often a kernel reads the same bytes again, by kernel, instruction and tensor."""

    tool_name = "redundant_load"
    events = {
        "launch": ["launch", "kernel"],
        "access": ["launch", "object", "instruction", "bytes", "count", "distinct"],
    }
    rows = option(int, "20", "instructions listed")

    def start(self) -> None:
        self.loads: dict[tuple[int, int, int], list[int]] = {}

    def launch(self, b: Batch) -> None:
        """Known by its number from here on."""

    def access(self, b: Batch) -> None:
        b = b.where(np.asarray(b["write"]) == 0)
        kernel, at = (np.asarray(of[b["launch"]]).tolist() for of in (self.launches.kernel, self.launches.place))
        columns = (np.asarray(b[name]).tolist() for name in ("instruction", "object", "bytes", "count", "distinct"))
        for of, place, line, thing, size, count, distinct in zip(kernel, at, *columns, strict=True):
            key = (of, line, thing)
            known = self.loads.setdefault(key, [0, 0, 0, place])
            known[0] += 1
            known[1] += size * count
            known[2] += distinct

    def finish(self, out: Out) -> None:
        if not self.loads:
            return
        total = sum(one[1] for one in self.loads.values())
        distinct = sum(one[2] for one in self.loads.values())
        by_waste = sorted(self.loads.items(), key=lambda one: one[1][2] - one[1][1])
        out.table(
            "loads of what had been loaded before",
            [
                {
                    "kernel": self.names[kernel],
                    "instruction": self.names[line],
                    "tensor": f"{self.objects.label(thing)} #{thing}",
                    "launches": launches,
                    "loaded": loaded,
                    "distinct": different,
                    "each byte": f"{loaded / max(different, 1):.3g} times",
                    "again": 100 * (loaded - different) / max(loaded, 1),
                    "from": out.path(place),
                }
                for (kernel, line, thing), (launches, loaded, different, place) in by_waste[: self.rows]
            ],
            units={"loaded": "bytes", "distinct": "bytes", "again": "%"},
        )
        share = 100 * (total - distinct) / max(total, 1)
        out.text(
            "in all", f"{share:.1f} % of the bytes that were loaded had been loaded by the same instruction before."
        )
