"""Counts are exact in whichever way a program is run, and what the program sets or takes away is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.jax.conftest import Ran


@pytest.mark.parametrize("settings", [(), ("nans",)])
def test_every_way_to_run_a_program_counts_once(run: Callable[..., Ran], settings: tuple[str, ...]) -> None:
    ran = run("ways.py", *settings)
    plain, outer = map(int, ran.output.split())
    assert ran.runs("jit(f)") == plain
    assert ran.runs("jit(outer)") == outer


@pytest.mark.parametrize("settings", [(), ("nans",)])
def test_counts_are_those_of_the_executions_that_xla_traced(
    run: Callable[..., Ran], tmp_path: Path, settings: tuple[str, ...]
) -> None:
    """Of all programs, those among them that JAX makes for itself; in a trace of the program's own."""
    ran = run("executions.py", str(tmp_path / "trace"), *settings)
    executions = int(ran.output.splitlines()[-1])
    assert executions > 150
    assert sum(ran.runs(name) for name in set(ran.paths) if name.startswith("jit(")) == executions


def test_operations_of_a_program_with_disabled_jit_are_counted_and_the_reason_is_said(run: Callable[..., Ran]) -> None:
    ran = run("shapes.py", environment={"JAX_DISABLE_JIT": "1"})
    assert any("jax_disable_jit" in loss.detail for loss in ran.profile.losses)
    assert ran.runs("jit(sin)") == 7


def test_a_hook_that_fails_costs_its_counts_and_not_the_program(run: Callable[..., Ran]) -> None:
    ran = run("broken_hook.py")
    assert ran.output.splitlines()[0] == "64.0"
    told = [loss for loss in ran.profile.losses if "could not be counted" in loss.detail]
    assert sum(loss.count for loss in told) >= 4  # the first run of all is on the slow path
