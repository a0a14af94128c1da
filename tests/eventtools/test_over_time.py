"""What tools tell over time, beside a plain reference that keeps every event."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.tools.batch import batch_of
from leadline.tools.held import held_bytes
from leadline.tools.out import Out
from leadline.tools.registry import Launches, Names, Objects, Places
from leadline.tools.shipped.hotness import Hotness
from leadline.tools.shipped.memory_timeline import MemoryTimeline
from leadline.tools.spread import Spread
from leadline.tools.tool import Context, Tool


def context() -> Context:
    return Context(Names(), Objects(), Launches(), Places(lambda place: [], lambda file: False))


def outputs(tool: Tool) -> dict[str, dict[str, Any]]:
    out = Out(tool.context)
    tool.finish(out)
    return {one["name"]: one for one in out.outputs}


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3000), st.integers(0, 99)), max_size=200), st.integers(2, 20)
)
def test_cells_hold_what_all_values_together_say(values: list[tuple[int, int, int]], cells: int) -> None:
    sums, greatest = Spread(cells, np.add), Spread(cells, np.maximum)
    for begin in range(0, len(values), 7):
        rows, positions, of = (np.array(column, np.int64) for column in zip(*values[begin : begin + 7], strict=True))
        sums.add(rows, positions, of)
        greatest.add(rows, positions, of)
    assert sums.width == greatest.width
    shape = (41, sums.cells().shape[1])
    summed, most = np.zeros(shape), np.zeros(shape)
    for row, position, value in values:
        summed[row, position // sums.width] += value
        most[row, position // sums.width] = max(most[row, position // sums.width], value)
    room = min(41, len(sums.cells()))
    assert np.array_equal(sums.cells()[:room], summed[:room]) and not summed[room:].any()
    assert np.array_equal(greatest.cells()[:room], most[:room])
    assert shape[1] <= cells + cells % 2


class Timeline(MemoryTimeline):
    """Owners are the places' own numbers."""

    def _owner(self, place: int) -> int:
        while len(self.texts) <= place:
            self.texts.append(f"layer {len(self.texts)}")
        return place


def drawn_memory(events: int, owners: int) -> list[tuple[int, int, int, int]]:
    """(time, address, bytes, place); what is freed was allocated before, sizes go up and down."""
    random = np.random.default_rng(events)
    alive: dict[int, int] = {}
    rows = []
    for time in range(events):
        if alive and random.random() < (0.3 if (time // 1000) % 2 == 0 else 0.7):
            address = list(alive)[int(random.integers(len(alive)))]
            rows.append((time, address, -alive.pop(address), 0))
        else:
            size = int(random.integers(1, 10_000))
            alive[time] = size
            rows.append((time, time, size, int(random.integers(owners))))
    return rows


@pytest.mark.parametrize(("events", "owners"), [(350, 5), (9000, 90), (30_000, 3)])
def test_memory_over_time_is_that_of_all_events(events: int, owners: int) -> None:
    rows = drawn_memory(events, owners)
    tool = Timeline(context())
    tool.start()
    for begin in range(0, events, 777):
        chunk = rows[begin : begin + 777][::-1]  # a batch of several threads is not in the order of time
        names = ("time", "address", "bytes", "place")
        columns = dict(zip(names, (np.array(one, np.int64) for one in zip(*chunk, strict=True)), strict=True))
        zero = np.zeros(len(chunk), np.int64)
        tool.memory(batch_of("memory", {**columns, "device": zero - 1, "device_type": zero}))

    levels = np.zeros((events, owners))
    owner_of: dict[int, int] = {}
    for time, address, size, place in rows:
        owner = owner_of.setdefault(address, place) if size > 0 else owner_of[address]
        levels[time:, owner] += size
    total = levels.sum(axis=1)
    found = outputs(tool)
    curve = found["tensor memory on the CPU"]
    width = -(-events // len(curve["x"])) if len(curve["x"]) < events else 1
    width = 1 << (width - 1).bit_length()
    begins = np.arange(0, events, width)
    assert len(curve["x"]) == len(begins) <= 400 and curve["x"] == begins.tolist()
    assert curve["series"]["all"] == np.maximum.reduceat(total, begins).tolist()
    for name, values in curve["series"].items():
        if name != "all":
            own = levels[:, int(name.split()[1])]
            assert values == np.maximum.reduceat(own, begins).tolist()
    (table,) = [one for one in found.values() if one["kind"] == "table"]
    peak = int(total.argmax())
    alive = {row[0]: row[1] for row in table["rows"]}
    assert alive == {f"layer {at}": value for at, value in enumerate(levels[peak].tolist()) if value > 0}
    assert sum(alive.values()) == total.max()
    assert f"after {peak / 1e9:.3f} s" in table["name"]


def test_a_free_of_something_unknown_is_said() -> None:
    tool = Timeline(context())
    tool.start()
    one = {"time": [5], "address": [1], "bytes": [-64], "device": [-1], "device_type": [0], "place": [0]}
    tool.memory(batch_of("memory", one))
    assert outputs(tool)["memory"]["text"] == "No tensor memory was allocated."
    tool.memory(batch_of("memory", {**one, "bytes": [64], "time": [6]}))
    assert "1 frees of memory from before the tool began" in outputs(tool)["frees"]["text"]


def test_hotness_says_which_blocks_are_used_when() -> None:
    """Three tensors of 3, 1 and 1 blocks over 1,000 launches: in every launch, in the first 10, each hundredth."""
    tool = Hotness(context(), {"windows": "50"})
    objects = [tool.objects.add(size, -1, 0, "tensor", "", 0) for size in (5 << 20, 1 << 20, 4096)]
    tool.start()
    for launch in range(1000):
        rows = [(objects[0], 0, 5 << 20, 300)]
        rows += [(objects[1], 0, 1 << 20, 70)] if launch < 10 else []
        rows += [(objects[2], 0, 4096, 5)] if launch % 100 == 0 else []
        of, first, end, reads = (np.array(one, np.int64) for one in zip(*rows, strict=True))
        zero = np.zeros(len(rows), np.int64)
        columns = {"object": of, "first": first, "end": end, "reads": reads, "writes": zero, "time": zero}
        tool.touched(batch_of("touched", {**columns, "launch": zero + launch}))
    found = outputs(tool)
    heat = found["accesses of blocks by time"]
    cells = np.array(heat["cells"])
    assert cells.shape == (5, 32)  # 1,000 launches, 32 in a column
    assert heat["columns"][:2] == ["launch 0", "launch 32"]
    assert cells[0].tolist() == [3200.0] * 31 + [800.0] and np.array_equal(cells[0], cells[2])
    assert cells[3].tolist() == [700.0] + [0.0] * 31
    assert cells[4].sum() == 50 and np.count_nonzero(cells[4]) == 10
    assert [row[1] for row in found["blocks by how they are used"]["rows"]] == [3, 1, 1]
    hottest = found["hottest blocks"]["rows"]
    assert [row[1] for row in hottest] == [100_000, 100_000, 100_000, 700, 50]


def test_what_a_tool_holds_is_about_what_it_holds() -> None:
    rows = [(number, str(number)) for number in range(5000)]
    assert held_bytes([rows]) == pytest.approx(5000 * (8 + 56 + 28 + 53), rel=0.1)
    array = np.zeros(10_000)
    assert held_bytes([[array[10:20], array[5:], array]]) == pytest.approx(80_000, rel=0.02)
    assert held_bytes([{number: np.zeros(1000) for number in range(2000)}]) == pytest.approx(2000 * 8136, rel=0.1)
    assert held_bytes([[array]], [array]) < 1000
    circle: list[Any] = []
    circle.append(circle)
    assert held_bytes([circle, Spread, np]) < 1000
    batch = batch_of("launch", {"launch": np.arange(100_000)})
    assert held_bytes([[batch["launch"]]]) == pytest.approx(800_000, rel=0.02)
