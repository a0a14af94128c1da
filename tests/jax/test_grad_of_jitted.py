"""The gradient of a jitted function runs two programs of its name in each iteration; set-up is no part of a step."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import pytest
from tests.jax.conftest import Ran

from leadline.analysis.analyze import analyze

pytestmark = pytest.mark.skipif(
    tuple(map(int, version("jax").split(".")[:2])) < (0, 7), reason="JAX before 0.7 does not tell what it compiles"
)


def test_an_iteration_is_a_step_and_one_compilation_for_each_leaf_is_none_too_many(run: Callable[..., Ran]) -> None:
    profile = run("grad_of_jitted.py").profile
    found = analyze(profile)
    assert found.steps == 40
    assert [one.title for one in found if one.rule == "recompilation"] == []
    assert [one for one in found if one.rule == "op_by_op"]
