"""`.xplane.pb` files drawn by hand, and small ones that the profilers of JAX and TensorFlow wrote."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.importers.hlo_files import Operation, module
from tests.importers.xspace_files import Line, Plane, space
from tests.truth.invariants import contradictions

from leadline.cli.files import open_profile
from leadline.profiles import Profile
from leadline.trace.importers import import_traces, recognised
from leadline.trace.tables import TraceError

STACK = (("/home/me/train.py", "<module>", 40), ("/home/me/train.py", "step", 20), ("/home/me/train.py", "loss", 12))
LAUNCH = {"kernel_details": "regs:32 static_shared:0 dynamic_shared:48 grid:2,2,1 block:128,1,1 occ_pct:50"}
PROGRAM = module(
    "jit_step",
    7,
    {
        "main": [Operation("fusion.1", "fusion", calls="fused"), Operation("while.2", "while")],
        "fused": [
            Operation("mul.3", "multiply", "jit(step)/jvp(head)/mul", STACK, 300),
            Operation("tanh.4", "tanh", "jit(step)/transpose(jvp(head))/tanh", (*STACK[:2], ("/home/me/train.py", "act", 15)), 100),
        ],
    },
)


def gpu() -> bytes:
    """Two steps of a program on one GPU, with the lines that viewers derive beside the streams."""
    calls = [(f"cuLaunchKernel{n}", 1_000 * n + 200, 50, {"correlation_id": 10 + n}) for n in (1, 2)]
    steps = [("train", 1_000 * n, 900, {"step_num": n, "_r": 1}) for n in (1, 2)]
    runs = [("PjitFunction(step)", 1_000 * n + 100, 500, {}) for n in (1, 2)]
    told = {"hlo_op": "fusion.1", "hlo_module": "jit_step", "program_id": 7, **LAUNCH}
    kernels = [("loop_fusion", 1_000 * n + 300, 400, {"correlation_id": 10 + n, **told}) for n in (1, 2)]
    copy = {"memcpy_details": "kind_src:pinned kind_dst:device size:4096 dest:0 async:1", "correlation_id": 99}
    device = Plane(
        "/device:GPU:0",
        [
            Line("Stream #13(Kernel)", kernels, 13),
            Line("Stream #14(MemcpyH2D)", [("MemcpyH2D", 2_900, 50, copy)], 14),
            Line("XLA Modules", [("jit_step(7)", 1_300, 1_400, {"run_id": 5})], 15),
            Line("XLA Ops", [("fusion.1", 1_300, 400, {})], 16),
        ],
        {"gpu_device_name": "H100", "memory_size": 80 << 30, "core_count": 132, "compute_cap_major": 9, "compute_cap_minor": 0},
    )
    host = Plane("/host:CPU", [Line("python3/77", [*steps, *runs, *calls], 77)])
    programs = Plane("/host:metadata", programs={"jit_step(7)": (7, PROGRAM)})
    environment = Plane("Task Environment", stats={"profile_start_time": 10**18, "profile_stop_time": 10**18 + 5_000})
    return space(host, device, programs, environment, errors=("a buffer was full",))


@pytest.fixture
def opened(tmp_path: Path) -> Profile:
    return made(tmp_path, gpu())


def made(folder: Path, data: bytes) -> Profile:
    path = folder / "host.xplane.pb"
    path.write_bytes(data)
    assert recognised(path)
    profile = import_traces([path])
    assert contradictions(profile) == []
    return profile


def paths(profile: Profile, kind: str) -> dict[tuple[str, ...], int]:
    """Paths below the thread or process of all nodes of a kind, with their number of measurements."""
    tree = profile.tree
    return {
        tuple(str(one.name) for one in node.path())[2:]: node.row for node in tree.find(kind=kind)
    }


def test_a_kernel_stands_on_the_lines_that_its_fusion_was_made_from(opened: Profile) -> None:
    found = {path[1:]: row for path, row in paths(opened, "kernel").items()}
    forward = ("jit(step)", "forward", "<module>", "step", "loss", "head", "mul", "loop_fusion")
    backward = ("jit(step)", "forward", "<module>", "step", "act", "head", "backward", "tanh", "loop_fusion")
    assert set(found) == {forward, backward}
    times = opened.tree.exclusive("gpu_time")
    assert int(times.sum[found[forward]]) + int(times.sum[found[backward]]) == 800
    assert min(int(times.sum[found[forward]]), int(times.sum[found[backward]])) > 0
    assert int(times.count[found[forward]]) == 2
    latency = opened.tree.exclusive("launch_latency")
    assert int(latency.sum[found[forward]]) + int(latency.sum[found[backward]]) == 200


def test_device_copy_shapes_steps_and_clock_are_read(opened: Profile) -> None:
    [device] = opened.devices
    assert (device.name, device.memory_bytes) == ("H100", 80 << 30)
    tree = opened.tree
    assert int(tree.exclusive("copy_bytes").sum.sum()) == 4096
    assert set(tree.exclusive("registers").max.tolist()) >= {32}
    assert set(tree.exclusive("grid_blocks").max.tolist()) >= {4}
    assert opened.meta["started_at_ns"] == 10**18
    assert sorted(set(opened.tables["events"]["step"].tolist())) == [-1, 1, 2]
    losses = {(str(loss.kind), loss.detail): loss.count for loss in opened.losses}
    assert losses["gpu_record_unattributed", "The trace does not hold its launch."] == 1  # the copy
    assert losses["events_dropped", "the profiler says: a buffer was full"] == 1
