"""TensorFlow's calls and nodes in the trace window, and which waited for which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from tests.tensorflow.conftest import Ran

from leadline.profiles import Profile
from leadline.trace.tensors import tensors

tensorflow = pytest.importorskip("tensorflow", reason="these tests measure real TensorFlow; make test-tf runs them")

pytestmark = pytest.mark.timeout(240)

Edge = tuple[int, int, str]
EARLY = tuple(map(int, tensorflow.__version__.split(".")[:2])) < (2, 20)
PASS_ON = ("_Arg", "Reshape") if EARLY else ()
"""Nodes that only hand on what they were given, which early releases leave in the graph."""


class Window:
    """Events by name, and edges between them."""

    def __init__(self, profile: Profile) -> None:
        events, tree = profile.events, profile.tree
        frames = tree.frame_of[events["node"]].tolist()
        self.profile = profile
        self.names = [tree.text("name", frame) for frame in frames]
        self.details = [tree.text("detail", frame) for frame in frames]
        self.begin = events["start_ns"]
        self.end = events["start_ns"] + events["duration_ns"]
        self.threads = [profile.threads[row].name for row in events["thread"].tolist()]
        found = profile.window.edges
        columns = (found["source"].tolist(), found["target"].tolist(), found["kind"].tolist())
        self.edges: list[Edge] = list(zip(*columns, strict=True))
        self._hidden = {row for row, name in enumerate(self.names) if name in PASS_ON}
        self._into: dict[int, list[tuple[int, str]]] = {}
        for source, target, kind in self.edges:
            if target in self._hidden:
                self._into.setdefault(target, []).append((source, kind))

    def of(self, kind: str) -> Counter[tuple[str, str]]:
        """How often an event of one name waited for one of another, through PASS_ON; what came to a node through these
        from the call alone is left out where the node waits for something else."""
        seen = [edge for one in self.edges if one[1] not in self._hidden for edge in self._through(*one)]
        waiting = {target for _, target, found in seen if found == "compiled"} if PASS_ON else set()
        return Counter(
            (self.names[one], self.names[other])
            for one, other, found in seen
            if found == kind and (kind == "compiled" or other not in waiting)
        )

    def _through(self, source: int, target: int, kind: str) -> list[Edge]:
        if source not in self._hidden:
            return [(source, target, kind)]
        return [edge for one, of in self._into.get(source, ()) for edge in self._through(one, target, of)]

    def contradictions(self) -> list[Edge]:
        """Edges to a node that had begun before what it needs was done."""
        late = [one for one in self.edges if one[2] == "compiled" and self.end[one[0]] > self.begin[one[1]] + 1000]
        early = [one for one in self.edges if one[2] == "launch" and self.begin[one[0]] > self.begin[one[1]] + 1000]
        return late + early


@pytest.fixture
def traced(run: Callable[..., Ran]) -> Callable[..., Window]:
    def traced(name: str, *arguments: str, trace: str = "steps=3") -> Window:
        ran = run(name, *arguments, options=("--trace", trace))
        assert [loss.detail for loss in ran.profile.losses] == []
        return Window(ran.profile)

    return traced


def test_nodes_are_events_on_the_threads_that_ran_them_and_wait_for_their_inputs(
    traced: Callable[..., Window],
) -> None:
    window = traced("traced.py", "plain")
    names = Counter(window.names)
    assert {one: names[one] for one in ("step", "tf.function(chain)", "MatMul", "Sin", "Cos")} == dict.fromkeys(
        ("step", "tf.function(chain)", "MatMul", "Sin", "Cos"), 3
    )
    product = next(name for name in names if name.endswith("MatMul") and name != "MatMul")
    assert names[product] == 9
    assert window.of("compiled") == {("Sin", product): 3, ("Cos", product): 3, (product, product): 6}
    assert window.of("launch") == {("tf.function(chain)", "Sin"): 3, ("tf.function(chain)", "Cos"): 3}
    assert window.contradictions() == []
    called = {window.threads[row] for row, name in enumerate(window.names) if name in ("tf.function(chain)", "MatMul")}
    assert called == {"main"}
    assert any(name.startswith("Iterator::") for name in names)
    inside = [row for row, name in enumerate(window.names) if name in ("Sin", "Cos", product)]
    calls = [row for row, name in enumerate(window.names) if name == "tf.function(chain)"]
    for row in inside:
        assert any(window.begin[call] <= window.begin[row] <= window.end[call] for call in calls)


def test_turns_of_a_loop_wait_for_the_turn_before(traced: Callable[..., Window]) -> None:
    window = traced("traced.py", "loop")
    found = window.of("compiled")
    product = next(name for name in window.names if name.endswith("MatMul") and name != "MatMul")
    assert found["Sin", product] == 3 * 5 and found[product, "Sin"] == 3 * 4
    assert window.of("launch")["tf.function(loop)", "Sin"] == 3  # the first turn of each call
    assert window.contradictions() == []


def test_the_step_of_keras_is_followed_through_the_function_that_it_calls(traced: Callable[..., Window]) -> None:
    window = traced("keras_fit.py", "40")
    names = Counter(window.names)
    assert names["step"] == 3 and names["tf.function(multi_step_on_iterator)"] in (3, 4)
    assert window.contradictions() == []
    waiting = {target for _, target, _ in window.edges}
    nodes = [row for row, detail in enumerate(window.details) if '"node"' in detail]
    assert sum(row in waiting for row in nodes) >= 0.9 * len(nodes)
    assert ("BiasAddGrad", "Square") in window.of("compiled")  # through the identity that hands on all gradients


def test_a_collective_is_done_before_what_uses_it(traced: Callable[..., Window]) -> None:
    window = traced("two_devices.py", trace="seconds=60,wait=0")
    reduced = window.of("compiled")["CollectiveReduceV2", "Mul"]
    assert reduced == 80 or (EARLY and reduced == 79)  # which may leave the last end out
    assert window.contradictions() == []
    assert not any(pair[1] in ("_Send", "_Recv") for pair in window.of("launch"))  # nothing tells what they wait for
    handed = window.of("tensor")
    assert handed["_Send", "_Recv"] >= 40 and set(handed) == {("_Send", "_Recv")}
    found, alone = tensors(window.profile)
    assert len(found) == handed["_Send", "_Recv"] and alone <= 2  # what an edge of the window has cut
    assert all(one.sent_ns <= one.received_ns and one.waited_for_sender_ns >= 0 for one in found)
