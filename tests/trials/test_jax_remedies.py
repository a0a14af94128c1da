"""Fixes for JAX in real programs: they take effect and know it, or say in a sentence why not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.trials.test_remedies import record

pytest.importorskip("jax")

_TRAIN = """
import jax, jax.numpy as jnp

def update(weights, x):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(weights)
    return weights - 0.1 * gradient, loss
OPTIONS
x = jnp.ones((8, 256))
weights = jnp.ones((256, 256))
for _ in range(40):
    weights, loss = update(weights, x)
"""
_JITTED = _TRAIN.replace("OPTIONS", "update = jax.jit(update)")
_BY_NAME = {"mark": "program calls", "program": "__main__.update"}


def _said(folder: Path, program: str, fix: str, value: str = "", **told: object) -> str:
    found = record(folder, program, ((fix, value, ""),), **{**_BY_NAME, "warm_up": 5, **told})
    assert found["faults"] == []
    (reason,) = found["outcomes"].values()
    return str(reason)


def test_donation_takes_the_memory_of_old_arguments_and_computes_the_same(tmp_path: Path) -> None:
    plain = record(tmp_path, _JITTED, (), **_BY_NAME, warm_up=5)
    donated = record(tmp_path, _JITTED, (("donation", "", ""),), **_BY_NAME, warm_up=5)
    assert donated["outcomes"] == {"donation": ""}
    assert donated["digest"] == plain["digest"]
    assert donated["values"] == plain["values"]
    assert len(donated["values"]) == donated["steps"]


@pytest.mark.parametrize(
    ("program", "value", "reason"),
    [
        (
            _TRAIN.replace("OPTIONS", "update = jax.jit(update, donate_argnums=0)"),
            "",
            "update donates arguments already",
        ),
        (_JITTED, "train_step", "jax.jit compiles no train_step; it compiles update"),
        (_JITTED.replace("weights, loss = update(weights, x)", "update(weights, x)"), "", "still holds the old"),
    ],
)
def test_donation_says_why_it_does_not_apply(tmp_path: Path, program: str, value: str, reason: str) -> None:
    assert reason in _said(tmp_path, program, "donation", value)


def test_donation_needs_a_warm_up_that_is_long_enough(tmp_path: Path) -> None:
    assert "add --warm-up 5" in _said(tmp_path, _JITTED, "donation", warm_up=2)


_MEASURED = """
def spread(values, scale=2.0, *, shift):
    return (values * scale + shift).std()

class Meter:
    factor = 3.0
    def mean(self, values):
        return (values * self.factor).mean()

def made(bias):
    def shifted(values):
        return (values + bias).sum()
    return shifted

meter, shifted = Meter(), made(1.0)
"""


@pytest.mark.parametrize(
    ("function", "call"),
    [("spread", "spread(weights, shift=1.0)"), ("Meter.mean", "meter.mean(weights)"), ("shifted", "shifted(weights)")],
)
def test_a_function_is_compiled_wherever_it_stands_and_returns_the_same(
    tmp_path: Path, function: str, call: str
) -> None:
    program = _JITTED.replace("x = jnp", f"{_MEASURED}\nx = jnp", 1) + f"    print(float({call}))\n"
    assert _said(tmp_path, program, "jit", function) == ""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("    if values.sum() > 0: return values\n    return -values", "JAX cannot compile score: Tracer"),
        ("    return float(values.sum())", "JAX cannot compile score: Concretization"),
    ],
)
def test_a_function_that_jax_cannot_compile_runs_as_it_did(tmp_path: Path, body: str, reason: str) -> None:
    program = _JITTED.replace("x = jnp", f"\ndef score(values):\n{body}\nx = jnp", 1) + "    score(weights)\n"
    plain = record(tmp_path, program, (), **_BY_NAME, warm_up=5)
    tried = record(tmp_path, program, (("jit", "score", ""),), **_BY_NAME, warm_up=5)
    assert reason in tried["outcomes"]["jit=score"]
    assert tried["digest"] == plain["digest"]


@pytest.mark.parametrize(
    ("function", "reason"),
    [("update", "is compiled by jax.jit already"), ("nowhere", "the program has no function nowhere")],
)
def test_jit_says_why_it_does_not_apply(tmp_path: Path, function: str, reason: str) -> None:
    assert reason in _said(tmp_path, _JITTED, "jit", function)


def test_a_function_that_only_programs_call_is_no_operation_by_operation(tmp_path: Path) -> None:
    program = _TRAIN.replace(
        "OPTIONS",
        "def inner(w): return w * 2\ndef outer(w): return inner(w)\nouter = jax.jit(outer)\nupdate = jax.jit(update)",
    )
    assert "inside of a compiled program only" in _said(tmp_path, program + "    outer(weights)\n", "jit", "inner")


@pytest.mark.parametrize(
    ("set_by", "reason"),
    [
        ("", "JAX multiplies in its least precise type already"),
        ('jax.config.update("jax_default_matmul_precision", "highest")', "on this CPU"),
    ],
)
def test_the_precision_of_products_is_told_from_what_the_program_sets(tmp_path: Path, set_by: str, reason: str) -> None:
    program = _JITTED.replace("import jax, jax.numpy as jnp", f"import jax, jax.numpy as jnp\n{set_by}", 1)
    assert reason in _said(tmp_path, program, "jax_matmul_precision")


def test_random_keys_among_the_results_are_compared_too(tmp_path: Path) -> None:
    program = """
import jax, jax.numpy as jnp
@jax.jit
def update(weights, key):
    key, used = jax.random.split(key)
    return weights + jax.random.normal(used, weights.shape), key
weights, key = jnp.ones(16), jax.random.key(0)
for _ in range(40):
    weights, key = update(weights, key)
"""
    found = record(tmp_path, program, (), **_BY_NAME)
    assert found["faults"] == []
    assert found["digest"]


def test_one_rounding_of_the_first_arguments_changes_the_results(tmp_path: Path) -> None:
    plain = record(tmp_path, _JITTED, (), **_BY_NAME)
    rounded = record(tmp_path, _JITTED, (), **_BY_NAME, rounding=2.0**-23)
    assert rounded["digest"] != plain["digest"]
    assert rounded["values"][0][1] == pytest.approx(plain["values"][0][1], rel=1e-4)


def test_a_program_without_a_compiled_step_is_compared_by_what_is_alive(tmp_path: Path) -> None:
    program = """
import jax, jax.numpy as jnp, leadline
def step(weights, x):
    return weights - 0.01 * x.T @ jnp.tanh(x @ weights)
x, weights = jnp.ones((8, 16)), jnp.ones((16, 16))
for _ in range(40):
    weights = step(weights, x)
    leadline.step()
"""
    plain = record(tmp_path, program, (), mark="leadline.step")
    compiled = record(tmp_path, program, (("jit", "step", ""),), mark="leadline.step")
    assert compiled["outcomes"] == {"jit=step": ""}
    assert plain["digest"]
    assert plain["parameters"] == compiled["parameters"] == 8 * 16 + 16 * 16
