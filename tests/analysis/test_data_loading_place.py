"""The remedy for slow samples stands at the line that makes them, not at the loop that waits for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.analysis.test_findings import MS

from leadline.analysis.analyze import analyze
from leadline.profiles.build import build
from leadline.profiles.profile import Profile
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


def loaded_by_workers(library: str) -> Profile:
    """Ten steps of 10 ms, of which 4 are a wait for data that two workers make, nearly all of it in a library."""
    loading = f'time={40 * MS}/10 call_time={40 * MS}/10 detail={{"loader":"_MultiProcessingDataLoaderIter"}}'
    children = "".join(
        f"""
process train.py | pid={number} parent_pid=5 start_ns=0 end_ns={100 * MS}
  thread worker
    phase data loading | time={90 * MS}/10 call_time={90 * MS}/10
      python get @ /home/ada/data.py:2
        python work @ /usr/lib/python3.11/{library}:9 | cpu_sample={57 * MS}/57
      python collate @ /home/ada/data.py:8 | cpu_sample={3 * MS}/3"""
        for number in (20, 21)
    )
    profile = build(
        f"""
process train.py | pid=5 start_ns=0 end_ns={100 * MS}
  thread MainThread | tid=5 wall_ns={100 * MS}
    python main @ /home/ada/train.py:41
      phase data loading | {loading}
    python main @ /home/ada/train.py:42
      operator aten::linear | time={40 * MS}/10 call_time={40 * MS}/10
    python main @ /home/ada/train.py:44
      phase optimizer | time={10 * MS}/10 call_time={10 * MS}/10
    phase step | call_time={90 * MS}/9{children}
""".strip("\n")
    )
    profile.meta["host"] = {"cpus": 2}
    return profile


@pytest.mark.parametrize(
    ("library", "remedy", "least_ms", "most_ms"),
    [("zipfile.py", "Decompress once", 3.9, 4), ("json/decoder.py", "Make each sample cheaper", 0.5, 2)],
)
def test_workers_whose_samples_become_cheap_end_the_wait(
    library: str, remedy: str, least_ms: float, most_ms: float
) -> None:
    """The wait is what making a batch takes beyond a step: it ends before all of that is spared."""
    (found,) = [one for one in analyze(loaded_by_workers(library)) if one.rule == "data_loading"]
    assert found.remedy.startswith(remedy)
    assert least_ms * MS <= found.gain.expected_ns <= most_ms * MS


def crowded(file: Path, worker_ms: int, in_line_ms: int) -> Profile:
    """Ten steps of 100 ms on two cores; a worker makes batches in time, for `worker_ms` of each step, while the loop's
    thread stands in line for a core `in_line_ms` of it."""
    npz = "/usr/lib/python3.11/site-packages/numpy/lib/_npyio_impl.py"
    file.write_text("class Songs:\n  def __getitem__(self, i):\n    return self.shard['mel'][i]\n")
    os.utime(file, (0, 0))  # older than the run
    wall, ran = 1000 * MS, (100 - in_line_ms) * MS
    profile = build(
        f"""
process train.py | pid=5 start_ns=0 end_ns={wall}
  thread MainThread | tid=5 wall_ns={wall} cpu_ns={wall - 10 * in_line_ms * MS}
    python main @ /home/ada/train.py:41
      phase data loading | time={MS}/10 call_time={MS}/10 detail={{"loader":"_MultiProcessingDataLoaderIter"}}
    python main @ /home/ada/train.py:42
      operator aten::linear | time={900 * MS}/10 call_time={900 * MS}/10
    phase step | call_time={900 * MS}/9 step_running={9 * ran}/9 step_core_wait={9 * in_line_ms * MS}/9
process train.py | pid=20 parent_pid=5 start_ns=0 end_ns={wall}
  thread worker | tid=20 wall_ns={wall} cpu_ns={10 * worker_ms * MS}
    phase data loading | time={10 * worker_ms * MS}/10 call_time={10 * worker_ms * MS}/10
      python Songs.__getitem__ @ {file}:3
        python NpzFile.__getitem__ @ {npz}:257 | cpu_sample={10 * worker_ms * MS}/100
""".strip("\n")
    )
    profile.meta["host"] = {"cpus": 2}
    return profile


@pytest.mark.parametrize(("worker_ms", "in_line_ms", "named"), [(80, 40, True), (80, 5, False), (10, 40, False)])
def test_a_worker_that_is_never_late_but_takes_the_core_is_named_with_its_line(
    worker_ms: int, in_line_ms: int, named: bool, tmp_path: Path
) -> None:
    profile = crowded(tmp_path / "data.py", worker_ms, in_line_ms)
    found = [one for one in analyze(profile) if one.rule == "data_loading"]
    assert [one.change_line.line for one in found if one.change_line] == ([3] if named else [])
    if named:
        assert found[0].title.startswith("Making batches takes 40 % of the cores' time")
        assert found[0].remedy.startswith("Read the arrays of the .npz file once")
        assert 0 < found[0].gain.expected_ns <= in_line_ms * MS


def test_rows_of_a_table_are_to_be_made_arrays_once(tmp_path: Path) -> None:
    """Its classes take the time by the methods that the line calls, on several lines of the library."""
    file = tmp_path / "data.py"
    file.write_text("class Sales:\n  def __getitem__(self, i):\n    return self.frame.iloc[i]['sold']\n")
    pandas = "/usr/lib/python3.11/site-packages/pandas/core"
    profile = build(
        f"""
process train.py | pid=5
  thread MainThread | tid=5 wall_ns={100 * MS}
    python main @ /home/ada/train.py:41
      phase data loading | time={60 * MS}/10 call_time={60 * MS}/10
        python Sales.__getitem__ @ {file}:3 | cpu_sample={5 * MS}/5
          python Series.__getitem__ @ {pandas}/series.py:900
            python _get_with @ {pandas}/series.py:950 | cpu_sample={25 * MS}/25
          python _LocationIndexer.__getitem__ @ {pandas}/indexing.py:12 | cpu_sample={20 * MS}/20
    python main @ /home/ada/train.py:42
      operator aten::linear | time={20 * MS}/10 call_time={20 * MS}/10
    phase step | call_time={90 * MS}/9
""".strip("\n")
    )
    found = [one for one in analyze(profile) if one.rule == "data_loading"]
    assert found[0].remedy.startswith("Convert the columns to arrays once")
    assert found[0].change_line is not None and found[0].change_line.file == str(file)
    assert not [one for one in analyze(profile) if "outside operators" in one.title]  # loading has its own finding
