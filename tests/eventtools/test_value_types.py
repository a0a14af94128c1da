"""Values of every type that tools look at: known answers for each, and what cannot be read is said by its type."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.eventtools.conftest import Runner

from leadline.tools.backends.host_text import compile_text

torch = pytest.importorskip("torch", reason="these tests measure real PyTorch; install torch==2.13.0 to run them")

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64", "float8_e5m2", "float8_e4m3fn"]
WITHOUT_INFINITY = ["float8_e4m3fn"]
QUESTIONS = {
    "nan": "ll_is_float(a.object) && ll_isnan(a)",
    "inf": "ll_is_float(a.object) && ll_isinf(a)",
    "zero": "a.value == 0",
    "below zero": "a.value < 0",
    "above 90": "a.value > 90",
    "of floats": "ll_is_float(a.object)",
}


def test_a_text_sees_the_values_of_every_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    texts = {
        ask: compile_text("T", f"LL_STORE(a) {{ if ({what}) ll_count(a.object); }}") for ask, what in QUESTIONS.items()
    }
    nan, infinite = float("nan"), float("inf")
    wrong: dict[str, object] = {}
    for name in SIGNED + UNSIGNED + FLOATS:
        drawn = [0.0, 0.0, 1.0, 96.0, 96.0, 3.0]
        drawn += [] if name in UNSIGNED else [-2.0, -96.0, -1.0]
        drawn += [nan, nan] if name in FLOATS else []
        drawn += [-infinite] if name in FLOATS and name not in WITHOUT_INFINITY else []
        tensor = torch.tensor(drawn, dtype=torch.float64).to(getattr(torch, name))
        endless = sum(value == -infinite for value in drawn)
        expected = {
            "nan": sum(value != value for value in drawn),
            "inf": endless,
            "zero": 2,
            "below zero": sum(value < 0 for value in drawn),
            "above 90": 2,
            "of floats": len(drawn) if name in FLOATS else 0,
        }
        assert texts["nan"].why_not(tensor) == ""
        found = {ask: text.count(tensor) for ask, text in texts.items()}
        if found != expected:
            wrong[name] = (found, expected)
    assert not wrong
    assert texts["nan"].why_not(torch.ones(2, dtype=torch.complex64)) == "values of the type complex64"


def test_values_of_no_type_that_a_text_reads_are_said_by_their_type(run: Runner) -> None:
    tools = (
        'class T(Tool):\n    events = {"count": ["value"]}\n'
        '    gpu = "LL_STORE(a) { if (ll_isnan(a)) ll_count(a.object); }"\n    def count(self, b): pass\n'
    )
    ran = run("import torch\ny = torch.ones(8, dtype=torch.complex64) * 2\n", tools=tools)
    (words,) = [what for what in ran.found("T")["lost"] if "could not read" in what]
    assert words == "results that the tool's `gpu` text could not read (values of the type complex64)"


def test_the_first_nan_is_found_in_every_type_of_floats(run: Runner) -> None:
    program = f"""
    import torch
    x = torch.tensor([1.0, -1.0, 0.0])
    x = torch.sqrt(x)
    for name in {FLOATS}:
        y = x.to(getattr(torch, name))
        z = y.clone()
    """
    ran = run(program, "--tool", "value_check")
    assert ran.found("value_check")["lost"] == {}
    first = ran.table("value_check")
    # The root wrote one, and each type's conversion and copy, but float32 is converted to no copy of itself; only the
    # root made one of numbers that were finite.
    (spread,) = [output["text"] for output in ran.found("value_check")["outputs"] if output["name"] == "spread"]
    assert f"{1 + 2 * len(FLOATS) - 1} launches wrote values that are not finite" in spread
    assert len(first) == 1 and "sqrt" in str(first[0])


def test_a_nan_in_complex_numbers_is_not_blamed_on_what_reads_them(run: Runner) -> None:
    program = """
    import torch
    x = torch.sqrt(torch.tensor([1.0, -1.0]))
    y = torch.complex(x, x)
    z = y * 2
    """
    ran = run(program, "--tool", "value_check")
    rows = ran.table("value_check")
    assert len(rows) == 1 and "sqrt" in str(rows[0])
