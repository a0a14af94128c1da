"""How much memory a launch needs at once, beside how much the program holds (Table V of the PASTA paper)."""

from __future__ import annotations

import numpy as np

from leadline.tools.batch import Batch
from leadline.tools.out import Out
from leadline.tools.sizes import size_text
from leadline.tools.tool import Tool, option


class WorkingSet(Tool):
    """How much memory each launch touches, the largest of them, and the footprint beside it."""

    tool_name = "working_set"
    events = {"touched": ["launch", "object", "pages"], "memory": ["address", "bytes", "device", "device_type"]}
    page = option(bytes, "4KiB", "unit of the touched set")
    rows = option(int, "20", "launches listed, largest first")

    def start(self) -> None:
        self.sets = self.sums("whole", "touched", "objects")
        self.used = self.sums("launches")
        self.live: dict[tuple[int, int, int], int] = {}
        self.held = 0
        self.footprint = 0

    def memory(self, b: Batch) -> None:
        columns = (np.asarray(b[name]).tolist() for name in ("device_type", "device", "address", "bytes"))
        for kind, device, address, size in zip(*columns, strict=True):
            if size >= 0:
                self.live[kind, device, address] = size
                self.held += size
                self.footprint = max(self.footprint, self.held)
            else:
                self.held -= self.live.pop((kind, device, address), 0)

    def touched(self, b: Batch) -> None:
        # An operator may name an object twice (read and written); it is in its working set once.
        order = np.lexsort((-np.asarray(b["pages"]), b["object"], b["launch"]))
        launch, thing = np.asarray(b["launch"])[order], np.asarray(b["object"])[order]
        first = np.ones(len(order), np.bool_)
        first[1:] = (launch[1:] != launch[:-1]) | (thing[1:] != thing[:-1])
        rows = b.where(order[first])
        self.sets.add(
            rows["launch"],
            whole=self.objects.bytes[rows["object"]],
            touched=rows["pages"] * self.page,
            objects=1,
        )
        self.used.add(rows["object"], launches=1)

    def finish(self, out: Out) -> None:
        totals = self.sets.totals()
        launches = self.sets.keys()
        if not len(launches):
            return
        objects = self.used.keys()
        whole_bytes = self.objects.bytes[objects]
        statistics = ["min", "mean", "median", "p90", "max"]
        out.distribution("working set of a launch", self.sets, statistics, fields=["whole", "touched"])
        largest = float(totals["whole"].max())
        rows = [
            {"what": "launches", "value": f"{len(launches):,}"},
            {"what": "working set: whole objects of the largest launch", "value": size_text(largest)},
            {"what": "working set: pages of the largest launch", "value": size_text(float(totals["touched"].max()))},
            {"what": "footprint: most tensor memory held at once", "value": size_text(self.footprint)},
            {
                "what": "footprint compared with the working set",
                "value": f"{self.footprint / max(largest, 1):.2f} times",
            },
            {
                "what": "objects touched at all",
                "value": f"{len(objects):,}, {size_text(float(whole_bytes.sum()))} in all",
            },
        ]
        out.table("summary", rows)
        by_size = np.argsort(-totals["whole"], kind="stable")[: self.rows]
        out.table(
            "largest launches",
            [
                {
                    "kernel": self.names[self.launches.kernel[launches[at]]],
                    "launch": int(launches[at]),
                    "whole": totals["whole"][at],
                    "touched": totals["touched"][at],
                    "objects": totals["objects"][at],
                    "from": out.path(int(self.launches.place[launches[at]])),
                }
                for at in by_size.tolist()
            ],
            units={"whole": "bytes", "touched": "bytes"},
        )
