"""What each transform of JAX looks like: user frames in order, forward or backward, the transform, exact counts."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

import pytest
from tests.jax.conftest import PROGRAMS, Ran, measured
from tests.truth.invariants import contradictions

from leadline.xla import scopes

SOURCE = (PROGRAMS / "transforms.py").read_text().splitlines()
RUNS, TURNS = 30, 5
frames_inside = pytest.mark.skipif(
    tuple(map(int, version("jax").split(".")[:2])) < (0, 10),
    reason="JAX 0.8 writes the frames of the call alone for what loops, branches, remat and Pallas kernels hold",
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The program, run once for all tests of this file."""
    return measured(tmp_path_factory.mktemp("transforms"), "transforms.py")


@dataclass(frozen=True)
class Seen:
    """Operations of one name in a program. `functions`: frames of the program's own around them, outermost first."""

    calls: int
    functions: tuple[str, ...]
    line: str
    backward: bool
    transforms: frozenset[str]


def _seen(ran: Ran, program: str, operation: str) -> list[Seen]:
    found = []
    for row in ran.rows(operation):
        path = ran.path(row)
        if f"jit({program})" not in path:
            continue
        node = ran.profile.tree.node(row)
        inside = path[path.index(f"jit({program})") + 1 : -1]
        functions = [name for name in inside if name not in ("on another thread", "forward", "backward")]
        leaf = row
        while not ran.line(leaf):
            leaf = ran.parents[leaf]
        found.append(
            Seen(
                ran.calls[row],
                tuple(name.rpartition(".")[2] for name in functions),
                SOURCE[ran.line(leaf) - 1].strip(),
                "backward" in inside,
                frozenset(node.detail.get("transforms", [])),
            )
        )
    return found


def test_programs_under_every_transform_are_counted_exactly_and_hold_together(ran: Ran) -> None:
    assert ran.output.split() == [str(RUNS), str(TURNS)]
    for program in ("scanned", "looped", "chosen", "sharded", "custom", "saved", "mapped", "halved"):
        assert ran.runs(f"jit({program})") == RUNS, program
    assert contradictions(ran.profile) == []
    assert all(path.count("main") == 2 for row in ran.rows("dot_general") if (path := ran.path(row)))  # no frame twice


@pytest.mark.parametrize(
    ("program", "backward", "calls", "functions", "transforms"),
    [
        ("scanned", False, RUNS * TURNS, ("scanned", "loss", "<lambda>", "cell"), {"scan"}),
        pytest.param("looped", False, RUNS * TURNS, ("looped", "body", "cell"), {"while"}, marks=frames_inside),
        pytest.param("chosen", False, RUNS, ("chosen", "loss", "positive", "cell"), {"cond"}, marks=frames_inside),
        pytest.param("chosen", True, RUNS, ("chosen", "loss", "positive", "cell"), {"cond"}, marks=frames_inside),
        ("sharded", False, 2 * RUNS, ("sharded", "per_device", "cell"), {"shard_map"}),
        ("custom", False, RUNS, ("custom", "<lambda>", "clipped_forward", "clipped", "cell"), set()),
        ("mapped", False, RUNS, ("mapped", "cell"), {"vmap"}),
    ],
)
def test_a_product_stands_below_the_functions_that_lead_to_it(
    ran: Ran, program: str, backward: bool, calls: int, functions: tuple[str, ...], transforms: set[str]
) -> None:
    [product] = [one for one in _seen(ran, program, "dot_general") if one.backward == backward]
    assert product.calls == calls
    assert product.functions == functions
    assert product.line == "return jnp.tanh(x @ w)"
    assert product.transforms == transforms


@frames_inside
def test_a_scan_is_told_from_a_loop_and_its_gradient_runs_backward_through_it(ran: Ran) -> None:
    backward = [one for one in _seen(ran, "scanned", "dot_general") if one.backward]
    assert sum(one.calls for one in backward) == 2 * RUNS * TURNS  # for the state and for the weights
    assert all(one.functions[-1] == "cell" and "scan" in one.transforms for one in backward)
    condition = _seen(ran, "looped", "reduce_max")
    assert {(one.functions, one.calls) for one in condition} == {(("looped", "unfinished"), RUNS * (TURNS + 1))}


@pytest.mark.parametrize("call", ["closed_call", "eval_jaxpr"])
def test_what_a_scan_calls_is_no_scope_in_the_words_of_any_release(call: str) -> None:
    scope = scopes.parse(f"jit(f)/jvp()/while/body/{call}/Dense_0/dot_general")
    assert (scope.transforms, scope.scopes, scope.primitive) == (("scan",), ("Dense_0",), "dot_general")


def test_what_devices_of_a_shard_map_say_to_each_other_is_communication(ran: Ran) -> None:
    [row] = [
        row
        for name in ("psum", "psum_invariant")  # by release
        for row in ran.rows(name)
        if "jit(sharded)" in ran.path(row)
    ]
    assert ran.calls[row] == 2 * RUNS
    assert ran.profile.tree.node(row).detail["role"] == "communication"
    assert ran.path(row)[-2] == "per_device"


def test_the_gradient_that_a_program_wrote_itself_is_backward_at_the_call_it_is_the_gradient_of(ran: Ran) -> None:
    """JAX keeps no lines of the function itself there: what it runs has those of the call."""
    [product] = [one for one in _seen(ran, "custom", "dot_general") if one.backward]
    assert (product.calls, product.functions) == (RUNS, ("custom", "<lambda>"))
    assert "clipped(x, w)" in product.line
    [clip] = _seen(ran, "custom", "min")
    assert clip.backward


@frames_inside
def test_what_remat_computes_again_is_marked_so_and_what_it_keeps_is_not(ran: Ran) -> None:
    products = _seen(ran, "saved", "dot_general")
    assert {one.line for one in products} == {"return jnp.tanh(x @ w)"}
    assert all(one.functions[-2:] == ("<lambda>", "cell") for one in products)
    again = [one for one in products if "rematted_computation" in one.transforms]
    assert sum(one.calls for one in again) == 2 * RUNS, "both of a block of two are computed again"
    gradients = [one for one in products if one.backward and one not in again]
    assert sum(one.calls for one in gradients) == 3 * RUNS, "for w twice, and for what lies between"


@frames_inside
def test_operations_of_an_interpreted_pallas_kernel_stand_on_its_lines(ran: Ran) -> None:
    [tanh] = _seen(ran, "halved", "tanh")
    assert (tanh.calls, tanh.functions) == (RUNS, ("halved", "halved_kernel"))
    assert tanh.line == "out_ref[...] = jnp.tanh(x_ref[...]) * 0.5"
