"""What a trial says of a fix before it measures it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from leadline.analysis.findings import Finding, Gain, Severity
from leadline.remedies.registry import find
from leadline.trials import suggest


@pytest.mark.parametrize(("high_ns", "is_predicted"), [(30, True), (31, False)])
def test_a_range_wider_than_a_third_of_the_step_predicts_nothing(
    monkeypatch: pytest.MonkeyPatch, high_ns: int, is_predicted: bool
) -> None:
    """Its fix is tried all the same."""
    gain = Gain(0, 20, high_ns, "bound: what it takes", of_ns=100)
    found = Finding("kernel_fusion", Severity.WARNING, "title", gain, (), (), (), "do it", fix="compile")
    monkeypatch.setattr(suggest, "open_profile", lambda _: None)
    monkeypatch.setattr(suggest, "of_operators", lambda _: (1, ()))
    monkeypatch.setattr(suggest, "analyze", lambda _: SimpleNamespace(findings=(found,)))
    suggestions = suggest.Suggestions(Path("no such file"))
    assert (suggestions.predicted(find("compile", "")) is not None) == is_predicted
    assert "compile" in {remedy.name for remedy, _ in suggestions.remedies()}
