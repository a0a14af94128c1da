"""Programs over several processes: ranks as JAX numbers them, and collectives as communication."""

from __future__ import annotations

from collections.abc import Callable

from tests.jax.conftest import Ran
from tests.truth.invariants import contradictions

from leadline.xla import parts, scopes


def test_gradients_that_two_processes_reduce_are_communication_in_both(run: Callable[..., Ran]) -> None:
    ran = run("two_processes.py")
    assert contradictions(ran.profile) == []
    steps = int(ran.output.split()[-1])
    assert ran.runs("jit(train_step)") == 2 * steps
    reduced = [ran.profile.tree.node(row) for row in ran.rows("all-reduce") if "jit(train_step)" in ran.path(row)]
    assert {node.nearest("process") for node in reduced} and all(
        node.detail["role"] == "communication" for node in reduced
    )
    assert len({node.nearest("process") for node in reduced}) == 2
    assert all(node.nearest("python").name.endswith("loss_fn") for node in reduced)
    ranks = {record["rank"] for record in ran.profile.meta["processes"]}
    assert {0, 1} <= ranks


def test_what_the_partitioner_put_in_is_named_by_what_it_does_and_stands_where_its_first_name_says() -> None:
    assert parts.named("reduce_sum", "all-reduce") == "all-reduce"
    assert parts.named("psum", "all-reduce-start") == "psum"
    assert parts.named("dot_general", "all-gather-done") == "all-gather"
    joined = scopes.parse("jit(f)/(transpose(jvp(tower))/dot_general:jvp()/reduce_sum)")
    assert (joined.primitive, joined.scopes, joined.backward) == ("dot_general", ("tower",), True)
