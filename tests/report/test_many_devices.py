"""Devices are told apart by their index, MFU counts all that worked, and a report's memory grows with nodes alone."""

from __future__ import annotations

import tracemalloc

import pytest

from leadline.analysis.devicerates import Rate
from leadline.analysis.efficiency import efficiency
from leadline.profiles.build import build
from leadline.profiles.merge import merge_profiles
from leadline.profiles.profile import Profile
from leadline.profiles.rollup import nearest
from leadline.report import ReportOptions, build_report
from leadline.report.text import render_text
from leadline.report.training.build import build_summary
from leadline.report.training.markdown import render
from leadline.steps import of_tree

GIB = 1 << 30


def rank(number: int, operators: int) -> Profile:
    lines = [f"process train.py | pid={100 + number} rank={number}", "  thread main"]
    for i in range(operators):
        lines += [
            f"    python f{i} @ train.py:{i + 1}",
            f"      operator aten::op{i} | time=5,7 call_time=9,9 alloc_bytes=64 peak_live_bytes@0=64",
            f"        kernel k{i} | gpu_time@0:7=100,120",
        ]
    return build("\n".join(lines))


def peak_of_a_report(ranks: int, operators: int) -> float:
    """Bytes for each node."""
    profile = merge_profiles([rank(number, operators) for number in range(ranks)])
    tracemalloc.start()
    try:
        render_text(build_report(profile, ReportOptions()))
        return tracemalloc.get_traced_memory()[1] / len(profile.tree)
    finally:
        tracemalloc.stop()


def test_memory_of_a_report_grows_with_nodes_not_with_devices_times_nodes():
    few, many = peak_of_a_report(8, 40), peak_of_a_report(64, 40)
    assert many < 1.5 * few


def test_metrics_that_a_profile_lacks_take_no_memory():
    tree = merge_profiles([rank(number, 40) for number in range(8)]).tree
    tracemalloc.start()
    try:
        for metric in ("bank_conflicts", "global_sectors", "l2_time", "page_faults"):
            assert not tree.exclusive(metric).count.any()
            assert not tree.inclusive(metric).sum.any()
        assert tracemalloc.get_traced_memory()[0] < 8 * len(tree)
    finally:
        tracemalloc.stop()


def two_devices(counted: tuple[int, int], peaks: tuple[int, int] = (1, 1)) -> Profile:
    """A process with two H100s that held `peaks` GiB; steps of 1 ms with `counted` products of 2e11 operations."""
    lines = "".join(
        f"    python f{i} @ train.py:{i + 1}\n"
        f"      operator aten::mm{i} | time=5 peak_live_bytes@{i}={held * GIB}\n"
        f"        kernel gemm | gpu_time@{i}:7=900000/{count}\n"
        for i, (count, held) in enumerate(zip(counted, peaks, strict=True))
    )
    profile = build(f"process train.py | pid=1\n  thread main\n{lines}")
    for device in (0, 1):
        profile.tables["devices"]["index"][device] = device
        profile.tables["devices"]["name"][device] = profile.tables["devices"]["name"][0]
    return profile


def test_two_devices_of_one_model_are_two():
    summary = build_summary(two_devices((1, 1), (20, 2)), {}, [], "x.leadline")
    assert [held for _, held in summary.peaks] == [20 * GIB, 2 * GIB]
    assert len({name for name, _ in summary.peaks}) == 2
    text = render(summary)
    assert "(device 0)" in text
    assert "(device 1)" in text
    assert "100 %" in text
    assert "1000" not in text


def counted(devices: int, share: float = 0.7) -> Profile:
    """Each of `devices` H100s of one process does `share` of its bfloat16 peak (989.4 TFLOP/s) in steps of 1 ms."""
    size = round((989.4e9 * share / 2 / 4096) ** 0.5)
    detail = f'detail={{"shapes":[[{size},4096],[4096,{size}]],"dtypes":["c10::BFloat16","c10::BFloat16"]}}'
    lines = "".join(
        f"    operator aten::mm | time=5/1 call_time=5/1 {detail}\n      kernel gemm | gpu_time@{device}:7=900000/1\n"
        for device in range(devices)
    )
    return build(f"process train.py | pid=1\n  thread main\n{lines}")


@pytest.fixture
def peak(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn devices have no model of which the peak is known."""
    rate = Rate(989.4e12, "the data sheet of an H100 SXM, bfloat16, dense")
    monkeypatch.setattr("leadline.analysis.efficiency.peak_rate", lambda device, precision: rate)


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_mfu_is_of_all_devices_that_worked(devices, peak):
    found = efficiency(counted(devices), {"steps": 1, "steps_sum_ns": 1_000_000})
    assert found is not None
    assert (found.devices, found.implausible) == (devices, "")
    assert found.mfu == pytest.approx(0.7, rel=0.01)


def test_more_than_a_device_can_do_is_no_mfu(peak):
    found = efficiency(counted(2, 1.4), {"steps": 1, "steps_sum_ns": 1_000_000})
    assert found is not None
    assert (found.mfu, found.hfu) == (None, None)
    assert "140 % of what 2 devices can do" in found.implausible


def test_steps_of_many_processes_are_counted_in_one_pass_over_the_tree(monkeypatch):
    def passes(ranks: int) -> int:
        profile = merge_profiles([rank(number, 5) for number in range(ranks)])
        made = 0

        def counting(shape, wanted):
            nonlocal made
            made += 1
            return nearest(shape, wanted)

        with monkeypatch.context() as patched:
            patched.setattr(of_tree, "nearest", counting)
            list(of_tree.counted(profile))
        return made

    assert passes(32) == passes(4)
