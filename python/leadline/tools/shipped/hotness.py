"""Which parts of memory are used when, in blocks of 2 MB by time (Figure 13 of the PASTA paper)."""

from __future__ import annotations

from typing import Any

import numpy as np

from leadline.tools.batch import Batch
from leadline.tools.out import MAX_CELLS, Out
from leadline.tools.tool import Tool, option


class Hotness(Tool):
    """Which blocks of which tensors are accessed when, as a heat map, and which stay hot."""

    tool_name = "hotness"
    events = {"touched": ["launch", "object", "first", "end", "reads", "writes", "time"]}
    block = option(bytes, "2MiB", "bytes of a block; the last one of an object may be shorter")
    windows = option(int, "80", "columns of the heat map, each with as many launches")
    rows = option(int, "200", "blocks shown, those with most accesses")

    def start(self) -> None:
        self.chunks: list[tuple[Any, Any, Any]] = []
        self.numbers: dict[tuple[int, int], int] = {}

    def touched(self, b: Batch) -> None:
        first = np.asarray(b["first"]) // self.block
        last = (np.maximum(np.asarray(b["end"]), np.asarray(b["first"]) + 1) - 1) // self.block
        spans = last - first + 1
        row = np.repeat(np.arange(len(b)), spans)
        block = first[row] + (np.arange(len(row)) - np.repeat(np.cumsum(spans) - spans, spans))
        accesses = (np.asarray(b["reads"]) + np.asarray(b["writes"]))[row] / spans[row]
        key = np.asarray(b["object"])[row] << 24 | np.minimum(block, (1 << 24) - 1)
        self.chunks.append((np.asarray(b["launch"])[row], key, accesses))

    def finish(self, out: Out) -> None:
        if not self.chunks:
            return
        launch, key, accesses = (np.concatenate([chunk[at] for chunk in self.chunks]) for at in range(3))
        blocks, which = np.unique(key, return_inverse=True)
        total = np.bincount(which, accesses, len(blocks))
        last = int(launch.max())
        columns = min(self.windows, last + 1)
        window = launch * columns // (last + 1)
        shown = np.argsort(-total, kind="stable")[: min(self.rows, MAX_CELLS // columns)]
        shown = shown[np.argsort(blocks[shown])]
        rank = np.full(len(blocks), -1)
        rank[shown] = np.arange(len(shown))
        kept = rank[which] >= 0
        cells = np.zeros((len(shown), columns))
        np.add.at(cells, (rank[which][kept], window[kept]), accesses[kept])
        names = [self._name(int(one)) for one in blocks[shown].tolist()]
        out.heat(
            "accesses of blocks by time",
            np.round(cells),
            rows=names,
            columns=[f"launch {at * (last + 1) // columns}" for at in range(columns)],
            unit="elements",
            row_name="block",
            column_name="launches",
        )
        used = np.zeros((len(blocks), columns), np.bool_)
        used[which, window] = True
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
        thing, block = key >> 24, key & ((1 << 24) - 1)
        blocks = -(-int(self.objects.bytes[thing]) // self.block)
        part = f" block {block + 1} of {blocks}" if blocks > 1 else ""
        return f"{self.objects.label(thing)} #{thing}{part}"
