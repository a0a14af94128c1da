"""How often each kernel was launched, and from where first."""

from __future__ import annotations

from leadline.tools.batch import Batch
from leadline.tools.out import Out
from leadline.tools.tool import Tool


class KernelFrequency(Tool):
    """How often each kernel was launched, its time, and from where first."""

    tool_name = "kernel_frequency"
    events = {"launch": ["kernel", "duration"]}

    def start(self) -> None:
        self.times = self.sums("launches", "time")
        self.first_place = self.counter()

    def launch(self, b: Batch) -> None:
        self.times.add(b["kernel"], launches=1, time=b["duration"])
        self.first_place.add(b["kernel"])

    def finish(self, out: Out) -> None:
        totals = self.times.totals()
        all_launches = float(totals["launches"].sum()) or 1.0
        rows = [
            {
                "kernel": self.names[key],
                "launches": totals["launches"][at],
                "share": 100 * totals["launches"][at] / all_launches,
                "time": totals["time"][at],
                "first from": out.path(self.first_place.first_place.get(key, 0)),
            }
            for at, key in enumerate(self.times.keys().tolist())
        ]
        out.table("kernels by launches", rows, sort="-launches", units={"share": "%", "time": "ns"})
