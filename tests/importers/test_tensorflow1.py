"""What TensorFlow 1's tracing writes: full traces, Chrome traces made of them, and verbose logs of the executor.

`recorded/` has one call of a graph by two releases in each form (`record_tf1.py`), and beside them what TensorFlow's own
protos say of its nodes, so that TensorFlow is not needed here.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from tests.truth.invariants import contradictions

from leadline.cli.files import open_profile
from leadline.profiles import Profile
from leadline.trace.importers import import_traces, recognised
from leadline.trace.protobuf import bytes_field, fixed64_field, present_field, text_field
from leadline.trace.statistics import statistics
from leadline.trace.tables import TraceError
from leadline.trace.tensors import tensors

RECORDED = Path(__file__).parent / "recorded"
RELEASES = ("tensorflow-2.18.1", "tensorflow-2.21.0")
FORMS = ("run_metadata.pb", "timeline.json", "log")


def told(release: str) -> list[tuple[str, str, int, int, int]]:
    """Device, name, start, duration and when it was put into the queue, in nanoseconds, by TensorFlow's own protos."""
    return [tuple(node) for node in json.loads(gzip.decompress((RECORDED / f"{release}.nodes.json.gz").read_bytes()))]


def opened(release: str, form: str) -> Profile:
    profile = open_profile(str(RECORDED / f"{release}.{form}.gz"))
    assert contradictions(profile) == []
    return profile


def nodes(profile: Profile) -> list[tuple[str, int, int]]:
    """Name, start and duration of every node of the last call."""
    events, tree = profile.events, profile.tree
    found = []
    last = int(events["correlation"].max())
    for row in range(len(events["start_ns"])):
        if int(events["correlation"][row]) == last:
            detail = json.loads(tree.text("detail", int(tree.frame_of[events["node"][row]])))
            found.append((detail["node"], int(events["start_ns"][row]), int(events["duration_ns"][row])))
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_nodes_and_times_of_a_full_trace_are_those_of_tensorflows_own_protos(release: str) -> None:
    first = min(start for _, _, start, *_ in told(release))
    theirs = sorted((name, start - first, lasted) for _, name, start, lasted, _ in told(release))
    profile = opened(release, "run_metadata.pb")
    assert sorted(nodes(profile)) == theirs
    queued = {row.name: row.duration for row in statistics(profile, "stage") if "executor's queue" in row.name}
    # 2.18.1 tells these moments by another clock, which counts cycles
    waited = [start - scheduled for _, _, start, _, scheduled in told(release) if scheduled <= start]
    assert len(waited) == (0 if release == "tensorflow-2.18.1" else len(theirs))
    assert sum(one.total for one in queued.values()) == sum(waited)
    assert sum(one.count for one in queued.values()) == len(waited)


@pytest.mark.parametrize("release", RELEASES)
def test_a_chrome_trace_has_the_same_nodes_in_whole_microseconds(release: str) -> None:
    ours = Counter(name for name, *_ in nodes(opened(release, "timeline.json")))
    assert ours == Counter(name for _, name, *_ in told(release))
    lasted = sum(took for *_, took in nodes(opened(release, "timeline.json")))
    theirs = [took for *_, took, _ in told(release)]
    assert abs(lasted - sum(theirs)) <= 1_000 * len(theirs)


@pytest.mark.parametrize("release", RELEASES)
def test_a_log_of_the_executor_has_each_node_of_the_last_call_once_and_dead_ones_never(release: str) -> None:
    profile = opened(release, "log")
    assert Counter(name for name, *_ in nodes(profile)) == Counter(name for _, name, *_ in told(release))
    assert profile.losses == []
    # of the condition's sides one ran; the constants' folding and the initializer are calls of their own
    assert not list(profile.tree.find(kind="operator", name="Exp"))
    assert len(set(profile.events["correlation"].tolist())) == 3


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("release", RELEASES)
def test_nodes_stand_in_their_scopes_and_waited_for_their_inputs(release: str, form: str) -> None:
    profile = opened(release, form)
    paths = {"/".join(one.name for one in node.path()[3:]) for node in profile.tree.find(kind="operator")}
    assert {"tower/up/MatMul", "loop/body/_1/AddV2"} & paths
    assert any(path.endswith("/backward/MatMul") for path in paths)
    found, events, tree = profile.window.edges, profile.events, profile.tree
    name = [json.loads(tree.text("detail", int(tree.frame_of[row])))["node"] for row in events["node"].tolist()]
    pairs = {(name[one], name[other]) for one, other in zip(found["source"], found["target"], strict=True)}
    assert ("tower/up/product", "tower/up/Relu") in pairs
    end = events["start_ns"] + events["duration_ns"]
    late = end[found["source"]] - events["start_ns"][found["target"]]
    assert int(late.max()) < 30_000  # a node's outputs are handed on before its last bookkeeping


def test_logs_of_two_processes_tell_which_tensor_each_waited_for(tmp_path: Path) -> None:
    for task in (0, 1):
        packed = RECORDED / f"tensorflow-2.21.0.worker-{task}.log.gz"
        (tmp_path / f"worker-{task}.log").write_bytes(gzip.decompress(packed.read_bytes()))
    profile = import_traces([tmp_path / "worker-0.log", tmp_path / "worker-1.log"])
    assert contradictions(profile) == []
    found, alone = tensors(profile)
    assert [(one.name, one.sender, one.receiver) for one in found] == [
        ("edge_3_front/Tanh", 0, 1),
        ("edge_7_back/Sum", 1, 0),
    ] * 2
    assert alone == 0
    assert all(one.on_the_way_ns > 0 for one in found)
    assert profile.window.edges["kind"].tolist().count("tensor") == 4
    requests = [node.exclusive("wait_time").count for node in profile.tree.find(kind="api", name="RecvTensor")]
    assert requests == [2, 2]  # of each process in both calls


def metadata(debug: bytes = b"") -> bytes:
    """A kernel on a stream of a GPU, told for the stream and again for all of them, and what launched it."""

    def node(name: str, start_us: int, lasted_us: int, label: str, scheduled_us: int = 0, thread: int = 0) -> bytes:
        made = text_field(1, name) + present_field(2, start_us) + present_field(5, lasted_us) + text_field(8, label)
        return bytes_field(2, made + present_field(9, scheduled_us) + present_field(10, thread))

    def device(name: str, *inside: bytes) -> bytes:
        return bytes_field(1, text_field(1, name) + b"".join(inside))

    kernel = node("tower/MatMul:MatMul", 1_200, 300, "gemm")
    launch = [
        node("x", 900, 10, "x = _Arg()", 890, 7),
        node("tower/MatMul", 1_000, 100, "tower/MatMul = MatMul(x:0, ^x)", 950, 7),
    ]
    names = bytes_field(3, present_field(1, 7) + text_field(2, "worker"))
    steps = device("/job:localhost/replica:0/task:0/device:GPU:0", *launch, names)
    steps += device("/device:GPU:0/stream:all", kernel) + device("/device:GPU:0/stream:22", kernel)
    return bytes_field(1, steps) + (bytes_field(3, debug) if debug else b"")


def debug() -> bytes:
    """The lines of the product, by numbers as newer releases have them."""
    frames = [("/home/me/train.py", 40, "main"), ("/x/tensorflow/python/ops/math.py", 9, "matmul")]
    frames.insert(1, ("/home/me/model.py", 12, "layer"))
    files = b"".join(text_field(1, file) for file, *_ in frames)
    held = b""
    for place, (_, line, function) in enumerate(frames):
        frame = present_field(1, place) + present_field(2, line) + text_field(4, function)
        held += bytes_field(4, fixed64_field(1, 2**63 + place) + bytes_field(2, frame))
    stack = bytes_field(2, b"".join((2**63 + place).to_bytes(8, "little") for place in range(3)))
    held += bytes_field(6, fixed64_field(1, 5) + bytes_field(2, stack))
    held += bytes_field(5, text_field(1, "tower/MatMul@f") + fixed64_field(2, 5))
    return bytes_field(5, files + held)


def test_work_of_a_gpu_counts_once_and_nodes_have_the_lines_that_made_them(tmp_path: Path) -> None:
    path = tmp_path / "told"  # known by what it holds
    path.write_bytes(metadata(debug()))
    profile = import_traces([path])
    assert contradictions(profile) == []
    assert int(profile.tree.exclusive("gpu_time").sum.sum()) == 300_000
    [kernel] = profile.tree.find(kind="kernel")
    frames = [(one.name, one.line) for one in kernel.path()[2:]]
    assert frames == [("main", 40), ("layer", 12), ("tower", 0), ("MatMul", 0), ("tower/MatMul:MatMul", 0)]
    assert [thread.name for thread in profile.threads] == ["GPU:0 worker"]
    [waited] = [row for row in statistics(profile, "stage") if row.name.startswith("MatMul: in the executor's queue")]
    assert waited.duration.total == 50_000
    assert len(profile.window.edges["source"]) == 1


def test_the_statistics_of_a_step_alone_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "step_stats.pb"
    whole = metadata()
    path.write_bytes(whole[3:] if whole[2] < 0x80 and whole[1] >= 0x80 else whole[2:])
    assert len(import_traces([path]).events["start_ns"]) == 3


def test_a_log_without_nodes_says_how_to_get_them(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text("hello\n2026-11-26 11:50:54.326286: I tensorflow/core/platform/cpu.cc:210] This binary is quick\n")
    assert recognised(path)
    with pytest.raises(TraceError, match="TF_CPP_VMODULE=executor=2"):
        import_traces([path])
