"""`.xplane.pb` files drawn by hand; `test_xspace_recorded.py` has what profilers wrote."""

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
from leadline.trace.statistics import statistics
from leadline.trace.tables import TraceError
from leadline.trace.tensors import tensors

STACK = (("/home/me/train.py", "<module>", 40), ("/home/me/train.py", "step", 20), ("/home/me/train.py", "loss", 12))
LAUNCH = {"kernel_details": "regs:32 static_shared:0 dynamic_shared:48 grid:2,2,1 block:128,1,1 occ_pct:50"}
PROGRAM = module(
    "jit_step",
    7,
    {
        "main": [Operation("fusion.1", "fusion", calls="fused"), Operation("while.2", "while")],
        "fused": [
            Operation("mul.3", "multiply", "jit(step)/jvp(head)/mul", STACK, 300),
            Operation(
                "tanh.4",
                "tanh",
                "jit(step)/transpose(jvp(head))/tanh",
                (*STACK[:2], ("/home/me/train.py", "act", 15)),
                100,
                operands=("mul.3",),
            ),
        ],
    },
)


def gpu() -> bytes:
    """Two steps of a program on one GPU, with the lines that viewers derive beside the streams."""
    calls = [("cuLaunchKernel", 1_000 * n + 200, 50, {"correlation_id": 10 + n}) for n in (1, 2)]
    steps = [("train", 1_000 * n, 900, {"step_num": n, "_r": 1}) for n in (1, 2)]
    runs = [("PjitFunction(step)", 1_000 * n + 100, 500, {}) for n in (1, 2)]
    told = {"hlo_op": "fusion.1", "hlo_module": "jit_step", "program_id": 7}
    calls = [(name, start, took, {**number, **told}) for name, start, took, number in calls]
    told |= LAUNCH
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
        {
            "gpu_device_name": "H100",
            "memory_size": 80 << 30,
            "core_count": 132,
            "compute_cap_major": 9,
            "compute_cap_minor": 0,
        },
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
    return {tuple(str(one.name) for one in node.path())[2:]: node.row for node in tree.find(kind=kind)}


def test_a_kernel_stands_on_the_lines_that_its_fusion_was_made_from(opened: Profile) -> None:
    found = {path[1:]: row for path, row in paths(opened, "kernel").items()}
    forward = ("jit(step)", "forward", "<module>", "step", "loss", "head", "mul", "loop_fusion")
    backward = ("jit(step)", "forward", "<module>", "step", "act", "head", "backward", "tanh", "loop_fusion")
    assert set(found) == {forward, backward}
    times = opened.tree.exclusive("gpu_time")
    assert int(times.sum[found[forward]]) + int(times.sum[found[backward]]) == 800
    assert min(int(times.sum[found[forward]]), int(times.sum[found[backward]])) > 0
    assert [int(times.count[found[one]]) for one in (forward, backward)] == [1, 1]  # of two kernels
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
    assert losses["trace_remark", "the profiler says: a buffer was full"] == 0


def tpu() -> bytes:
    """One TPU: a line of operations with a loop around those of its body, and steps that only the device knows. What an
    event executed is its name, and its program that on the line of programs; few releases tell it with each event."""
    fusion, loop = "%fusion.1 = f32[300]{0:T(256)} fusion(%p), kind=kLoop", "%while.2 = (s32[]) while(%t)"
    ops = [(loop, 1_000, 500, {}), (fusion, 1_100, 200, {}), (fusion, 1_300, 100, {})]
    steps = [("0", 900, 300, {}), ("1", 1_200, 400, {})]
    device = Plane(
        "/device:TPU:3",
        [
            Line("Steps", steps, 1),
            Line("XLA Modules", [("jit_step(7)", 1_000, 500, {"run_id": 1})], 2),
            Line("XLA Ops", ops, 3),
        ],
        shown={fusion: "fusion.1"},
        told={fusion: {"flops": 600, "hlo_category": "loop fusion"}},
    )
    host = Plane("/host:CPU", [Line("main/1", [("log", 100, 50, {})], 1)])
    return space(device, host, Plane("/host:metadata", programs={"jit_step": (7, PROGRAM)}))


def test_time_inside_a_loop_of_a_tpu_is_counted_once(tmp_path: Path) -> None:
    profile = made(tmp_path, tpu())
    times = profile.tree.exclusive("gpu_time")
    assert int(times.sum.sum()) == 500
    whole = {path[-1]: 0 for path in paths(profile, "kernel")}
    for path, row in paths(profile, "kernel").items():
        whole[path[-1]] += int(times.sum[row])
    assert whole == {"while.2": 200, "fusion.1": 300}
    assert all(path[0] == "jit(step)" for path in paths(profile, "kernel"))
    assert any("loss" in path for path in paths(profile, "kernel"))  # the ladder to the program's lines
    steps = profile.tables["events"]["step"][profile.tables["events"]["kind"] == 3]
    assert steps.tolist() == [0, 1]


def cpu(calls: int, runs: int) -> bytes:
    """A program on the threads of a pool, with numbers of runs and no flows; the last `runs` of the calls ran."""
    made = [("PjitFunction(step)", 1_000 * n, 100, {}) for n in range(1, calls + 1)]
    told = {"hlo_op": "fusion.1", "program_id": 7, "device_ordinal": 0}
    ran = [("fusion.1", 1_000 * n + 300, 200, {**told, "run_id": n}) for n in range(calls - runs + 1, calls + 1)]
    early = [] if runs <= calls else [("fusion.1", 100, 50, {**told, "run_id": 0})]
    planes = [Plane("/host:CPU", [Line("python", made, 5), Line("tf_XLAEigen/9", early + ran[-calls:], 9)])]
    return space(*planes, Plane("/host:metadata", programs={"jit_step(7)": (7, PROGRAM)}))


@pytest.mark.parametrize("runs", [3, 2])
def test_runs_of_a_pool_stand_below_the_call_of_the_program(tmp_path: Path, runs: int) -> None:
    profile = made(tmp_path, cpu(3, runs))
    below = [path for path in paths(profile, "operator") if path[-1] in ("mul", "tanh")]
    assert {path[1:3] for path in below} == {("jit(step)", "on another thread")}
    assert int(profile.tree.exclusive("time").sum.sum()) == 3 * 100 + runs * 200


def test_a_run_from_before_the_profile_began_hangs_below_no_call(tmp_path: Path) -> None:
    profile = made(tmp_path, cpu(2, 3))
    alone = [path for path in paths(profile, "operator") if path[-1] == "tanh" and "on another thread" not in path]
    assert {path[:2] for path in alone} == {("tf_XLAEigen", "jit(step)")}


def test_what_a_thread_of_a_pool_did_between_its_marks_was_asked_for_by_who_left_the_number(tmp_path: Path) -> None:
    asks = [
        ("Trace of mine", 1_000, 900, {}),
        ("ThreadpoolListener::Record", 1_500, 0, {"_pt": 15, "_p": 4}),
    ]
    does = [
        ("ThreadpoolListener::StartRegion", 1_600, 0, {"_ct": 15, "_c": 4}),
        ("scope/layer/MatMul:MatMul", 1_700, 200, {}),
        ("ThreadpoolListener::StopRegion", 2_000, 0, {}),
        ("gradient_tape/scope/MatMul:MatMul", 2_100, 100, {}),
    ]
    host = Plane("/host:CPU", [Line("python", asks, 5), Line("tf_Compute/9", does, 9)])
    found = set(paths(made(tmp_path, space(host)), "operator"))
    assert found == {
        ("main", "Trace of mine", "on another thread", "scope", "layer", "MatMul"),
        ("tf_Compute", "scope", "backward", "MatMul"),
    }


# ---------------------------------------------------------------------- files that are no good


def test_a_file_that_is_cut_off_is_one_sentence(tmp_path: Path) -> None:
    whole = gpu()
    path = tmp_path / "cut.xplane.pb"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TraceError, match=r"^cut.xplane.pb: .*cut off.*copy the whole file\.$"):
        import_traces([path])


def test_a_trace_of_perfetto_is_one_sentence_that_says_what_to_give_instead(tmp_path: Path) -> None:
    from leadline.trace.protobuf import bytes_field, present_field

    path = tmp_path / "run.pftrace"
    path.write_bytes(bytes_field(1, present_field(8, 1_000) + present_field(10, 1)) * 3)
    with pytest.raises(TraceError, match=r"run.pftrace is a trace of Perfetto.*rocprofv3 --output-format rocpd"):
        import_traces([path])


def test_a_profile_without_events_says_how_to_record_one(tmp_path: Path) -> None:
    path = tmp_path / "empty.xplane.pb"
    path.write_bytes(space(Plane("/host:CPU")))
    with pytest.raises(TraceError, match="without any event"):
        import_traces([path])


def test_damaged_files_are_a_sentence_or_a_profile_without_contradictions(tmp_path: Path) -> None:
    chance = random.Random(7)
    path = tmp_path / "damaged.xplane.pb"
    for whole in (gpu(), tpu(), cpu(3, 2)):
        for _ in range(60):
            data = bytearray(whole)
            for _ in range(chance.randrange(1, 5)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            path.write_bytes(bytes(data[: chance.choice([len(data), chance.randrange(1, len(data))])]))
            try:
                profile = import_traces([path])
            except TraceError:
                continue
            assert contradictions(profile) == []


def test_profiles_of_several_hosts_say_whose_they_are_and_claim_no_rank(tmp_path: Path) -> None:
    for name, hosts in (("worker-b_6009", ()), ("file", ("worker-a",))):
        planes = [Plane("/host:CPU", [Line("python", [("PjitFunction(step)", 1_000, 100, {})], 5)])]
        (tmp_path / f"{name}.xplane.pb").write_bytes(space(*planes, hosts=hosts))
    profile = open_profile(str(tmp_path))
    records = profile.meta["processes"]
    assert sorted(record["host"]["hostname"] for record in records) == ["worker-a", "worker-b_6009"]
    assert {record["rank"] for record in records} == {-1}


def executor(task: int, sends: list[tuple[int, int, str]], receives: list[tuple[int, int, int, str]]) -> bytes:
    """A process of TensorFlow. `sends`: step, when and the node; `receives`: step, asked when, had when and the node."""
    key = (
        f"/job:worker/replica:0/task:{task}/device:CPU:0;1;/job:worker/replica:0/task:{1 - task}/device:CPU:0;edge;0:0"
    )
    events: list[tuple[str, int, int, dict[str, int | str]]] = []
    for step, at, node in sends:
        events += [("ExecutorState::Process", at - 10, 100, {"id": step}), (f"{node}:_Send", at, 20, {"key": key})]
    for step, asked, had, node in receives:
        told: dict[str, int | str] = {"step_id": step, "name": node, "kernel_type": "_Recv"}
        events += [("ExecutorState::ProcessAsync::Start", asked, 5, told)]
        events += [("ExecutorState::ProcessAsync::Done", had, 5, told)]
    lines = [Line("python", [("main", 0, 20_000, {})], 5), Line(f"tf_Compute/{task + 8}", sorted(events), 9)]
    return space(Plane("/host:CPU", lines), hosts=(f"worker-{task}",))


def test_tensors_between_processes_are_matched_by_step_and_edge(tmp_path: Path) -> None:
    # steps come in another order than tensors arrive; the second tensor has both its ends in one process
    first = executor(
        0, [(-7, 1_000, "Relu/_1"), (9, 5_000, "Relu/_1"), (9, 6_000, "Sum/_5")], [(9, 5_500, 6_400, "Sum/_6")]
    )
    second = executor(1, [(9, 9_000, "Tanh/_3")], [(9, 4_000, 5_300, "Relu/_2"), (-7, 1_400, 1_900, "Relu/_2")])
    for task, data in enumerate((first, second)):
        (tmp_path / f"{task}.xplane.pb").write_bytes(data)
    profile = import_traces(sorted(tmp_path.glob("*.pb")))
    found, alone = tensors(profile)
    assert [(one.name, one.waited_for_sender_ns, one.on_the_way_ns) for one in found] == [
        ("Relu", 0, 500),
        ("Relu", 1_000, 300),
        ("Sum", 500, 400),
    ]
    assert alone == 1  # Tanh, which was sent to a process that is not here
    edges = profile.window.edges
    assert edges["kind"].tolist() == ["tensor"] * 3
    stages = {row.name: row.duration.total for row in statistics(profile, "stage")}
    assert stages["tensor Relu from worker-0: waited for the sender"] == 1_000
    assert stages["tensor Sum: on the way"] == 400


def test_a_folder_of_logs_stands_for_its_latest_profile(tmp_path: Path) -> None:
    for time, data in (("2026_01_01_00_00_00", cpu(3, 2)), ("2026_01_02_00_00_00", gpu())):
        place = tmp_path / "logs" / "plugins" / "profile" / time
        place.mkdir(parents=True)
        (place / "host.xplane.pb").write_bytes(data)
        (place / "host.trace.json.gz").write_bytes(b"not looked at")
    profile = open_profile(str(tmp_path / "logs"))
    assert [device.name for device in profile.devices] == ["H100"]
