"""CPU time by function on drawn trees: own and total, recursion once, the hottest line, what has no name together."""

from __future__ import annotations

import numpy as np

from leadline.analysis.functions import functions
from leadline.profiles.builder import ProfileBuilder


class Drawing:
    """A thread below which paths are drawn: names, or (kind, name, line)."""

    def __init__(self) -> None:
        self.builder = ProfileBuilder()
        self.thread = self.builder.node_of_thread(self.builder.thread(self.builder.process("program"), "thread 1"))

    def sample(self, *path: str | tuple[str, str, int], ns: int) -> None:
        node = self.thread
        for step in path:
            kind, name, line = step if isinstance(step, tuple) else ("python", step, 1)
            native = kind == "native"
            file = "/lib/libc.so.6" if native else "train.py"
            address = line if native else 0
            frame = self.builder.frame(kind, name, file=file, line=line, first_line=1, address=address)
            node = self.builder.child(node, frame)
        self.builder.add(node, "cpu_sample", ns)

    def rows(self) -> dict[str, tuple[int, int, int, int]]:
        """(own, total, samples, line) by name."""
        tree = self.builder.profile().tree
        found = functions(tree, np.ones(len(tree), np.bool_))
        return {row.name: (row.self_ns, row.total_ns, row.samples, row.line) for row in found}


def test_recursion_counts_once_and_lines_of_one_function_are_one_row() -> None:
    drawing = Drawing()
    drawing.sample("main", ("python", "walk", 5), ("python", "walk", 5), ("python", "walk", 9), ns=70)
    drawing.sample("main", ("python", "walk", 5), ns=30)
    drawing.sample("main", ("python", "walk", 5), "other", ns=20)
    drawing.sample(ns=3)
    assert drawing.rows() == {
        "walk": (100, 120, 2, 9),
        "other": (20, 20, 1, 1),
        "main": (0, 120, 0, 1),
        "thread 1": (3, 123, 1, 0),
    }


def test_operators_are_functions_and_modules_and_phases_are_not() -> None:
    drawing = Drawing()
    drawing.sample("step", ("phase", "forward", 0), ("module", "net", 0), ("operator", "aten::mm", 0), ns=50)
    drawing.sample("step", ("phase", "forward", 0), ("module", "net", 0), ns=10)
    assert drawing.rows() == {"step": (10, 60, 1, 1), "aten::mm": (50, 50, 1, 0)}


def test_addresses_without_a_name_are_one_row_per_file() -> None:
    drawing = Drawing()
    drawing.sample("step", ("native", "libc.so.6+0x10", 16), ns=5)
    drawing.sample("step", ("native", "libc.so.6+0x20", 32), ("native", "libc.so.6+0x30", 48), ns=7)
    drawing.sample("step", ("native", "memcpy", 64), ns=1)
    rows = drawing.rows()
    assert rows["[libc.so.6]"][:3] == (12, 12, 2)
    assert rows["memcpy"][:3] == (1, 1, 1)


def test_nothing_sampled_is_no_table() -> None:
    drawing = Drawing()
    drawing.builder.add(drawing.thread, "time", 5)
    assert drawing.rows() == {}
