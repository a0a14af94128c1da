"""What a user sees of small TensorFlow programs."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from tests.tensorflow.conftest import PROGRAMS, Ran
from tests.truth.invariants import contradictions

from leadline.capture.providers.tensorflow.windows import ALWAYS_VARIABLE
from leadline.profiles.tree import Node
from leadline.trace.counters import series

pytest.importorskip("tensorflow", reason="these tests measure real TensorFlow; make test-tf runs them")

pytestmark = pytest.mark.timeout(240)


def _line(program: str, text: str) -> int:
    lines = (PROGRAMS / program).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line and "def " not in line)


def _made_on(node: Node) -> Node:
    """The Python line that a node of a graph stands on."""
    found = node.nearest("python")
    assert found is not None
    return found


def _share_on_lines(ran: Ran) -> float:
    """Of the time of nodes, what stands on a line inside of the function that they are part of."""
    placed = whole = 0
    for node in ran.inside():
        spent = int(node.exclusive("time").sum)
        path = node.path()
        called = next(place for place, one in enumerate(path) if one.name.startswith("tf.function("))
        whole += spent
        placed += spent if any(one.kind == "python" for one in path[called:]) else 0
    assert whole > 0
    return placed / whole


def test_a_function_is_counted_exactly_and_its_nodes_stand_on_the_lines_that_made_them(run: Callable[..., Ran]) -> None:
    ran = run("function_loop.py", "600")
    assert contradictions(ran.profile) == []
    steps = int(ran.output)
    assert ran.calls("tf.function(train_step)") == steps
    [step] = ran.nodes("tf.function(train_step)")
    assert _made_on(step).line == _line("function_loop.py", "train_step(batch, label)")
    eager = [node for node in ran.nodes("MatMul") if "node" not in node.detail]
    assert sum(int(node.exclusive("call_time").count) for node in eager) == steps
    assert {_made_on(node).line for node in eager} == {_line("function_loop.py", "transpose_b=True")}
    assert _share_on_lines(ran) >= 0.99
    products = [node for node in ran.inside() if "MatMul" in node.name]
    backward = [node for node in products if "backward" in [one.name for one in node.path()]]
    lines = {_made_on(node).line for node in products}
    assert lines == {_line("function_loop.py", text) for text in ("batch @ first", "hidden @ second")}
    assert {_made_on(node).line for node in backward} == lines  # of the forward node
    told = ran.profile.meta["available"]["tensorflow"]
    assert told["calls"] >= steps and 0 < told["timed_calls"] < told["calls"]
    asked = ran.calls("IteratorGetNext") + ran.calls("IteratorGetNextSync")
    assert asked >= steps
    assert ran.calls("Iterator::Root") == asked, "windows saw some, and all are counted"
    assert ran.calls("Iterator::Root::Prefetch") == asked


def test_layers_of_keras_are_modules_and_its_batches_are_steps(run: Callable[..., Ran]) -> None:
    ran = run("keras_fit.py", "60")
    assert contradictions(ran.profile) == []
    assert ran.calls("tf.function(multi_step_on_iterator)") == int(ran.output)
    calls = int(ran.output)
    assert calls <= ran.calls("Iterator::Root") <= 1.1 * calls, "each call asks for one element, and Keras looks ahead"
    assert _share_on_lines(ran) >= 0.99
    modules = {node.name for node in ran.profile.tree.find(kind="module")}
    assert any(name.endswith(".conv_1") for name in modules), modules
    assert any(name.endswith(".out_1") for name in modules), modules
    scaled = [node for node in ran.inside() if node.name == "Tanh"]
    assert {_made_on(node).line for node in scaled} == {_line("keras_fit.py", "keras.ops.tanh(inputs)")}
    phases = {one.name for node in ran.inside() for one in node.path() if one.kind == "phase"}
    assert {"backward", "optimizer"} <= phases


def test_memory_stands_on_the_lines_that_made_variables_and_tensors(run: Callable[..., Ran]) -> None:
    ran = run("memory.py")
    assert contradictions(ran.profile) == []
    by_line: dict[str, dict[str, int]] = {}
    for node in ran.profile.tree.find(kind="operator"):
        found = node.nearest("python")
        for metric in ("alloc_bytes", "free_bytes", "peak_live_bytes"):
            held = int(node.exclusive(metric).sum)
            if found is not None and held and "node" not in node.detail:
                sums = by_line.setdefault(f"{found.name}:{node.name}", {})
                sums[metric] = sums.get(metric, 0) + held
    mib = 1024 * 1024
    assert by_line["main:tf.Variable"] == {"alloc_bytes": 3 * mib, "free_bytes": 3 * mib, "peak_live_bytes": 3 * mib}
    kept = {name: sums for name, sums in by_line.items() if name.startswith("keep.")}
    assert sum(sums["alloc_bytes"] for name, sums in kept.items() if "<listcomp>" in name) >= 7 * mib
    assert sum(sums.get("peak_live_bytes", 0) for sums in kept.values()) >= 5 * mib
    assert not any("Reshape" in name and sums.get("peak_live_bytes") for name, sums in by_line.items())
    assert not any("ReadVariableOp" in name for name in by_line)
    passed = {name: sums for name, sums in by_line.items() if name.startswith("pass_by:")}
    assert sum(sums["alloc_bytes"] for sums in passed.values()) == sum(sums["free_bytes"] for sums in passed.values())
    waits = [node.exclusive("ready_wait") for node in ran.inside()]
    assert sum(int(one.count) for one in waits) > 0 and all(int(one.min) >= 0 for one in waits if one.count)


BFC = {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"}
"""The allocator that tells all that it does."""


def test_nodes_of_a_lambda_that_a_pool_ran_lay_in_its_queue_and_others_went_on_in_a_thread(
    run: Callable[..., Ran],
) -> None:
    ran = run("pool.py", "300")
    assert contradictions(ran.profile) == []
    assert ran.calls("tf.function(<lambda>)") == int(ran.output)
    assert ran.calls("AddN") == int(ran.output)
    nodes = ran.inside()
    queued = [node.exclusive("queue_wait") for node in nodes if int(node.exclusive("queue_wait").count)]
    assert 0 < sum(int(one.count) for one in queued) < sum(int(node.exclusive("call_time").count) for node in nodes)
    assert all(0 <= int(one.min) <= int(one.max) for one in queued)
    assert any(int(one.sum) > 0 for one in queued)


def test_what_allocators_were_asked_for_is_set_beside_what_they_gave(run: Callable[..., Ran]) -> None:
    ran = run("pool.py", "40", options=("--trace", "seconds=60,wait=0"), environment=BFC)
    assert contradictions(ran.profile) == []
    told = ran.profile.meta["available"]["tensorflow"]
    sums = next(sums for name, sums in told["allocators"].items() if "bfc" in name)
    assert 0 < sums["requested_bytes"] < sums["given_bytes"]  # blocks are multiples of 256 bytes
    assert sums["given_bytes"] % 256 == 0 and 0 <= sums["fragmentation"] <= 1000
    assert f"for {sums['requested_bytes']:,} asked for" in told["estimated"]
    told_by_time = {one.name: one.values for one in series(ran.profile) if "bfc" in one.name}
    held = next(values for name, values in told_by_time.items() if name.endswith("bytes in use"))
    blocks = next(values for name, values in told_by_time.items() if name.endswith("blocks in use"))
    assert int(held.max()) <= sums["peak_bytes"]
    assert int(blocks[-1]) == sums["allocations"] - sums["frees"]


def test_what_goes_between_two_devices_is_communication_and_nodes_name_their_device(run: Callable[..., Ran]) -> None:
    ran = run("two_devices.py")
    assert contradictions(ran.profile) == []
    assert ran.calls("tf.function(train)") == int(ran.output)
    products = [node for node in ran.inside() if "MatMul" in node.name]
    assert {node.detail["device"] for node in products} == {"CPU:0", "CPU:1"}
    moved = [node for node in ran.inside() if node.name in ("_Send", "_Recv") or "Collective" in node.name]
    assert {node.name for node in moved} >= {"_Send", "_Recv", "CollectiveReduceV2"}
    assert all(node.detail["role"] == "communication" for node in moved)
    assert all(int(node.exclusive("wait_time").sum) > 0 for node in moved if node.name == "CollectiveReduceV2")


@pytest.mark.parametrize("options", [(), ("--trace", "seconds=60,wait=0")])
def test_processes_that_serve_others_are_counted_and_left_alone_by_tensorflows_profiler(
    run: Callable[..., Ran], options: tuple[str, ...]
) -> None:
    """Its own sessions end such a process in about one of three runs (bench/tf_profiler_servers.py)."""
    ran = run("two_workers.py", options=options)
    assert contradictions(ran.profile) == []
    assert ran.calls("tf.function(train)") == 2 * int(ran.output)
    assert ran.inside() == []
    said = [loss.detail for loss in ran.profile.losses if "serve others" in loss.detail]
    assert len(said) == 2, "one for each worker"
    assert not any(node.name.startswith("b'") for node in ran.profile.tree.find(kind="operator"))


def test_a_collective_of_two_processes_stands_on_the_line_that_asked_for_it_in_both(run: Callable[..., Ran]) -> None:
    """With the windows that such processes get on demand only; of what TensorFlow ended another is run."""
    ran = None
    for _ in range(8):
        try:
            ran = run("two_workers.py", environment={ALWAYS_VARIABLE: "always"})
            break
        except AssertionError as ended:
            assert re.search("invalid pointer|corruption|reset by peer|Socket closed", str(ended)), ended
    assert ran is not None
    assert contradictions(ran.profile) == []
    assert ran.calls("tf.function(train)") == 2 * int(ran.output)
    reduced = [node for node in ran.inside() if node.name == "CollectiveReduceV2"]
    # the strategy makes it on a thread of its own, for which TensorFlow keeps no line of the replica's function
    assert {_made_on(node).line for node in reduced} == {_line("two_workers.py", "strategy.run(")}
    assert len({node.nearest("process") for node in reduced}) == 2
    assert not any(node.name.startswith("b'") for node in ran.profile.tree.find(kind="operator"))
