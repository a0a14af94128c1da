"""Why functions are compiled again: told at compile time, by the argument, and turned into what to do."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import pytest
from tests.jax.conftest import Ran

from leadline.analysis.analyze import analyze

pytestmark = pytest.mark.skipif(
    tuple(map(int, version("jax").split(".")[:2])) < (0, 7), reason="JAX before 0.7 does not tell what it compiles"
)


def test_each_reason_names_what_was_different(run: Callable[..., Ran]) -> None:
    ran = run("again.py")
    noted = ran.profile.meta["available"]["jax"]["habits"]["recompiled"]
    told = {(one["function"], one["kind"]): (one["times"], one["text"]) for one in noted}
    assert told == {
        ("powered", "static"): (5, "number: 7, was 6"),
        ("summed", "shape"): (5, "values: float32[7,8], was float32[6,8]"),
        ("scaled", "structure"): (5, "tree: 6 values in it, 5 before"),
        ("<lambda>", "function"): (5, "another function object of the same code"),
        ("added", "weak"): (1, "value: float32[], was a Python float"),
        ("added", "type"): (1, "value: bfloat16[], was float32[]"),
    }
    found = analyze(ran.profile, ["recompilation"])
    remedies = {"powered": "A static argument", "summed": "jax.jit compiles for each shape"}
    remedies |= {"scaled": "jax.jit compiles for each structure", "<lambda>": "The function is a new object"}
    for one in found:
        function = one.title.partition(" was compiled")[0]
        assert one.remedy.startswith(remedies[function]), function
        [(times, text)] = [value for (name, _), value in told.items() if name == function]
        assert one.evidence[1] == f"{times} times: {text}"
        assert f"({text})" in one.title, "the verdict's sentence names the argument, too"
    assert "take number out of static_argnums" in next(one.remedy for one in found if one.title.startswith("powered"))
    assert len(found) == 2


def test_reasons_are_told_while_the_program_runs(run: Callable[..., Ran]) -> None:
    """As `leadline why` reads them, whose first verdict comes long before the end."""
    noted = run("ends_at_once.py", status=-9).profile.meta["available"]["jax"]["habits"]["recompiled"]
    (one,) = [one for one in noted if one["function"] == "powered"]
    assert (one["kind"], one["times"]) == ("static", 4)
