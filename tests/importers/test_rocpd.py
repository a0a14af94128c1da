"""`leadline import` of rocprofv3's databases: drawn ones in both layouts that its releases have written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.truth.invariants import contradictions

from leadline.profiles.draw import draw
from leadline.trace.importers import import_traces
from leadline.trace.tables import TraceError

GUID, PID, MAIN, HELPER = "0000a1b2-0000-7000", 4711, 4711, 4712
CPU, GPU = 1, 3  # numbers of agents
STREAM, QUEUE = 2, 1

TREE = """\
process results.db
  thread main
    region step
      operator aten::linear
        api hipLaunchKernel
          kernel gemm<float>
        phase backward
          operator autograd::engine::evaluate_function: AddmmBackward0
            api hipModuleLaunchKernel
              kernel gemm<float>
      api hipMemcpyWithStream
        copy Memcpy DtoH (Device -> Host)
      api hipStreamSynchronize
  thread autograd
"""


class Drawing:
    """A database while it is drawn. `later`: the layout with tables of tracks and instants."""

    def __init__(self, path: Path, *, later: bool, views: bool = True) -> None:
        self._made = sqlite3.connect(path)
        self._later, self._views = later, views
        self._numbers: dict[str, Iterator[int]] = {}
        self._texts: dict[str, int] = {}

    def row(self, table: str, guid: str = GUID, **values: Any) -> int:
        """Adds a row, and makes the run's table with those columns when it is the first; the answer is its number."""
        name = f"rocpd_{table}_{guid.replace('-', '_')}"
        if name not in self._numbers:
            self._numbers[name] = iter(range(1, 10_000))
            columns = ", ".join(f'"{column}"' for column in ("id", "guid", *values) if column != "number")
            self._made.execute(f'create table "{name}" ({columns})')
            if self._views:
                self._made.execute(f'create view if not exists "rocpd_{table}" as select * from "{name}"')
        number = values.pop("number", None) or next(self._numbers[name])
        marks = ", ".join("?" * (len(values) + 2))
        self._made.execute(f'insert into "{name}" values ({marks})', (number, guid, *values.values()))
        return int(number)

    def text(self, text: str) -> int:
        if text not in self._texts:
            self._texts[text] = self.row("string", string=text)
        return self._texts[text]

    def event(self, category: str, stack: int, said: dict[str, str] | None = None) -> int:
        return self.row("event", category_id=self.text(category), stack_id=stack, extdata=json.dumps(said or {}))

    def timed(self, table: str, start: int, end: int, place: dict[str, int], **values: Any) -> None:
        places = {key: place.get(key) for key in ("pid", "tid", "agent_id", "queue_id", "stream_id")}
        if self._later:
            values["track_id"] = self.row("track", nid=1, **places)
            values["start_id"], values["end_id"] = self.row("timestamp", value=start), self.row("timestamp", value=end)
        else:
            values.update(start=start, end=end, **places)
        self.row(table, **values)

    def call(self, start: int, end: int, thread: int, name: str, stack: int) -> None:
        event = self.event("HIP_RUNTIME_API_EXT", stack)
        self.timed("region", start, end, {"pid": PID, "tid": thread}, name_id=self.text(name), event_id=event)

    def range(self, start: int, end: int, thread: int, message: str, stack: int) -> None:
        event = self.event("MARKER_CORE_RANGE_API", stack, {"message": message})
        name = self.text("roctxThreadRangeA")
        self.timed("region", start, end, {"pid": PID, "tid": thread}, name_id=name, event_id=event)

    def kernel(self, start: int, end: int, stack: int, symbol: int) -> None:
        event = self.event("KERNEL_DISPATCH", stack)
        place = {"pid": PID, "tid": MAIN, "agent_id": GPU, "queue_id": QUEUE, "stream_id": STREAM}
        self.timed(
            "kernel_dispatch", start, end, place, kernel_id=symbol, group_segment_size=1024, grid_size_x=512,
            grid_size_y=2, grid_size_z=1, workgroup_size_x=256, workgroup_size_y=1, workgroup_size_z=1, event_id=event,
        )  # fmt: skip

    def done(self) -> None:
        self._made.commit()
        self._made.close()


def draw_run(path: Path, *, later: bool, views: bool = True) -> Path:
    made = Drawing(path, later=later, views=views)
    made.row("info_process", number=PID, pid=PID, environment=json.dumps({"RANK": "3"}))
    made.row("info_thread", number=MAIN, tid=MAIN, name="python")
    made.row("info_thread", number=HELPER, tid=HELPER, name="autograd")
    made.row("info_agent", number=CPU, type="CPU", type_index=0, name="EPYC", product_name="AMD EPYC")
    made.row("info_agent", number=GPU, type="GPU", type_index=0, name="gfx942", product_name="AMD Instinct MI300X")
    symbol = made.row("info_kernel_symbol", display_name="gemm<float>", kernel_name="_Z4gemm", arch_vgpr_count=32)
    made.range(1_000, 99_000, MAIN, "step", 1)
    made.range(2_000, 30_000, MAIN, "aten::linear, seq = 12, op_id = 3, sizes = [[8, 16]]", 2)
    made.call(10_000, 12_000, MAIN, "hipLaunchKernel", 501)
    made.range(40_000, 60_000, HELPER, "autograd::engine::evaluate_function: AddmmBackward0, op_id = 9, seq = 12", 3)
    made.call(45_000, 46_000, HELPER, "hipModuleLaunchKernel", 502)
    made.call(70_000, 71_000, MAIN, "hipMemcpyWithStream", 503)
    made.call(80_000, 95_000, MAIN, "hipStreamSynchronize", 504)
    made.kernel(15_000, 25_000, 501, symbol)
    made.kernel(50_000, 70_000, 502, symbol)
    place = {"pid": PID, "tid": MAIN, "queue_id": QUEUE, "stream_id": STREAM}
    event = made.event("MEMORY_COPY", 503)
    name = made.text("MEMORY_COPY_DEVICE_TO_HOST")
    made.timed(
        "memory_copy", 75_000, 78_000, place, name_id=name, size=4096, src_agent_id=GPU, dst_agent_id=CPU,
        event_id=event,
    )  # fmt: skip
    made.done()
    return path


@pytest.mark.parametrize("later", [False, True], ids=["times in rows", "times in tables"])
@pytest.mark.parametrize("views", [True, False], ids=["views", "tables alone"])
def test_a_drawn_database_gives_the_known_tree(tmp_path: Path, later: bool, views: bool) -> None:
    profile = import_traces([draw_run(tmp_path / "results.db", later=later, views=views)])
    assert draw(profile) == TREE
    assert contradictions(profile) == []
    tree = profile.tree
    assert int(tree.exclusive("gpu_time").sum.sum()) == 33_000
    assert int(tree.exclusive("sync_time").sum.sum()) == 15_000
    assert int(tree.exclusive("copy_bytes").sum.sum()) == 4096
    # 512 x 2 work-items in blocks of 256
    assert (int(tree.exclusive("grid_blocks").max.max()), int(tree.exclusive("block_threads").max.max())) == (4, 256)
    (device,), (process,) = profile.devices, profile.processes
    assert (device.name, device.detail["compute_capability"]) == ("AMD Instinct MI300X", "9.4")
    assert (process.pid, process.rank) == (PID, 3)
    assert profile.losses == []


def test_both_layouts_give_the_same_profile(tmp_path: Path) -> None:
    old, new = (
        import_traces([draw_run(tmp_path / str(later) / "results.db", later=later)])
        for later in (False, True)
        if (tmp_path / str(later)).mkdir() is None
    )
    assert draw(old, ["gpu_time", "time", "copy_bytes"]) == draw(new, ["gpu_time", "time", "copy_bytes"])


def test_numbers_of_two_runs_in_one_file_stay_apart(tmp_path: Path) -> None:
    path = draw_run(tmp_path / "results.db", later=False)
    with sqlite3.connect(path) as made:
        tables = [name for (name,) in made.execute("select name from sqlite_master where type = 'table'")]
        for table in tables:
            other = table.replace("0000a1b2", "0000ffff")
            made.execute(f'create table "{other}" as select * from "{table}"')
            made.execute(f"update \"{other}\" set guid = 'another'")
            whole = table.partition("_0000a1b2")[0]
            made.execute(f'drop view "{whole}"')
            made.execute(f'create view "{whole}" as select * from "{table}" union all select * from "{other}"')
        made.execute('update "rocpd_info_process_0000ffff_0000_7000" set pid = 4800')
    profile = import_traces([path])
    assert sorted(process.pid for process in profile.processes) == [PID, 4800]
    assert int(profile.tree.exclusive("gpu_time").sum.sum()) == 66_000
    assert contradictions(profile) == []


@pytest.mark.parametrize("table", ["string", "event", "info_agent", "info_thread", "info_kernel_symbol", "memory_copy"])
def test_tables_may_be_missing(tmp_path: Path, table: str) -> None:
    path = draw_run(tmp_path / "results.db", later=False, views=False)
    with sqlite3.connect(path) as made:
        made.execute(f'drop table "rocpd_{table}_{GUID.replace("-", "_")}"')
    assert contradictions(import_traces([path])) == []


def test_a_database_without_events_or_with_half_its_bytes_is_refused_in_a_sentence(tmp_path: Path) -> None:
    empty = Drawing(tmp_path / "empty.db", later=False)
    empty.row("info_process", number=PID, pid=PID, environment="not json")
    empty.done()
    with pytest.raises(TraceError, match="holds no call, kernel or range; record it with rocprofv3"):
        import_traces([tmp_path / "empty.db"])
    whole = draw_run(tmp_path / "whole.db", later=True).read_bytes()
    (tmp_path / "cut.db").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TraceError, match="cannot be read as SQLite"):
        import_traces([tmp_path / "cut.db"])
