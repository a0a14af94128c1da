"""Operators, modules, phases, time split and devices against numbers worked out by hand."""

from __future__ import annotations

import json
import math

import pytest
from drawings import training

from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder
from leadline.report import ReportOptions, build_report
from leadline.report.model import Busy, Distribution, ModuleRow


def test_operator_statistics_are_those_of_all_its_calls():
    report = build_report(
        build("""
        python main @ /a/t.py:1
          operator aten::mm | call_time=10,30 time=8,20
        python other @ /a/t.py:2
          operator aten::mm | call_time=80 time=80
            operator aten::mm | call_time=5 time=5
        """)
    )
    (row,) = report.operators
    assert (row.name, row.count) == ("aten::mm", 4)
    values = [10, 30, 80, 5]
    mean = sum(values) / 4
    std = math.sqrt(sum((value - mean) ** 2 for value in values) / 4)
    assert (row.time.sum, row.time.self, row.time.min, row.time.max) == (125, 113, 5, 80)
    assert row.time.mean == mean
    assert math.isclose(row.time.std, std)


def test_device_time_and_memory_go_to_the_nearest_operator():
    report = build_report(
        build("""
        operator aten::linear | call_time=9 time=1
          operator aten::addmm | call_time=8 time=8 alloc_bytes=64
            api cudaLaunchKernel
              kernel gemm | gpu_time@0:7=100
        """)
    )
    assert {row.name: (row.gpu_time_ns, row.alloc_bytes) for row in report.operators} == {
        "aten::addmm": (100, 64),
        "aten::linear": (0, 0),
    }


def test_modules_hold_their_submodules_and_the_backward_of_their_forward():
    rows = {row.name: row for row in build_report(training()).modules}
    assert rows["model"] == ModuleRow("model", "GPT", 4_200_000, 0, 2_600_000, 1_600_000, 0, 16384)
    assert rows["model.h.0"] == ModuleRow("model.h.0", "Block", 2_700_000, 2_700_000, 1_100_000, 1_600_000, 0, 12288)
    assert rows["model.h.1"].backward_ns == 0
    merged = {row.name: row for row in build_report(training(), ReportOptions(merge_layers=True)).modules}
    assert merged["model.h.*"].time_ns == 4_200_000
    assert merged["model.h.*"].modules == 2


def test_a_module_that_calls_itself_is_counted_once():
    report = build_report(
        build("""
        module tree [Tree]
          operator a | time=1
          module tree [Tree]
            operator a | time=2
            module tree.leaf [Leaf]
              operator a | time=4
        """)
    )
    assert {row.name: (row.time_ns, row.self_ns) for row in report.modules} == {"tree": (7, 3), "tree.leaf": (4, 4)}


def test_phases_add_up_to_the_whole():
    report = build_report(training())
    assert {row.name: row.time_ns for row in report.phases} == {
        "forward": 2_600_000,
        "backward": 1_600_000,
        "optimizer": 500_000,
        "data loading": 300_000,
    }
    assert build_report(build("operator a | time=1")).phases == ()


def test_memory_peaks_are_kept_apart_by_device():
    report = build_report(
        build("""
        python main @ /a/t.py:1
          operator aten::empty | alloc_bytes=100 peak_live_bytes=60
          operator aten::zeros | alloc_bytes@0=900 free_bytes@0=300 peak_live_bytes@0=700
        """)
    )
    assert report.memory is not None
    assert (report.memory.allocated_bytes, report.memory.freed_bytes) == (1000, 300)
    assert [(peak.device, peak.peak_bytes, len(peak.holders)) for peak in report.memory.peaks] == [
        ("GPU 0 (device 0)", 700, 1),
        ("CPU", 60, 1),
    ]
    assert build_report(build("operator a | time=1")).memory is None


def test_peaks_of_different_processes_are_never_added():
    report = build_report(
        build("""
        process a | pid=1 rank=0
          thread T | tid=1
            operator aten::empty | alloc_bytes=100 peak_live_bytes=100
        process b | pid=2 rank=1
          thread T | tid=2
            operator aten::empty | alloc_bytes=100 peak_live_bytes=100
            operator aten::ones | alloc_bytes=20 peak_live_bytes=20
        """)
    )
    assert report.memory is not None
    assert [(peak.device, peak.peak_bytes) for peak in report.memory.peaks] == [
        ("CPU, rank 1", 120),
        ("CPU, rank 0", 100),
    ]
    assert [holder.values["peak_live_bytes"] for holder in report.memory.peaks[0].holders] == [100, 20]


FOCUSED = """
        python main @ /a/t.py:1
          operator aten::add | time=1000 call_time=1000 alloc_bytes=8
        python main @ /a/t.py:2
          operator aten::sub | time=1000 call_time=1000 alloc_bytes=16
            api cudaLaunchKernel
              kernel gemm | gpu_time@0:7=70
        """


def test_focus_credits_an_operator_with_its_own_work_only():
    report = build_report(build(FOCUSED), ReportOptions(focus="t.py:1$"))
    assert [(row.name, row.time.self, row.gpu_time_ns, row.alloc_bytes) for row in report.operators] == [
        ("aten::add", 1000, 0, 8)
    ]
    assert report.totals["time"].sum == 1000


def test_focus_below_an_operator_shows_whose_work_was_found():
    report = build_report(build(FOCUSED), ReportOptions(focus="gemm"))
    assert [(row.name, row.count, row.time.self, row.gpu_time_ns, row.alloc_bytes) for row in report.operators] == [
        ("aten::sub", 0, 0, 70, 0)
    ]


def test_a_device_tells_kernels_from_copies_and_idle():
    report = build_report(
        build("""
        operator aten::mm | time=1 gpu_idle_time@0=40
          kernel gemm | gpu_time@0:7=100,200
          collective ncclAllReduce | gpu_time@0:8=50
          copy HtoD | gpu_time@0:7=30 copy_bytes@0:7=4096
          api cudaDeviceSynchronize | sync_time=70
        """)
    )
    assert report.gpu is not None
    (device,) = report.gpu.devices
    assert (device.work_ns, device.kernels_ns, device.copies_ns, device.idle_ns) == (380, 350, 30, 40)
    assert (device.launches, device.copy_bytes, device.busy, report.gpu.sync_ns) == (3, 4096, None, 70)
    assert [(row.name, row.kind, row.count) for row in report.gpu.kernels] == [
        ("gemm", "kernel", 2),
        ("ncclAllReduce", "collective", 1),
        ("HtoD", "copy", 1),
    ]
    assert report.gpu.kernels[0].gpu_time == Distribution(300, 300, 100, 200, 150.0, 50.0)


UNIONS = {
    "busy_ns": 90, "idle_ns": 10, "compute_ns": 70, "copy_ns": 20, "communication_ns": 40,
    "copy_under_compute_ns": 5, "communication_under_compute_ns": 30,
}  # fmt: skip


@pytest.mark.parametrize(
    ("detail", "busy"),
    [
        (UNIONS, Busy(90, 10, 70, 20, 40, 5, 30)),
        ({**UNIONS, "busy_ns": "much"}, None),
        ({**UNIONS, "copy_ns": -1}, None),
        ({"compute_capability": "9.0"}, None),
    ],
)
def test_overlap_comes_from_the_device_record(detail, busy):
    builder = ProfileBuilder()
    process = builder.process("train.py")
    node = builder.node_of_thread(builder.thread(process, "t"))
    row = builder.device(process, 0, "H200", detail=json.dumps(detail))
    builder.add(builder.child(node, builder.frame("kernel", "gemm")), "gpu_time", 130, device=row, stream=7)
    report = build_report(builder.profile())
    assert report.gpu is not None
    assert report.gpu.devices[0].name == "H200 (device 0)"
    assert report.gpu.devices[0].busy == busy


def test_the_main_thread_is_the_one_with_the_id_of_the_process_else_the_longest():
    report = build_report(
        build("""
        process a | pid=5
          thread worker | tid=6 wall_ns=900 operator_ns=800
          thread main | tid=5 wall_ns=1000
        process b | pid=7
          thread x | tid=8 wall_ns=10
          thread y | tid=9 wall_ns=20
        """)
    )
    assert [(row.thread, row.main) for row in report.splits] == [("main", True), ("worker", False), ("y", True)]


def test_processes_of_two_containers_with_one_pid_are_told_apart():
    one = """
        process {name} | pid=7 start_ns={start}
          thread main | tid=7 wall_ns=1000 operator_ns=500
            operator aten::empty | time=500 alloc_bytes=8 peak_live_bytes=8
    """
    report = build_report(build(one.format(name="a", start=1) + one.format(name="b", start=2)))
    assert [split.process for split in report.splits] == ["process 7", "process 7 (2)"]
    assert report.memory is not None
    assert [peak.device for peak in report.memory.peaks] == ["CPU, process 7", "CPU, process 7 (2)"]
