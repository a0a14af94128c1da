"""Modules of Flax are in the call paths, as users name them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.jax.conftest import Ran

from leadline.analysis.findings import Severity
from leadline.schema import FrameKind

pytest.importorskip("flax", reason="modules of Flax; install flax to run this")


def test_modules_of_flax_have_their_instance_names_forward_and_backward(run: Callable[..., Ran]) -> None:
    ran = run("flax_loop.py")
    assert ran.runs("jit(train_step)") == 200
    kinds = ran.profile.tree.kinds.tolist()
    modules = {name for name, kind in zip(ran.paths, kinds, strict=True) if kind == int(FrameKind.MODULE)}
    assert {"Model", "Model.Block_0", "Model.Block_0.Dense_1", "Model.Block_1.LayerNorm_0", "Model.head"} <= modules
    assert modules <= {
        "Model", "Model.head", *(f"Model.Block_{i}" for i in range(2)),
        *(f"Model.Block_{i}.{layer}" for i in range(2) for layer in ("Dense_0", "Dense_1", "LayerNorm_0")),
    }  # fmt: skip
    products = [row for row in ran.rows("dot_general") if "jit(train_step)" in ran.path(row)]
    # Each of five layers once forward and twice backward: what goes into the first layer has parameters too.
    assert sum(ran.calls[row] for row in products) == 200 * 5 * 3
    assert any("backward" in ran.path(row) and "Model.head" in ran.path(row) for row in products)

    # weights and the optimizer's state are made one operation at a time, each of a shape of its own
    found = ran.profile.findings()
    assert found.steps == 200
    assert [one.title for one in found if one.severity == Severity.WARNING] == []
    [step] = ran.rows("jit(train_step)")
    took_ns = ran.profile.tree.exclusive("call_time").sum[step] / 200
    assert 0.2 * found.step_ns <= took_ns <= 5 * found.step_ns, "on both cores, with what they wait for each other"


def test_modules_of_nnx_are_known_by_class_and_operations_of_a_pallas_kernel_by_its_lines(
    run: Callable[..., Ran],
) -> None:
    ran = run("nnx_loop.py")
    assert ran.runs("jit(train_step)") == ran.runs("jit(scaled)") == 60
    kinds = ran.profile.tree.kinds.tolist()
    modules = {name for name, kind in zip(ran.paths, kinds, strict=True) if kind == int(FrameKind.MODULE)}
    assert modules == {"Model", "Model.Block", "Model.Block.Linear", "Model.Linear"}
    products = [row for row in ran.rows("dot_general") if "jit(train_step)" in ran.path(row)]
    # each of five layers once forward and twice backward, but the first has no gradient of its input
    assert sum(ran.calls[row] for row in products) == 60 * (5 * 3 - 1)
    assert all("Model.Linear" in ran.path(row) or "Model.Block.Linear" in ran.path(row) for row in products)
    assert any("scale_kernel" in ran.path(row) for row in ran.rows("mul"))


def _modules(ran: Ran) -> set[str]:
    kinds = ran.profile.tree.kinds.tolist()
    return {name for name, kind in zip(ran.paths, kinds, strict=True) if kind == int(FrameKind.MODULE)}


def _products(ran: Ran, *, backward: bool) -> dict[str, int]:
    """Calls of products in a training step by the innermost module."""
    found: dict[str, int] = {}
    for row in ran.rows("dot_general"):
        path = ran.path(row)
        if "jit(train_step)" in path and ("backward" in path) == backward:
            module = ran.profile.tree.node(row).nearest("module").name
            found[module] = found.get(module, 0) + ran.calls[row]
    return found


def test_modules_of_equinox_are_known_by_class_the_programs_own_too(run: Callable[..., Ran]) -> None:
    pytest.importorskip("equinox", reason="modules of Equinox; install equinox to run this")
    ran = run("equinox_loop.py")
    assert ran.runs("jit(train_step)") == 60
    assert _modules(ran) == {"Model", "Model.Block", "Model.Block.Linear", "Model.Block.LayerNorm", "Model.Linear"}
    assert _products(ran, backward=False) == {"Model.Block.Linear": 4 * 60, "Model.Linear": 60}
    # each layer twice; what goes into the first has parameters before it, so it needs a gradient too
    assert _products(ran, backward=True) == {"Model.Block.Linear": 8 * 60, "Model.Linear": 2 * 60}
    residual = [row for row in ran.rows("add") if ran.path(row)[-2] == "Model.Block"]
    assert residual, "what a module does itself, around its layers"


def test_modules_of_haiku_have_their_names_and_one_that_is_used_twice_is_one(run: Callable[..., Ran]) -> None:
    pytest.importorskip("haiku", reason="modules of Haiku; install dm-haiku to run this")
    ran = run("haiku_loop.py")
    assert ran.runs("jit(train_step)") == 60
    layers = {f"model.{block}{layer}" for block in ("shared", "last") for layer in ("", ".layer_norm", ".up", ".down")}
    assert _modules(ran) == {"model", "model.head", *layers}
    once = {"model.last.up": 60, "model.last.down": 60, "model.head": 60}
    twice = {"model.shared.up": 120, "model.shared.down": 120}
    assert _products(ran, backward=False) == {**once, **twice}
    assert _products(ran, backward=True) == {name: 2 * count for name, count in {**once, **twice}.items()}
