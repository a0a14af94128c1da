"""Costly habits of a JAX program are named on their lines, and the same program without them has no such finding."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import pytest
from tests.jax.conftest import PROGRAMS, Ran

from leadline.analysis.analyze import analyze
from leadline.analysis.findings import Finding

SOURCE = (PROGRAMS / "habits.py").read_text().splitlines()
LEAST = {
    "captured_constants.least": "1MB",
    "donation.least": "100KB",
    "double_precision.share": "0",
    "double_precision.all": "0",
    "host_callbacks.info": "0",
    "host_copies.least": "100KB",
    "op_by_op.share": "0",
    "synchronisation.share": "0",
    "unrolled_loop.compile": "1ms",
}
"""The program is small and quick, so that shares of its steps and seconds of its compilation say nothing here."""
LINES = {
    "captured_constants": "return (table if FIXED else TABLE)[row].sum()",
    "double_precision": "return (values @ (values * factor)).sum()",
    "host_callbacks": "jax.debug.callback(",
    "host_copies": "batch = held if FIXED else jax.device_put(BATCH)",
    "unrolled_loop": "for _ in range(60):",
    "synchronisation": "losses.append(loss if FIXED else float(loss))",
}
RULES = [*LINES, "donation", "op_by_op"]


def found(ran: Ran) -> dict[str, list[Finding]]:
    made: dict[str, list[Finding]] = {}
    for one in analyze(ran.profile, RULES, LEAST):
        made.setdefault(one.rule, []).append(one)
    return made


@pytest.mark.skipif(
    tuple(map(int, version("jax").split(".")[:2])) < (0, 7), reason="JAX before 0.7 does not tell what it compiles"
)
def test_each_habit_is_named_on_its_line(run: Callable[..., Ran]) -> None:
    named = found(run("habits.py"))
    for rule, text in LINES.items():
        assert SOURCE[named[rule][0].lines[0].line - 1].strip().startswith(text), rule
    [alone] = named["op_by_op"]
    assert alone.title == "clip runs 11 operations of JAX a step one by one, outside of jax.jit"
    assert {line.function for line in alone.lines} == {"clip"}
    missing, vain = named["donation"]
    assert missing.title.startswith("jit(update) keeps 512 KiB of old arguments")
    assert "weights and momentum" in missing.evidence[0] and "donate_argnums=(0, 1)" in missing.remedy
    assert vain.evidence == ("donated without use: values: float32[256,256]",)
    assert "doubles come in as argument factor" in named["double_precision"][0].evidence
    assert named["unrolled_loop"][0].title.startswith(
        "A loop of 60 iterations is unrolled into jit(shallow): 120 of its "
    )
    assert "float() waits for the device once a step" in named["synchronisation"][0].title
    assert named["captured_constants"][0].title == "jit(looked_up) holds 4.00 MiB of arrays as constants"
    assert named["host_copies"][0].title.startswith("The same NumPy data is copied to the device once a step")


def test_the_same_program_without_them_has_none(run: Callable[..., Ran]) -> None:
    assert found(run("habits.py", "fixed")) == {}
