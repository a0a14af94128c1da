"""The script that measures the gate decides from what it measured, and writes where the product reads."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from leadline.compare import limits, statistics

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    sys.path.insert(0, str(BENCH))
    try:
        spec = importlib.util.spec_from_file_location("gate_null", BENCH / "gate_null.py")
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        sys.modules["gate_null"] = made
        spec.loader.exec_module(made)
        return made
    finally:
        sys.path.remove(str(BENCH))


def compared(script: ModuleType, ratio: float, noise: float, number: int = 100) -> list[object]:
    return [script.Compared(0, ratio, noise, False)] * number


def test_a_quiet_machine_needs_no_margin_that_hides_ten_per_cent(script: ModuleType) -> None:
    same, longer = compared(script, 1.005, 0.002), compared(script, 1.1, 0.002)
    between, errors = script.decide([same], [longer])
    assert 1.005 <= between * 2.72 ** (errors * 0.002) < 1.1


def test_runs_that_differ_by_seven_per_cent_ask_for_more(script: ModuleType) -> None:
    same, longer = compared(script, 1.07, 0.001), compared(script, 1.12, 0.001)
    between, errors = script.decide([same], [longer])
    assert 1.07 <= between * 2.72 ** (errors * 0.001) < 1.12


def test_nothing_is_decided_where_equal_runs_differ_beyond_all_that_was_tried(script: ModuleType) -> None:
    assert script.decide([compared(script, 2.0, 0.001)], [compared(script, 2.2, 0.001)]) is None


def test_the_constants_are_written_where_they_are_read(script: ModuleType, tmp_path: Path, monkeypatch) -> None:
    copy = tmp_path / "limits.py"
    copy.write_text(Path(limits.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(limits, "__file__", str(copy))
    script.apply((1.08, 4.0))
    written: dict[str, object] = {}
    exec(copy.read_text(encoding="utf-8"), written)
    assert (written["BETWEEN_RUNS"], written["ERRORS"]) == (1.08, 4)
    assert (statistics.BETWEEN_RUNS, statistics.ERRORS) == (limits.BETWEEN_RUNS, limits.ERRORS)
