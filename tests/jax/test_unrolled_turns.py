"""How often an unrolled loop went round, whatever the number of operations that one turn makes."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest

pytest.importorskip("jax")
pytestmark = pytest.mark.skipif(
    tuple(map(int, version("jax").split(".")[:2])) < (0, 7), reason="JAX before 0.7 does not tell what it compiles"
)

Program = Callable[[int], Any]


def gradient_of_layers(layers: int) -> Any:
    """A layer and its gradient multiply 13 times, all for one line."""
    import jax
    import jax.numpy as jnp

    def loss(weights: list[Any], x: Any) -> Any:
        for weight in weights:
            x = jax.nn.gelu(x @ weight)
        return x.sum()

    return jax.jit(jax.grad(loss)).lower([jnp.eye(8)] * layers, jnp.ones((4, 8)))


def plain(turns: int) -> Any:
    import jax
    import jax.numpy as jnp

    def loop(x: Any) -> Any:
        for _ in range(turns):
            x = jnp.sin(x) * 0.9
        return x

    return jax.jit(loop).lower(jnp.ones(3))


def turns_noted(lower: Program, number: int) -> list[int]:
    from leadline.capture.providers.jax.lowered import Lowerings

    noted: list[int] = []

    def note(name: str, facts: dict[str, Any]) -> None:
        if name == "unrolled":
            noted.append(max(group["turns"] for group in facts["groups"]))

    lowerings = Lowerings(note, lambda _: None, pytest.fail)
    lowerings.install()
    try:
        lower(number)
    finally:
        lowerings.uninstall()
    return noted


@pytest.mark.parametrize("lower", [gradient_of_layers, plain])
@pytest.mark.parametrize("number", [40, 57])
def test_turns_of_a_loop_are_counted_and_not_its_operations(lower: Program, number: int) -> None:
    assert turns_noted(lower, number) == [number]


@pytest.mark.parametrize("lower", [gradient_of_layers, plain])
def test_a_loop_of_three_turns_is_none_that_matters(lower: Program) -> None:
    assert turns_noted(lower, 3) == []
