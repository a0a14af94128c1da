"""`leadline import` of Nsight Systems' SQLite exports: drawn databases in the exporter's documented layout."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.truth.invariants import contradictions

from leadline.profiles.draw import draw
from leadline.trace.importers import import_traces
from leadline.trace.kernel.window import states_of
from leadline.trace.tables import TraceError

PID, OTHER = 4711, 4712
LAYOUT = {
    "StringIds": "id, value",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, globalTid, correlationId, nameId",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start, end, globalPid, deviceId, streamId, correlationId, demangledName, gridX, gridY, "
    "gridZ, blockX, blockY, blockZ, registersPerThread, dynamicSharedMemory",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start, end, globalPid, deviceId, streamId, correlationId, bytes, copyKind, srcKind, dstKind",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start, end, globalPid, deviceId, streamId, correlationId, bytes, memKind",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "correlationId, streamId, syncType",
    "NVTX_EVENTS": "start, end, globalTid, text, textId, eventType",
    "ThreadNames": "nameId, globalTid",
    "TARGET_INFO_GPU": "id, name, totalMemory, computeMajor, computeMinor, smCount",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs",
}
NAMES = (
    "main thread",
    "cudaLaunchKernel_v7000",
    "gemm<float>",
    "cudaMemcpyAsync_v3020",
    "cudaStreamSynchronize_v3020",
    "step",
)


def packed(pid: int, tid: int = 0) -> int:
    return 1 << 48 | pid << 24 | tid


def database(folder: Path, rows: dict[str, list[tuple[Any, ...]]], layout: dict[str, str] = LAYOUT) -> Path:
    path = folder / "report.sqlite"
    with sqlite3.connect(path) as made:
        for table in rows:
            made.execute(f"create table {table} ({layout[table]})")
            marks = ", ".join("?" * len(rows[table][0]))
            made.executemany(f"insert into {table} values ({marks})", rows[table])
    return path


def rows(pid: int = PID) -> dict[str, list[tuple[Any, ...]]]:
    main, helper, process = packed(pid, pid), packed(pid, 99), packed(pid)
    return {
        "StringIds": list(enumerate(NAMES)),
        "NVTX_EVENTS": [
            (1_000, 99_000, main, None, 5, 59),
            (2_000, 30_000, main, "aten::linear, seq = 12, op_id = 3, sizes = [[8, 16]]", None, 59),
            (
                40_000,
                60_000,
                helper,
                "autograd::engine::evaluate_function: AddmmBackward0, op_id = 9, seq = 12",
                None,
                59,
            ),
            (50_000, None, main, "a mark", None, 34),
        ],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            (10_000, 12_000, main, 501, 1),
            (45_000, 46_000, helper, 502, 1),
            (70_000, 71_000, main, 503, 3),
            (80_000, 95_000, main, 504, 4),
        ],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            (15_000, 25_000, process, 0, 7, 501, 2, 2, 3, 1, 128, 1, 1, 32, 0),
            (50_000, 70_000, process, 0, 7, 502, 2, 2, 3, 1, 128, 1, 1, 32, 0),
        ],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [(75_000, 78_000, process, 0, 7, 503, 4096, 2, 2, 0)],
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [(504, 7, 3)],
        "ThreadNames": [(0, main)],
        "TARGET_INFO_GPU": [(0, "NVIDIA H100", 80 << 30, 9, 0, 132)],
        "TARGET_INFO_SESSION_START_TIME": [(1_700_000_000_000_000_000,)],
    }


TREE = """\
process report.sqlite
  thread main
    region step
      operator aten::linear
        api cudaLaunchKernel
          kernel gemm<float>
        phase backward
          operator autograd::engine::evaluate_function: AddmmBackward0
            api cudaLaunchKernel
              kernel gemm<float>
      api cudaMemcpyAsync
        copy Memcpy DtoH (Device -> Pageable)
      api cudaStreamSynchronize
  thread thread 99
"""


def test_a_drawn_export_gives_the_known_tree(tmp_path: Path) -> None:
    profile = import_traces([database(tmp_path, rows())])
    assert draw(profile) == TREE
    assert contradictions(profile) == []
    assert int(profile.tree.exclusive("gpu_time").sum.sum()) == 33_000
    assert int(profile.tree.exclusive("sync_time").sum.sum()) == 15_000
    assert int(profile.tree.exclusive("copy_bytes").sum.sum()) == 4096
    (device,) = profile.devices
    assert (device.name, device.detail["compute_capability"]) == ("NVIDIA H100", "9.0")
    assert profile.meta["started_at_ns"] == 1_700_000_000_000_001_000
    assert profile.losses == []


def test_processes_of_one_file_stay_apart(tmp_path: Path) -> None:
    both = rows()
    for table, more in rows(OTHER).items():
        if table.startswith(("CUPTI", "NVTX")):
            both[table] = both[table] + more
    profile = import_traces([database(tmp_path, both)])
    assert sorted(process.pid for process in profile.processes) == [PID, OTHER]
    assert int(profile.tree.exclusive("gpu_time").sum.sum()) == 66_000
    assert contradictions(profile) == []


@pytest.mark.parametrize(
    "table",
    [
        "NVTX_EVENTS",
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        "TARGET_INFO_GPU",
        "StringIds",
    ],
)
def test_tables_exist_only_when_something_was_recorded(tmp_path: Path, table: str) -> None:
    few = rows()
    del few[table]
    assert contradictions(import_traces([database(tmp_path, few)])) == []


def test_columns_of_other_releases_may_be_missing(tmp_path: Path) -> None:
    layout = {
        **LAYOUT,
        "CUPTI_ACTIVITY_KIND_KERNEL": "start, end, globalPid, deviceId, streamId, correlationId, demangledName",
    }
    old = {**rows(), "CUPTI_ACTIVITY_KIND_KERNEL": [row[:7] for row in rows()["CUPTI_ACTIVITY_KIND_KERNEL"]]}
    profile = import_traces([database(tmp_path, old, layout)])
    assert int(profile.tree.exclusive("gpu_time").sum.sum()) == 33_000
    assert not profile.tree.exclusive("grid_blocks").count.any()


def test_what_is_no_export_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.sqlite") as made:
        made.execute("create table cats (name)")
    with pytest.raises(TraceError, match="holds no CUDA call, kernel, NVTX range or CPU sample"):
        import_traces([tmp_path / "other.sqlite"])
    whole = database(tmp_path, rows()).read_bytes()
    (tmp_path / "cut.sqlite").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TraceError, match="cannot be read as SQLite"):
        import_traces([tmp_path / "cut.sqlite"])


# ---------------------------------------------------------------------- threads

THREADS = {
    **LAYOUT,
    "SCHED_EVENTS": "start, cpu, isSchedIn, globalTid, threadState",
    "ENUM_SAMPLING_THREAD_STATE": "id, name, label",
    "OSRT_API": "start, end, globalTid, nameId",
    "COMPOSITE_EVENTS": "id, start, cpu, threadState, globalTid",
    "SAMPLING_CALLCHAINS": "id, symbol, module, kernelMode, unresolved, originalIP, stackDepth",
}
READY, WAITS = 1, 2


def thread_rows() -> dict[str, list[tuple[Any, ...]]]:
    """The main thread waits in poll from 20 to 30 µs, and from 50 to 60 µs another program has its CPU."""
    main, other = packed(PID, PID), packed(999, 999)
    names = [*NAMES, "poll", "inner", "outer", "libx.so", "cc1plus"]
    return {
        **rows(),
        "StringIds": list(enumerate(names)),
        "ThreadNames": [(0, main), (10, other)],
        "ENUM_SAMPLING_THREAD_STATE": [(READY, "R", "Ready"), (WAITS, "W", "Waiting")],
        "SCHED_EVENTS": [
            (1_000, 3, 1, main, None),
            (20_000, 3, 0, main, WAITS),
            (30_000, 3, 1, main, None),
            (50_000, 3, 0, main, READY),
            (50_100, 3, 1, other, None),
            (60_000, 3, 0, other, READY),
            (60_000, 3, 1, main, None),
        ],
        "OSRT_API": [(19_000, 31_000, main, 6)],
        "COMPOSITE_EVENTS": [(1, 5_000, 3, 0, main), (2, 7_000, 3, 0, main), (3, 9_000, 3, 0, main)],
        "SAMPLING_CALLCHAINS": [
            *[(number, 7, 9, 0, 0, 1, 0) for number in (1, 2, 3)],
            *[(number, 8, 9, 0, 0, 2, 1) for number in (1, 2, 3)],
        ],
    }


def test_threads_wait_for_what_the_export_says(tmp_path: Path) -> None:
    profile = import_traces([database(tmp_path, thread_rows(), THREADS)])
    states = states_of(profile).of(PID)
    found = [
        (state, took, states.names.get(other, ""), reason)
        for state, took, other, reason in zip(
            states.columns()["state"], states.duration_ns.tolist(), states.other.tolist(), states.reason, strict=True
        )
        if state in ("blocked", "runnable")
    ]
    assert found == [("blocked", 10_000, "idle", "poll"), ("runnable", 9_900, "cc1plus", "")]
    assert profile.meta["kernel"]["source"] == "Nsight Systems"


def test_samples_stand_below_their_thread(tmp_path: Path) -> None:
    profile = import_traces([database(tmp_path, thread_rows(), THREADS)])
    assert not contradictions(profile)
    sampled = profile.tree.exclusive("cpu_sample")
    (row,) = np.flatnonzero(sampled.sum)
    frames = [int(profile.tree.frame_of[at]) for at in (row, profile.tree.parent[row])]
    assert [profile.tree.text("name", frame) for frame in frames] == ["inner", "outer"]
    assert int(sampled.sum[row]) == 3 * 2_000, "three samples, 2 µs apart"


def test_an_export_without_states_says_so(tmp_path: Path) -> None:
    drawn = thread_rows()
    drawn["SCHED_EVENTS"] = [row[:4] for row in drawn["SCHED_EVENTS"]]
    layout = {**THREADS, "SCHED_EVENTS": "start, cpu, isSchedIn, globalTid"}
    profile = import_traces([database(tmp_path, drawn, layout)])
    assert any("preemption is not recorded" in loss.detail for loss in profile.losses)
