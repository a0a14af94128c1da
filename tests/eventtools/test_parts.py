"""The parts of event tools by themselves: no torch, no program."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from leadline.cli.main import main
from leadline.tools.batch import batch_of
from leadline.tools.errors import ToolError
from leadline.tools.ranges import Ranges, Selector, from_environment
from leadline.tools.registry import Places
from leadline.tools.residency import (
    BLOCK,
    AddressSpace,
    Launch,
    Machine,
    Simulator,
    look_ahead_plan,
    object_plan,
    tensor_plan,
)
from leadline.tools.ring import Ring
from leadline.tools.shipped.most import evaluate
from leadline.tools.sums import Counter, Sums
from leadline.tools.tool import parse_bytes


def test_a_full_ring_keeps_the_oldest_rows_and_counts_the_rest() -> None:
    ring = Ring(2, 8)
    for number in range(11):
        ring.put(number, -number)
    assert ring.take().tolist() == [[n, -n] for n in range(8)]
    assert ring.lost == 3
    for number in range(20, 26):  # over the end of the buffer
        ring.put(number, 0)
    assert ring.take()[:, 0].tolist() == [20, 21, 22, 23, 24, 25]


def test_columns_are_read_only_and_know_what_they_refer_to() -> None:
    batch = batch_of("launch", {"launch": [0, 1], "kernel": [3, 4], "place": [7, 8]})
    assert batch["kernel"].ref == "name"
    with pytest.raises(ValueError, match="read-only"):
        batch["kernel"][0] = 1
    with pytest.raises(KeyError, match="no column 'speed'"):
        batch["speed"]
    assert batch.where(batch["kernel"] > 3)["place"].tolist() == [8]


def test_counts_and_sums_equal_a_dictionary() -> None:
    random = np.random.default_rng(1)
    counter, sums = Counter(), Sums("a", "b")
    expected: dict[int, list[float]] = {}
    for _ in range(30):
        keys = random.integers(0, 50, 200)
        values = random.integers(0, 1000, 200)
        counter.add(keys)
        sums.add(keys, a=values)
        sums.add(keys, b=2)
        for key, value in zip(keys.tolist(), values.tolist(), strict=True):
            one = expected.setdefault(key, [0, 0, 0])
            one[0], one[1], one[2] = one[0] + 1, one[1] + value, one[2] + 2
    totals = sums.totals()
    found = {
        key: [counter.counts[key], totals["a"][at], totals["b"][at]] for at, key in enumerate(sums.keys().tolist())
    }
    assert found == expected


def test_ranges() -> None:
    places = Places(
        lambda place: [("module", f"net.layers.{place}", "", 0), ("phase", "forward", "", 0)], lambda _: False
    )
    some = Selector(Ranges.of("10:20", kernel="mm$", every=2), places)
    chosen = [n for n in range(30) if some.chooses(n, "aten::mm" if n % 3 == 0 else "aten::add", 1)]
    assert chosen == [12, 18]
    layer = Selector(Ranges.of(layer=r"layers\.2$", phase="forward"), places)
    assert [place for place in range(1, 5) if layer.chooses(0, "x", place)] == [2]
    assert from_environment({"START_GRID_ID": "3", "END_GRID_ID": "5"}) == "3:6"
    for wrong in ("x:y", "5", "9:3", "-1:3"):
        with pytest.raises(ToolError, match="launch range"):
            Ranges.of(wrong)
    with pytest.raises(ToolError, match="pattern"):
        Ranges.of(layer="(")


def test_sizes_and_expressions() -> None:
    assert [parse_bytes(text) for text in ("64KiB", "2MB", "4096", "1.5 GiB", "1B")] == [
        65536,
        2_000_000,
        4096,
        1610612736,
        1,
    ]
    with pytest.raises(ValueError, match="not a size"):
        parse_bytes("many")
    columns = {"bytes": np.array([6.0, 8.0]), "launches": np.array([2.0, 0.0])}
    assert evaluate("bytes/launches + 1", columns).tolist() == [4.0, 1.0]
    for hostile in ("__import__('os')", "bytes.real", "bytes**9", "[1]", "bytes ==", "lambda: 1"):
        with pytest.raises(ToolError, match="Cannot read"):
            evaluate(hostile, columns)


def _model(layers: int, *, train: bool) -> list[Launch]:
    """Each layer reads its weights (three blocks) and the activation before it, and writes the next one."""
    made = []
    for layer in range(layers):
        weights = tuple(range(layer * 3, layer * 3 + 3))
        dead = () if train else (1000 + layer,)
        made.append(Launch((*weights, 1000 + layer, 1001 + layer), 200_000, dead))
    return made * 2


def test_an_address_space_gives_out_again_what_came_back() -> None:
    space = AddressSpace()
    assert [space.take(number, 1000) for number in range(3)] == [0, 1024, 2048]
    space.give_back(0)
    space.give_back(1)
    assert space.take(3, 1500) == 0  # two neighbours became one
    assert space.take(4, 10) == 1536
    assert space.take(5, 1024) == 3072
    assert space.extent == 4096


def test_residency_demand_paging_by_hand() -> None:
    machine = Machine(2 * BLOCK, 1.0, 10)
    run = Simulator([Launch((1,), 5), Launch((2,), 5), Launch((3,), 5), Launch((1,), 5)], machine).run()
    assert run.faults == 4
    assert run.total_ns == 4 * 5 + 4 * 10 + BLOCK  # first touches move nothing; 1 comes back
    assert run.moved_bytes == 3 * BLOCK  # two evictions and the return
    assert run.peak_blocks == 2


def test_a_plan_beats_demand_paging_and_whole_pools_lose_where_memory_is_short() -> None:
    launches = _model(24, train=False)
    blocks = sorted({block for launch in launches for block in launch.blocks})
    pools = {block: blocks[at - at % 12 : at - at % 12 + 12] for at, block in enumerate(blocks)}
    for factor, short in ((2.0, False), (1 / 3, True)):
        simulator = Simulator(launches, Machine(int(len(blocks) * BLOCK * factor)))
        demand = simulator.run().total_ns
        pool = simulator.run(object_plan(launches, pools)).total_ns
        tensors = simulator.run(tensor_plan(launches)).total_ns
        plan = simulator.run(look_ahead_plan(launches)).total_ns
        assert plan <= min(demand, tensors)
        assert plan < demand
        assert (pool > tensors) == short


def test_tools_are_listed_and_described(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["tools"]) == 0
    listed = capsys.readouterr().out
    for name in ("kernel_frequency", "working_set", "uvm_advisor", "declared"):
        assert name in listed
    assert main(["tools", "working_set"]) == 0
    assert "working_set.page=4KiB" in capsys.readouterr().out
    assert main(["tools", "nothing_of_the_kind"]) == 2
    mine = tmp_path / "mine.py"
    mine.write_text("class Mine(Tool):\n    'Mine.'\n    events = {'block': ['count']}\n    def block(self, b): pass\n")
    assert main(["tools", str(mine)]) == 0
    assert "--backend sanitizer" in capsys.readouterr().out


def test_the_schema_says_of_every_column_what_it_is() -> None:
    from leadline.tools.events import EVENTS

    assert {"launch", "touched", "operator", "memory"} <= set(EVENTS)
    assert all(column.doc for event in EVENTS.values() for column in event.columns)
    assert json.dumps(list(EVENTS))
