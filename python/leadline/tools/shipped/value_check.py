"""The first NaN or infinity: where it arose, and where it went."""

from __future__ import annotations

from typing import Any

from leadline.tools.batch import Batch
from leadline.tools.out import Out
from leadline.tools.tool import Tool, option


class ValueCheck(Tool):
    """The first NaN or infinity: tensor, operator, line, and whether its inputs were still finite."""

    tool_name = "value_check"
    events = {"value": ["launch", "object", "nan", "inf", "elements", "clean", "place"]}
    infinities = option(bool, "yes", "report infinities too, but for those that the program itself hands over (masks)")
    rows = option(int, "20", "sources listed")

    def start(self) -> None:
        self.sources: dict[tuple[int, int], dict[str, Any]] = {}
        self.launches_with = 0
        self.came_in: Batch | None = None

    def value(self, b: Batch) -> None:
        wanted = b.where((b["nan"] > 0) | ((b["inf"] > 0) & bool(self.infinities)))
        if not len(wanted):
            return
        self.launches_with += len(wanted)
        born = wanted.where(wanted["clean"] == 1)
        self.first(born)
        if self.came_in is None:
            self.came_in = wanted
        for row in range(len(born)):
            values = {name: int(born[name][row]) for name in ("launch", "object", "nan", "inf", "elements", "place")}
            source = (values["place"], int(self.launches.kernel[values["launch"]]))
            known = self.sources.setdefault(source, {**values, "times": 0})
            known["times"] += 1

    def finish(self, out: Out) -> None:
        if not self.launches_with:
            out.text("verdict", "Every floating-point value that was written is finite.")
            return
        if not self.sources and self.came_in is not None and int(self.came_in["nan"][0]):
            self.first(self.came_in)
        rows = [
            {
                "operator": self.names[self.launches.kernel[one["launch"]]],
                "NaN": one["nan"],
                "inf": one["inf"],
                "of": one["elements"],
                "times": one["times"],
                "tensor": self.objects.label(one["object"]),
                "from": out.path(one["place"]),
            }
            for one in sorted(self.sources.values(), key=lambda one: one["launch"])[: self.rows]
        ]
        if rows:
            out.table("where they arose: no input was as bad", rows)
        out.text(
            "spread",
            f"{self.launches_with:,} launches wrote values that are not finite"
            + ("; none arose in an operator, so they came in with data, parameters or a mask." if not rows else "."),
        )
