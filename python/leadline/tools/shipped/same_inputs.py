"""What is computed again: operators that were called with equal inputs, by value, before.

What a call would have spared is what the fastest call of the same inputs took: equal work that took longer stood in
line for a core, or was the first to touch its memory.
"""

from __future__ import annotations

import numpy as np

from leadline.tools.batch import Batch
from leadline.tools.out import Out
from leadline.tools.tool import Tool, option


class SameInputs(Tool):
    """Operators called again with inputs that they had before, by value: where, how often, and the time that takes."""

    tool_name = "same_inputs"
    events = {"launch": ["launch", "kernel", "duration", "inputs", "place"]}
    most = option(int, "2000000", "different calls that are remembered")
    rows = option(int, "1000", "call paths listed")

    def start(self) -> None:
        self.fastest: dict[tuple[int, int], int] = {}
        """Nanoseconds, by operator and inputs."""
        self.of = self.sums("calls", "again", "time", "time again")
        self.kernels: dict[int, int] = {}
        self.unknown = 0

    def launch(self, b: Batch) -> None:
        columns = (np.asarray(b[name]).tolist() for name in ("kernel", "inputs", "place", "duration"))
        kernels, inputs, places, durations = columns
        again = np.zeros(len(b), np.int64)
        spared = np.zeros(len(b), np.int64)
        for row, key in enumerate(zip(kernels, inputs, strict=True)):
            known = self.fastest.get(key)
            if not key[1]:
                self.unknown += 1
            elif known is not None:
                again[row] = 1
                spared[row] = self.fastest[key] = min(known, durations[row])
            elif len(self.fastest) < self.most:
                self.fastest[key] = durations[row]
        self.kernels.update(zip(places, kernels, strict=True))
        self.of.add(b["place"], calls=1, again=again, time=np.asarray(durations), **{"time again": spared})

    def finish(self, out: Out) -> None:
        totals = self.of.totals()
        places = self.of.keys().tolist()
        again = np.asarray(totals["again"])
        order = np.argsort(-np.asarray(totals["time again"]), kind="stable")
        chosen = [int(at) for at in order.tolist() if again[at] > 0][: self.rows]
        whole = {name: int(np.sum(totals[name])) for name in ("calls", "again", "time", "time again")}
        out.table("in all", [whole], units={"time": "ns", "time again": "ns"})
        out.text(
            "verdict",
            f"{whole['again']:,} of {whole['calls']:,} operators were called with inputs that they had before, "
            f"{100 * whole['time again'] / max(whole['time'], 1):.0f} % of the operators' time; random numbers and "
            "tensors that cannot be read are left out.",
        )
        if len(self.fastest) >= self.most:
            out.text("left out", "More different calls were made than are remembered; more may be equal.")
        out.table(
            "called again with equal inputs",
            [
                {
                    "operator": self.names[self.kernels[places[at]]],
                    "calls": int(totals["calls"][at]),
                    "again": int(again[at]),
                    "time again": int(totals["time again"][at]),
                    "line": self._line(places[at]),
                    "from": out.path(places[at]),
                }
                for at in chosen
            ],
            units={"time again": "ns"},
        )

    def _line(self, place: int) -> str:
        """path:line of the innermost frame of the program's own code, or empty."""
        for frame in reversed(self.places.path(place)):
            if frame.kind == "python" and not self.places.is_library(frame.file):
                return f"{frame.file}:{frame.line}"
        return ""
