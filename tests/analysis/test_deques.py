"""Items that are taken out of the midst of a deque."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.test_findings import MS
from tests.analysis.test_place import known, on_line

from leadline.analysis.analyze import analyze


@pytest.mark.parametrize(
    ("made", "line", "found"),
    [
        ("self.kept = deque(maxlen=n)", "rows = random.sample(self.kept, 32)", True),
        ("self.kept: deque = collections.deque()", "row = self.kept[i]", True),
        ("self.kept = list()", "rows = random.sample(self.kept, 32)", False),
        ("self.kept = deque()", "row = self.kept[-1]", False),
        ("self.kept = deque()", "row = self.kept.popleft()", False),
    ],
)
def test_items_in_the_midst_of_a_deque_are_walked_to(tmp_path: Path, made: str, line: str, found: bool) -> None:
    file = tmp_path / "data.py"
    file.write_text(f"class Data:\n  def get(self, i):\n    {line}\n\n  def __init__(self, n):\n    {made}\n")
    profile = on_line(f"native work | cpu_sample={50 * MS}/50", file=file, line=3, function="Data.get")
    assert ("a deque, which is walked through" in known(profile, file, 3)) is found
    remedies = [one.remedy for one in analyze(profile) if one.rule == "python_overhead"]
    assert any(one.startswith("Keep the items in a list") for one in remedies) is found
