"""Which parts of memory are used when, in blocks of 2 MB by time (Figure 13 of the PASTA paper)."""

from __future__ import annotations

import numpy as np

from leadline.tools.batch import Batch
from leadline.tools.out import MAX_CELLS, Out
from leadline.tools.spread import Spread
from leadline.tools.tool import Tool, option

_MOST_BLOCKS = 1 << 24
"""Of one object; the rest counts as its last."""


class Hotness(Tool):
    """Which blocks of which tensors are accessed when, as a heat map, and which stay hot."""

    tool_name = "hotness"
    events = {"touched": ["launch", "object", "first", "end", "reads", "writes", "time"]}
    block = option(bytes, "2MiB", "bytes of a block; the last one of an object may be shorter")
    windows = option(int, "80", "columns of the heat map at most, each with as many launches")
    rows = option(int, "200", "blocks shown, those with most accesses")

    def start(self) -> None:
        self.of_block: dict[int, int] = {}
        self.accesses = Spread(self.windows, np.add)
        self.uses = Spread(self.windows, np.maximum)

    def touched(self, b: Batch) -> None:
        first = np.asarray(b["first"]) // self.block
        last = (np.maximum(np.asarray(b["end"]), np.asarray(b["first"]) + 1) - 1) // self.block
        spans = last - first + 1
        row = np.repeat(np.arange(len(b)), spans)
        block = first[row] + (np.arange(len(row)) - np.repeat(np.cumsum(spans) - spans, spans))
        accesses = (np.asarray(b["reads"]) + np.asarray(b["writes"]))[row] / spans[row]
        distinct, which = np.unique(
            np.asarray(b["object"])[row] << 24 | np.minimum(block, _MOST_BLOCKS - 1), return_inverse=True
        )
        known = np.array([self.of_block.setdefault(one, len(self.of_block)) for one in distinct.tolist()], np.int64)
        launch = np.asarray(b["launch"])[row]
        self.accesses.add(known[which], launch, accesses)
        self.uses.add(known[which], launch, 1)

    def finish(self, out: Out) -> None:
        if not self.of_block:
            return
        blocks = np.array(list(self.of_block), np.int64)
        by_window = self.accesses.cells(slice(len(blocks)))
        total = by_window.sum(axis=1)
        columns = by_window.shape[1]
        shown = np.argsort(-total, kind="stable")[: min(self.rows, MAX_CELLS // columns)]
        shown = shown[np.argsort(blocks[shown])]
        names = [self._name(int(one)) for one in blocks[shown].tolist()]
        out.heat(
            "accesses of blocks by time",
            np.round(by_window[shown]),
            rows=names,
            columns=[f"launch {at * self.accesses.width}" for at in range(columns)],
            unit="elements",
            row_name="block",
            column_name="launches",
        )
        used = self.uses.cells(slice(len(blocks))) > 0
        share = used.mean(axis=1)
        uses = {
            "in most of the run (pin or prefetch once)": share >= 0.5,
            "now and then": (share < 0.5) & (share > 2 / columns),
            "in one short time (can go at once)": (share < 0.5) & (share <= 2 / columns),
        }
        whole = float(total.sum()) or 1.0
        out.table(
            "blocks by how they are used",
            [
                {"use": use, "blocks": int(chosen.sum()), "accesses": 100 * float(total[chosen].sum()) / whole}
                for use, chosen in uses.items()
            ],
            units={"accesses": "%"},
        )
        hottest = np.argsort(-total, kind="stable")[: self.rows].tolist()
        out.table(
            "hottest blocks",
            [
                {"block": self._name(int(blocks[at])), "accesses": round(total[at]), "of the run": 100 * share[at]}
                for at in hottest
            ],
            units={"of the run": "%"},
        )

    def _name(self, key: int) -> str:
        thing, block = key >> 24, key & (_MOST_BLOCKS - 1)
        blocks = -(-int(self.objects.bytes[thing]) // self.block)
        part = f" block {block + 1} of {blocks}" if blocks > 1 else ""
        return f"{self.objects.label(thing)} #{thing}{part}"
