"""The ledger's figures, of entries with known answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leadline.trials import ledger


def _entry(measured: float, predicted: tuple[float, float, float] | None) -> dict[str, Any]:
    return {
        "program": "train.py",
        "remedy": "autocast",
        "measured": {"median": measured, "low": measured - 0.01, "high": measured + 0.01},
        "predicted": dict(zip(("median", "low", "high"), predicted, strict=True)) if predicted else None,
    }


def test_coverage_sharpness_and_error() -> None:
    entries = [
        _entry(-0.30, (-0.28, -0.35, -0.20)),  # held, 0.02 off, half of 0.15
        _entry(-0.10, (-0.20, -0.30, -0.15)),  # not held, 0.10 off, half of 0.15
        _entry(0.00, (-0.01, -0.05, 0.01)),  # held, 0.01 off, half of 0.06
        _entry(-0.5, None),
    ]
    found = ledger.summary(entries)
    assert (found.measured, found.predicted, found.held) == (4, 3, 2)
    assert found.error == pytest.approx(0.02)
    assert found.half_width == pytest.approx(0.075)
    assert found.error_95 == pytest.approx(0.10)


def test_lines_that_are_no_entries_are_counted_and_lose_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / ledger.NAME
    path.write_text(json.dumps(_entry(-0.3, None)) + "\nnot json\n{}\n\n" + json.dumps(_entry(-0.2, None)) + "\n")
    entries, bad = ledger.read(path)
    assert [one["measured"]["median"] for one in entries] == [-0.3, -0.2]
    assert bad == 2


def test_the_newest_entry_of_each_remedy_counts() -> None:
    found = ledger.measured_of([_entry(-0.3, None), _entry(-0.2, None)], "train.py")
    assert found["autocast"]["measured"]["median"] == -0.2
    assert ledger.measured_of([_entry(-0.3, None)], "other.py") == {}
