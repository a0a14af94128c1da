"""A data set of tensors in memory that a loader asks for one row after the other."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import MS, named

from leadline.analysis.analyze import analyze
from leadline.profiles.build import build

DATASET = "/usr/lib/python3.11/site-packages/torch/utils/data/dataset.py"


def loading(selects: int, other_ms: int = 0, workers: str = "SingleProcess", core_ms: int = 0):
    """The finding of a loop of 10 steps of 10 ms, of which loading takes 6."""
    profile = build(
        f"""
process train.py | pid=5
  thread MainThread | tid=5 wall_ns={100 * MS}
    python main @ /home/ada/train.py:41
      phase data loading | time={20 * MS}/10 call_time={60 * MS}/10 detail={{"loader":"_{workers}DataLoaderIter"}}
        native [waits for a core] | detail={{"wait":"core"}} wait={core_ms * 10 * MS}/10
        python __getitem__ @ {DATASET}:206
          operator aten::select | time={40 * MS - other_ms * 10 * MS}/{selects} call_time={40 * MS}/{selects}
          operator aten::resize | time={other_ms * 10 * MS}/{selects} call_time={other_ms * 10 * MS}/{selects}
    python main @ /home/ada/train.py:42
      operator aten::linear | time={20 * MS}/10 call_time={20 * MS}/10
    python main @ /home/ada/train.py:44
      phase optimizer | time={10 * MS}/10 call_time={10 * MS}/10
    phase step | call_time={90 * MS}/9
""".strip("\n")
    )
    profile.meta.update(program={"argv": ["torchrun", "train.py"], "cwd": "/home/ada"}, host={"cpus": 8})
    return named(analyze(profile), "data_loading")


@pytest.mark.parametrize(("selects", "other_ms", "found"), [(10_000, 0, True), (40, 0, False), (10_000, 3, False)])
def test_rows_that_are_taken_one_by_one_and_nothing_else(selects, other_ms, found):
    one = loading(selects, other_ms)
    assert ("rows are taken from tensors one by one" in one.title) == found
    assert one.remedy.startswith("Take all rows of a batch with one index") == found
    assert (one.measured_by == "leadline prove BEFORE.py AFTER.py") == found


def test_what_of_the_wait_is_for_want_of_a_core_is_said_as_the_account_says_it():
    assert "(20 % because no core was free)" in loading(40, core_ms=2).title
    assert "core" not in loading(40).title


def test_a_program_that_is_found_on_the_path_is_typed_behind_two_dashes():
    assert loading(40).measured_by == "leadline try --fix workers=4 -- torchrun train.py"
