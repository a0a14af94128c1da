"""`.xplane.pb` files that the profilers of JAX and TensorFlow wrote, of several releases each.

`recorded/` has the programs that were recorded (that of the GPU as text, since the profile tells its lines), and beside each file what another reader counted in it
(`count_xspace.py`), so that neither JAX nor TensorFlow is needed here.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.truth.invariants import contradictions

from leadline.cli.files import open_profile
from leadline.profiles import Profile
from leadline.trace.source import sources
from leadline.trace.statistics import statistics
from leadline.trace.xspace import read_xspace

RECORDED = Path(__file__).parent / "recorded"
JAX = ("jax-0.5.0", "jax-0.8.0", "jax-0.10.2", "jax-0.12.0.1")
GPU = "jax-0.11.2-h100"
TENSORFLOW = ("tensorflow-2.18.1", "tensorflow-2.21")


def place(name: str) -> Path:
    return RECORDED / f"{name}.xplane.pb.gz"


@pytest.mark.parametrize("name", JAX)
def test_a_profile_of_jax_has_each_operation_on_its_line(name: str) -> None:
    profile = open_profile(str(place(name)))
    assert contradictions(profile) == []
    source = (RECORDED / "record_jax.py").read_text().splitlines()
    tree = profile.tree
    products = list(tree.find(kind="operator", name="dot_general"))
    lines = {source[node.nearest("python").line - 1].strip() for node in products if node.nearest("python")}
    assert lines == {"return jnp.tanh(x @ weights)"}
    # two forward; of the gradient two for the weights and one for the input of the second layer
    assert sum(int(node.exclusive("call_time").count) for node in products) == 3 * 5
    backward = [node for node in products if "backward" in [one.name for one in node.path()]]
    assert sum(int(node.exclusive("call_time").count) for node in backward) == 3 * 3
    assert all("jit(train_step)" in [one.name for one in node.path()] for node in products)
    assert [node.exclusive("call_time").count for node in tree.find(name="log")] == [3]
    assert sorted(set(profile.tables["events"]["step"].tolist()) - {-1}) == [0, 1, 2]


@pytest.mark.parametrize("name", TENSORFLOW)
def test_a_profile_of_tensorflow_has_nodes_below_their_function_and_their_scopes(name: str) -> None:
    profile = open_profile(str(place(name)))
    assert contradictions(profile) == []
    tree = profile.tree
    products = ["/".join(one.name for one in node.path()) for node in tree.find(kind="operator")]
    products = [path for path in products if path.endswith("MatMul")]
    assert any("/tf.function(one_step_on_data)/on another thread/sequential_1/up_1/" in path for path in products)
    assert any(path.endswith("/backward/MatMul") for path in products)
    stages = {
        node.name.rpartition("::")[2] for node in tree.find(kind="operator") if node.name.startswith("Iterator::")
    }
    assert {"Prefetch", "FiniteTake"} <= stages
    assert any(node.name == "data loading" for node in tree.find(kind="phase"))
    told = name == "tensorflow-2.21"  # 2.18 tells of its allocators at a higher level of tracing only
    assert (int(tree.exclusive("alloc_bytes").sum.sum()) > 0) == told
    assert (int(tree.exclusive("peak_live_bytes").sum.sum()) > 0) == told


@pytest.mark.parametrize("name", JAX)
def test_operations_waited_for_those_whose_results_they_need(name: str) -> None:
    profile = open_profile(str(place(name)))
    found, events = profile.window.edges, profile.events
    inner = found["kind"] == "compiled"
    source, target = found["source"][inner].tolist(), found["target"][inner].tolist()
    pairs = Counter((_hlo(profile, one), _hlo(profile, other)) for one, other in zip(source, target, strict=True))
    # two products of the gradient, whose results are subtracted from the weights; each of the three steps has its own
    assert {pairs[one, "multiply_subtract_fusion"] for one in ("dot", "dot.1")} == {3}
    assert set(pairs.values()) == {3}
    end = events["start_ns"] + events["duration_ns"]
    assert (end[source] <= events["start_ns"][target] + 1_000).all()
    calls = found["source"][found["kind"] == "launch"]
    frames = set(profile.tree.frame_of[events["node"][calls]].tolist())
    assert {profile.tree.text("name", frame) for frame in frames} == {"jit(train_step)"}
    latency = {row.name: row.latency for row in statistics(profile, "operator")}
    assert latency["dot_general"].count == 15
    assert latency["dot_general"].low >= -1_000


def _hlo(profile: Profile, row: int) -> str:
    frame = int(profile.tree.frame_of[profile.events["node"][row]])
    return str(json.loads(profile.tree.text("detail", frame) or "{}").get("hlo", ""))


def test_kernels_of_command_buffers_are_on_the_lines_of_their_instructions() -> None:
    """Every kernel of it was in a CUDA graph. Of 1,910 kernels 535 copy and are of no name, 20 are of a library, and
    380 have the name of another fusion that computes the same."""
    profile = open_profile(str(place(GPU)))
    assert contradictions(profile) == []
    source = (RECORDED / f"{GPU}.program.txt").read_text().splitlines()
    functions: Counter[str] = Counter()
    kernels: Counter[str] = Counter()
    products: Counter[str] = Counter()
    instructions: dict[str, set[str]] = {}
    for node in profile.tree.find(kind="kernel"):
        took = node.exclusive("gpu_time")
        line, operator = node.nearest("python"), node.nearest("operator")
        kernels[node.name] += int(took.count)
        assert line is not None
        assert operator is not None
        functions[line.name.partition(".")[0]] += int(took.sum)
        told = operator.detail
        assert told["command_buffer"].startswith("command_buffer_")
        assert "one_of" not in told
        instructions.setdefault(node.name, set()).add(told["hlo"])
        if told["hlo"] == "custom-call.1":
            products[source[line.line - 1].strip()] += int(took.count)
    assert sum(functions.values()) == pytest.approx(6_039_000, rel=0.01)
    ours = sum(functions[name] for name in ("block", "attention", "norm", "model", "loss", "train_step"))
    assert ours == sum(functions.values())
    told_kernels = json.loads((RECORDED / f"{GPU}.counts.json").read_text())["kernels"]
    assert kernels == {name: count for name, (count, _) in told_kernels.items()}
    # three products of the gradient share a kernel; they are queries, keys and values
    assert instructions["gemm_fusion_dot_66"] == {f"gemm_fusion_dot.{number}" for number in (65, 66, 67)}
    # a library's kernel, between two of our own names; 4 layers, 5 steps
    assert products == {"return x + jax.nn.gelu(h @ w['up']) @ w['down']": 20}
    assert len(instructions["memcpy128"]) + len(instructions["memcpy32_post"]) == 29


@pytest.mark.parametrize("name", [*JAX, GPU, *TENSORFLOW])
def test_events_and_their_times_are_those_of_another_reader(name: str) -> None:
    from leadline import _xla

    told = json.loads((RECORDED / f"{name}.counts.json").read_text())
    data = sources(place(name))[0].open().read()
    found = _xla.profile(data, [], ["hlo_op"])
    lines = [[found["planes"][plane][0], line, 0, 0] for plane, _, line, *_ in found["lines"]]
    events = found["events"]
    for line, took in zip(events["line"], events["duration_ps"], strict=True):
        lines[line][2] += 1
        lines[line][3] += took
    assert sorted(lines) == sorted(told["lines"])
    space = read_xspace(sources(place(name))[0])
    operations: dict[str, list[int]] = {}
    for row, operation in enumerate(space.operation.tolist()):
        if operation >= 0 and space.trace.events["thread"][row] >= 0:
            one = operations.setdefault(space.operations[operation][1], [0, 0])
            one[0] += 1
            one[1] += int(space.trace.events["duration_ns"][row])
    assert {one: count for one, (count, _) in operations.items()} == {
        one: count for one, (count, _) in told["operations"].items()
    }
    assert all(
        abs(took * 1000 - told["operations"][one][1]) <= 1_000 * count for one, (count, took) in operations.items()
    )
