"""Operations of several devices, of a TPU's sparse cores and of GPUs: what each waited for, and steps that all tell."""

from __future__ import annotations

from pathlib import Path

from tests.importers.hlo_files import Operation, module
from tests.importers.xspace_files import Line, Plane, Stat, space
from tests.truth.invariants import contradictions

from leadline.cli.files import open_profile
from leadline.profiles import Profile
from leadline.steps.of_events import find_steps
from leadline.trace.profile_window import read_profile

STACK = (("/home/me/train.py", "<module>", 40), ("/home/me/train.py", "loss", 12))
PROGRAM = module(
    "jit_step",
    7,
    {
        "main": [
            Operation("dot.1", "dot", "jit(step)/dot_general", STACK),
            Operation("tanh.2", "tanh", "jit(step)/tanh", STACK, operands=("dot.1",)),
            Operation("gather.3", "gather", "jit(step)/gather", STACK, operands=("tanh.2",)),
            Operation("add.4", "add", "jit(step)/add", STACK, operands=("gather.3", "dot.1")),
        ]
    },
)
EDGES = {("dot.1", "tanh.2"), ("tanh.2", "gather.3"), ("gather.3", "add.4"), ("dot.1", "add.4")}
PROGRAMS = Plane("/host:metadata", programs={"jit_step(7)": (7, PROGRAM)})
Events = list[tuple[str, int, int, dict[str, Stat]]]


def made(folder: Path, *planes: Plane) -> Profile:
    path = folder / "host.xplane.pb"
    path.write_bytes(space(*planes, PROGRAMS))
    profile = open_profile(str(path))
    assert contradictions(profile) == []
    return profile


def edges(profile: Profile, kind: str = "compiled") -> list[tuple[str, str, int, int]]:
    """Names of both ends and when these began."""
    found, events, tree = profile.window.edges, profile.events, profile.tree

    def name(row: int) -> str:
        """Of an operation on a device that of its work, which is drawn with the operation's own."""
        frame = int(tree.frame_of[events["node"][row]])
        detail = tree.text("detail", frame)
        return detail.partition('"hlo": "')[2].partition('"')[0] or tree.text("name", frame)

    rows = [row for row, one in enumerate(found["kind"].tolist()) if one == kind]
    ends = [(int(found["source"][row]), int(found["target"][row])) for row in rows]
    starts = events["start_ns"].tolist()
    return sorted((name(one), name(other), starts[one], starts[other]) for one, other in ends)


def test_operations_of_two_devices_wait_for_those_of_their_own_and_both_for_the_call(tmp_path: Path) -> None:
    events: Events = []
    for run, begin in enumerate((1_000, 3_000)):
        for device in (0, 1):
            told: dict[str, Stat] = {"program_id": 7, "run_id": run + 40, "device_ordinal": device}
            for at, name in enumerate(("dot.1", "tanh.2", "gather.3", "add.4")):
                events.append((name, begin + 200 * at + 50 * device, 40, {"hlo_op": name, **told}))
    calls: Events = [("PjitFunction(step)", 900, 100, {}), ("PjitFunction(step)", 2_900, 100, {})]
    lines = [Line("python", calls, 5), Line("tf_XLAEigen/9", sorted(events, key=lambda event: event[1]), 9)]
    profile = made(tmp_path, Plane("/host:CPU", lines))
    found = edges(profile)
    assert len(found) == 4 * len(EDGES)
    assert {(one, other) for one, other, *_ in found} == EDGES
    assert all((start - end) % 200 == 0 for *_, start, end in found)  # those of the other device are 50 apart
    launched = edges(profile, "launch")
    assert [(call, name, begin) for call, name, begin, _ in launched] == [
        ("jit(step)", "dot.1", begin) for begin in (900, 900, 2_900, 2_900)
    ]


def tpu(device: int, shift: int, steps: int = 2) -> list[Plane]:
    """A TPU with a sparse core that gathers: its operations are on a plane of their own."""
    ops: Events = []
    sparse: Events = []
    for step in range(steps):
        begin = 1_000 * (step + 1) + shift
        ops += [("dot.1", begin, 100, {}), ("tanh.2", begin + 100, 100, {}), ("add.4", begin + 500, 100, {})]
        sparse.append(("gather.3", begin + 250, 200, {}))
    modules: Events = [("jit_step(7)", 1_000 * (step + 1) + shift, 600, {"run_id": step}) for step in range(steps)]
    handed: Events = [("sc_offload(0)", start, took, {}) for _, start, took, _ in sparse]
    marks: Events = [(str(step), 1_000 * (step + 1) + shift, 900, {}) for step in range(steps)]
    return [
        Plane(
            f"/device:TPU:{device}", [Line("Steps", marks, 1), Line("XLA Modules", modules, 2), Line("XLA Ops", ops, 3)]
        ),
        Plane(
            f"/device:TPU:{device} SparseCore 0",
            [
                Line("Sparse Core Steps", marks, 1),
                Line("Sparse Core Modules", handed, 2),
                Line("Sparse Core Ops", sparse, 3),
            ],
        ),
    ]


def test_a_sparse_core_is_a_stream_of_its_device_and_works_for_the_program_that_runs_there(tmp_path: Path) -> None:
    host = Plane("/host:CPU", [Line("main/1", [("log", 100, 50, {})], 1)])
    profile = made(tmp_path, *tpu(3, 0), host)
    assert [device.name for device in profile.devices] == ["TPU:3"]
    times = profile.tree.exclusive("gpu_time")
    assert int(times.sum.sum()) == 2 * (300 + 200)
    gathers = ["/".join(one.name for one in node.path()) for node in profile.tree.find(kind="kernel", name="gather.3")]
    assert len(gathers) == 1
    assert gathers[0].endswith("jit(step)/<module>/loss/gather/gather.3")
    events = profile.events
    streams = set(events["stream"][events["device"] >= 0].tolist())
    assert len(streams) == 2
    found = edges(profile)
    assert {(one, other) for one, other, *_ in found} == EDGES
    assert len(found) == 2 * len(EDGES)


def test_steps_that_several_devices_tell_are_counted_once(tmp_path: Path) -> None:
    host = Plane("/host:CPU", [Line("main/1", [("log", 100, 50, {})], 1)])
    profile = made(tmp_path, *tpu(0, 0), *tpu(1, 30, steps=3), host)
    [trace] = read_profile(profile)
    assert [step.number for step in find_steps(trace).steps] == [0, 1, 2]
    found = edges(profile)
    assert len(found) == 5 * len(EDGES)
    # each of a device, whose operations begin 30 later than those of the other
    assert all((start - end) % 50 == 0 for *_, start, end in found)


def test_work_of_a_gpu_belongs_to_the_run_that_launched_it(tmp_path: Path) -> None:
    names = ("dot.1", "tanh.2", "gather.3", "add.4")
    calls: Events = []
    kernels: Events = []
    for run in (0, 1):
        begin = 1_000 * (run + 1)
        calls.append(("PjitFunction(step)", begin, 400, {}))
        for at, name in enumerate(names):
            number = 10 * run + at + 1
            told: dict[str, Stat] = {"correlation_id": number, "hlo_op": name, "program_id": 7, "run_id": run}
            calls.append(("cuLaunchKernel", begin + 50 * at + 10, 20, told))
            kernels.append((name, begin + 100 * at + 100, 90, told))
    host = Plane("/host:CPU", [Line("python3/77", calls, 77)])
    device = Plane("/device:GPU:0", [Line("Stream #13(Kernel)", kernels, 13)])
    profile = made(tmp_path, host, device)
    found = edges(profile)
    assert {(one, other) for one, other, *_ in found} == EDGES
    assert len(found) == 2 * len(EDGES)
    launches = edges(profile, "launch")
    assert {name for call, name, *_ in launches if call == "cuLaunchKernel"} == set(names)
    assert ("jit(step)", "dot.1", 1_000, 1_100) in launches


def test_what_if_reads_profiles_of_others_like_ours(tmp_path: Path) -> None:
    from leadline import whatif

    host = Plane("/host:CPU", [Line("main/1", [("log", 100, 50, {})], 1)])
    made(tmp_path, *tpu(0, 0), host)
    graph = whatif.load(tmp_path / "host.xplane.pb")
    assert len(graph.tasks) > 0
