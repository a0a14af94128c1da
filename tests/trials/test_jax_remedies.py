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
    (reason,) = _all_said(folder, program, (fix, value), **told).values()
    return reason


def _all_said(folder: Path, program: str, *fixes: tuple[str, str], **told: object) -> dict[str, str]:
    """What fixes say that do not disturb each other, in one process."""
    remedies = tuple((fix, value, "") for fix, value in fixes)
    found = record(folder, program, remedies, **{**_BY_NAME, "warm_up": 5, **told})
    assert found["faults"] == []
    return {str(title): str(reason) for title, reason in found["outcomes"].items()}


def test_donation_takes_the_memory_of_old_arguments_and_computes_the_same(tmp_path: Path) -> None:
    plain = record(tmp_path, _JITTED, (), **_BY_NAME, warm_up=5)
    donated = record(tmp_path, _JITTED, (("donation", "", ""),), **_BY_NAME, warm_up=5)
    assert donated["outcomes"] == {"donation": ""}
    assert donated["digest"] == plain["digest"]
    assert donated["values"] == plain["values"]
    assert len(donated["values"]) == donated["steps"]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (_TRAIN.replace("OPTIONS", "update = jax.jit(update, donate_argnums=0)"), "update donates arguments already"),
        (_JITTED.replace("weights, loss = update(weights, x)", "update(weights, x)"), "still holds the old"),
    ],
)
def test_donation_says_why_it_does_not_apply(tmp_path: Path, program: str, reason: str) -> None:
    assert reason in _said(tmp_path, program, "donation")


_REFUSED = {
    ("donation", "train_step"): "jax.jit compiles no train_step; it compiles update",
    ("jit", "update"): "is compiled by jax.jit already",
    ("jit", "nowhere"): "the program has no function nowhere",
    ("jax_matmul_precision", ""): "JAX multiplies in its least precise type already",
}
"""What fixes say of the compiled program, each of which leaves it as it is."""


def test_fixes_that_have_nothing_to_change_say_why(tmp_path: Path) -> None:
    said = _all_said(tmp_path, _JITTED, *_REFUSED)
    assert len(said) == len(_REFUSED)
    for (fix, value), reason in _REFUSED.items():
        (told,) = [one for title, one in said.items() if title in (fix, f"{fix}={value}")]
        assert reason in told, fix


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


_CALLS = {"spread": "spread(weights, shift=1.0)", "Meter.mean": "meter.mean(weights)", "shifted": "shifted(weights)"}


def test_functions_are_compiled_wherever_they_stand_and_return_the_same(tmp_path: Path) -> None:
    calls = "".join(f"    print(float({call}))\n" for call in _CALLS.values())
    program = _JITTED.replace("x = jnp", f"{_MEASURED}\nx = jnp", 1) + calls
    said = _all_said(tmp_path, program, *(("jit", function) for function in _CALLS))
    assert said == {f"jit={function}": "" for function in _CALLS}


_SCORES = """
def sign(values):
    if values.sum() > 0: return values
    return -values
def score(values):
    return float(values.sum())
"""


def test_functions_that_jax_cannot_compile_run_as_they_did(tmp_path: Path) -> None:
    program = _JITTED.replace("x = jnp", f"{_SCORES}\nx = jnp", 1) + "    sign(weights)\n    score(weights)\n"
    plain = record(tmp_path, program, (), **_BY_NAME, warm_up=5)
    tried = record(tmp_path, program, (("jit", "sign", ""), ("jit", "score", "")), **_BY_NAME, warm_up=5)
    assert "JAX cannot compile sign: Tracer" in tried["outcomes"]["jit=sign"]
    assert "JAX cannot compile score: Concretization" in tried["outcomes"]["jit=score"]
    assert tried["digest"] == plain["digest"]


def test_a_function_that_only_programs_call_is_no_operation_by_operation(tmp_path: Path) -> None:
    program = _TRAIN.replace(
        "OPTIONS",
        "def inner(w): return w * 2\ndef outer(w): return inner(w)\nouter = jax.jit(outer)\nupdate = jax.jit(update)",
    )
    assert "inside of a compiled program only" in _said(tmp_path, program + "    outer(weights)\n", "jit", "inner")


def test_the_precision_of_products_is_told_from_what_the_program_sets(tmp_path: Path) -> None:
    highest = 'import jax, jax.numpy as jnp\njax.config.update("jax_default_matmul_precision", "highest")'
    program = _JITTED.replace("import jax, jax.numpy as jnp", highest, 1)
    assert "on this CPU" in _said(tmp_path, program, "jax_matmul_precision")


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
