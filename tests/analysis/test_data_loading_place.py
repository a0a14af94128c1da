"""The remedy for slow samples stands at the line that makes them, not at the loop that waits for them."""

from __future__ import annotations

from pathlib import Path

from tests.analysis.test_findings import MS

from leadline.analysis.analyze import analyze
from leadline.profiles.build import build
from leadline.report import ReportOptions, build_report


def test_what_to_change_is_the_line_that_makes_samples_and_the_page_keeps_the_verdicts_order(tmp_path: Path) -> None:
    file = tmp_path / "data.py"
    file.write_text("def get(self, row):\n  return [re.search(term, row) for term in self.terms]\n")
    profile = build(
        f"""
process train.py | pid=5
  thread MainThread | tid=5 wall_ns={100 * MS}
    python main @ /home/ada/train.py:41
      phase data loading | time={60 * MS}/10 call_time={60 * MS}/10
        python get @ {file}:2
          python search @ /usr/lib/python3.11/re/__init__.py:176
            python compile @ /usr/lib/python3.11/re/_compiler.py:9 | cpu_sample={50 * MS}/50
    python main @ /home/ada/train.py:42
      operator aten::linear | time={20 * MS}/10 call_time={20 * MS}/10
    python main @ /home/ada/train.py:44
      phase optimizer | time={10 * MS}/10 call_time={10 * MS}/10
    phase step | call_time={90 * MS}/9
""".strip("\n")
    )
    (found,) = [one for one in analyze(profile) if one.rule == "data_loading"]
    assert found.remedy.startswith("Compile each pattern once") and found.lines[0].line == 41
    assert found.change_line is not None and (found.change_line.file, found.change_line.line) == (str(file), 2)
    fixes = profile.verdict.fixes
    first = fixes[0]
    assert first.place is not None and (first.place.file, first.place.line) == (str(file), 2)
    start = build_report(profile, ReportOptions(verdict=True)).start
    assert start is not None and [one.do for one in start.help] == [one.do for one in fixes]
