"""A whole profile of a program that uses a (fake) AMD GPU under `leadline run`; and what is said where it cannot be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.amd import fake_gpu
from tests.truth.invariants import contradictions

from leadline.cli.main import main
from leadline.profiles import Profile, open_profile
from leadline.report import build_report
from leadline.schema import EventKind, LossKind


def run(tmp_path: Path, fakes: Path, *options: str, **environment: str) -> Profile:
    output = tmp_path / "out.leadline"
    status, said = fake_gpu.run_program(output, fakes, *options, **environment)
    assert status == 0, said
    return open_profile(output)


def losses(profile: Profile) -> dict[str, str]:
    """All sentences of each kind."""
    told: dict[str, str] = {}
    for loss in profile.losses:
        if loss.count > 0:
            told[str(loss.kind)] = f"{told.get(str(loss.kind), '')} {loss.detail}".strip()
    return told


@pytest.mark.parametrize("version", ["10000", "600"])
def test_kernels_hang_under_the_line_that_launched_them(tmp_path: Path, fakes: Path, version: str) -> None:
    profile = run(tmp_path, fakes, FAKE_SDK=version)
    gemm = next(node for node in profile.tree.find(kind="kernel") if node.name == "gemm(float*)")
    path = [step.name for step in gemm.path() if step.kind not in ("root", "process", "thread")]
    assert gemm.exclusive("gpu_time").count == 3 and gemm.exclusive("gpu_time").sum == 150_000
    assert path[-2:] == ["hipLaunchKernel", "gemm(float*)"] and path.index("step") < path.index("forward")
    line = gemm.parent.parent if gemm.parent is not None else None
    program = Path(fake_gpu.__file__)
    assert line is not None and Path(line.file) == program
    numbers = {
        name: gemm.exclusive(name).max
        for name in (
            "grid_blocks",
            "block_threads",
            "registers",
            "accumulation_registers",
            "scalar_registers",
            "scratch_bytes",
            "static_shared_bytes",
            "occupancy",
        )
    }
    assert numbers == {
        "grid_blocks": 304,
        "block_threads": 256,
        "registers": 128,
        "accumulation_registers": 128,
        "scalar_registers": 64,
        "scratch_bytes": 32,
        "static_shared_bytes": 16_384,
        "occupancy": 250_000,
    }  # 128 + 128 of 512 registers
    assert gemm.exclusive("launch_latency").min > 0
    copies = {node.name: node.exclusive("copy_bytes").sum for node in profile.tree.find(kind="copy")}
    assert copies == {"Memcpy HtoD (Host -> Device)": 1 << 20, "Memcpy DtoH (Device -> Host)": 4096}
    assert losses(profile) == {}
    assert contradictions(profile) == []


def test_the_device_and_its_busy_time_are_in_the_file(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes)
    (device,) = profile.devices
    assert device.name == "AMD Instinct MI300X (fake)"
    assert device.detail["architecture"] == "gfx942" and device.detail["wavefront"] == 64
    assert device.detail["busy_ns"] > 180_000
    available = profile.meta["processes"][0]["available"]["amd"]
    assert available["ok"] is True and available["version"] == "1.0.0"
    assert available["details"]["records"] == 8 and available["details"]["late"] is False
    memory = sum(node.exclusive("device_alloc_bytes").sum for node in profile.tree.walk())
    assert memory == 1 << 20


def test_parts_of_one_card_are_devices_of_their_own(tmp_path: Path, fakes: Path) -> None:
    """As an MI300 in a partition mode shows itself: two devices at one place of the bus."""
    profile = run(tmp_path, fakes, FAKE_DEVICES="2")
    assert [one.detail["partition"] for one in profile.devices] == ["1 of 2", "2 of 2"]
    busy = [one.detail.get("busy_ns", 0) for one in profile.devices]
    assert busy[0] > 0 == busy[1]  # the program uses the first


def test_scratch_memory_that_the_driver_took_is_in_the_report(tmp_path: Path, fakes: Path) -> None:
    gpu = build_report(run(tmp_path, fakes)).gpu
    assert gpu is not None
    (row,) = gpu.scratch  # taken for the queue once, at the first launch of the kernel that spills
    assert (row.name, row.thread_bytes, row.taken, row.returned) == ("gemm(float*)", 32, 1, 0)
    assert row.taken_bytes == 304 * 2048 * 32 and row.waited_ns > 0


def test_copies_between_devices_say_which_and_over_what(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes, PEER="1", FAKE_DEVICES="2")
    (copy,) = (node for node in profile.tree.find(kind="copy") if "PtoP" in node.name)
    assert copy.name == "Memcpy PtoP (Device 0 -> Device 1, xGMI)" and copy.exclusive("copy_bytes").sum == 3 << 20
    gpu = build_report(profile).gpu
    assert gpu is not None
    (row,) = gpu.links
    assert (row.source, row.target, row.link, row.copies, row.bytes) == (0, 1, "xGMI", 3, 3 << 20)
    assert row.link_bytes_s == 64e9 and row.ns == copy.exclusive("gpu_time").sum


def test_all_idle_time_is_on_the_tree(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes)
    idle = sum(node.exclusive("gpu_idle_time").sum for node in profile.tree.walk())
    assert idle == profile.devices[0].detail["idle_ns"] > 0


def test_copies_say_what_memory_and_collectives_stand_below_their_call(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes, HOST="1")
    copies = {node.name: node.exclusive("copy_bytes").sum for node in profile.tree.find(kind="copy")}
    assert copies["Memcpy HtoD (Pinned -> Device)"] == copies["Memcpy HtoD (Pageable -> Device)"] == 1000
    (collective,) = profile.tree.find(kind="collective")
    assert collective.name.startswith("ncclDevKernel_Generic") and collective.parent is not None
    assert collective.parent.name == "ncclAllReduce"
    assert losses(profile) == {} and contradictions(profile) == []


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"FAKE_SDK": "20000"}, "rocprofiler-sdk 2.0.0"),
        ({"ROCR_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": "1", "FAKE_DEVICES": "2"}, "set one of the two only"),
    ],
)
def test_bad_input_is_one_sentence_and_the_program_goes_on(
    tmp_path: Path, fakes: Path, environment: dict[str, str], words: str
) -> None:
    profile = run(tmp_path, fakes, **environment)
    assert words in losses(profile)["provider_unavailable"]


def test_an_empty_profile_says_why(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes, FAKE_BLIND="1")
    assert [*profile.tree.find(kind="kernel")] == []
    said = losses(profile)["provider_unavailable"]
    assert said.startswith("6 HIP launches were seen, but no record of a kernel came")


@pytest.mark.parametrize("blind", [False, True])
def test_two_copies_of_the_sdk_are_named_whether_kernels_come_or_not(tmp_path: Path, fakes: Path, blind: bool) -> None:
    wheel = tmp_path / "wheel"
    wheel.mkdir()
    second = wheel / "librocprofiler-sdk.so.1"
    shutil.copy2(fakes / second.name, second)
    profile = run(tmp_path, fakes, SECOND_SDK=str(second), **({"FAKE_BLIND": "1"} if blind else {}))
    said = " ".join(one.detail for one in profile.losses if one.kind == LossKind.PROVIDER_UNAVAILABLE)
    assert "wo copies of rocprofiler-sdk are in this process (" in said
    assert str(second) in said and str(fakes / second.name) in said and "emove one" in said
    assert ([*profile.tree.find(kind="kernel")] == []) is blind


def test_a_tool_that_comes_after_hip_says_so(tmp_path: Path, fakes: Path) -> None:
    """As a program that is not started with `leadline run`: the SDK takes the tool and does not see the queues."""
    import os
    import subprocess
    import sys

    output = tmp_path / "late.leadline"
    program = Path(fake_gpu.__file__).with_name("fake_program.py")
    environment = {key: value for key, value in os.environ.items() if key != "ROCP_TOOL_LIBRARIES"}
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**environment, "FAKES": str(fakes), "LD_LIBRARY_PATH": str(fakes), "LATE": str(output)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said = losses(open_profile(output))["provider_unavailable"]
    assert "after the program had loaded HIP" in said and "leadline run" in said


def test_a_tool_of_another_stays(tmp_path: Path, fakes: Path) -> None:
    from leadline.capture.providers.amd.files import TOOL_LIBRARY, TOOL_VARIABLE, tool_environment

    (alone,) = tool_environment({}).values()
    assert Path(alone).name == TOOL_LIBRARY
    both = tool_environment({TOOL_VARIABLE: "/opt/rocm/lib/rocprofiler-sdk/librocprofiler-sdk-tool.so"})[TOOL_VARIABLE]
    first, second, end = both.split(":")
    assert first.endswith("librocprofiler-sdk-tool.so") and Path(second).name == TOOL_LIBRARY and end == ""
    assert tool_environment({TOOL_VARIABLE: both}) == {}


def test_a_block_for_warps_of_32_is_found_on_its_line(tmp_path: Path, fakes: Path) -> None:
    from leadline.analysis.analyze import analyze

    found = analyze(run(tmp_path, fakes, BLOCK="32", STEPS="12"), ["block_shape"])
    (one,) = found
    assert one.title.startswith("Blocks of 32 threads leave 50 % of the wavefronts' lanes empty")
    assert one.paths and one.lines[0].function == "launch"
    assert not [*analyze(run(tmp_path, fakes, STEPS="12"), ["block_shape"])]


def test_a_trace_window_joins_kernels_with_their_calls_and_predictions_rest_on_it(
    tmp_path: Path, fakes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.leadline"
    status, said = fake_gpu.run_program(output, fakes, "--trace", "seconds=60,wait=0", STEPS="12", PAUSE="1")
    assert status == 0, said
    profile = open_profile(output)
    events = profile.table("events")
    kernel, calls = (events["kind"] == int(kind) for kind in (EventKind.KERNEL, EventKind.API))
    assert kernel.sum() == 24 and sorted(set(events["duration_ns"][kernel])) == [10_000, 50_000]
    began = dict(zip(events["correlation"][calls], events["start_ns"][calls], strict=True))
    for correlation, start in zip(events["correlation"][kernel], events["start_ns"][kernel], strict=True):
        assert 0 < start - began[correlation] < 1_000_000_000
    assert {profile.tree.node(int(row)).name for row in events["node"][kernel]} == {"gemm(float*)", "relu"}
    capsys.readouterr()
    assert main(["stats", "--by", "kernel", str(output)]) == 0
    stats = capsys.readouterr().out
    assert [line.split()[:3] for line in stats.splitlines()[1:3]] == [["12", "600", "µs"], ["12", "120", "µs"]]
    assert main(["whatif", str(output)]) == 0
    predicted = capsys.readouterr().out
    assert "faster gpu 2x" in predicted and "compute units" in predicted and "multiprocessor" not in predicted
