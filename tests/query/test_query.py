"""What a user who asks a profile in one line reads back."""

from __future__ import annotations

import fnmatch
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.cli import main as cli
from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.profiles.writer import write_profile
from leadline.query import QueryError
from leadline.query.paths import glob_regex

DRAWN = """
    process train.py | pid=7 rank=0
      thread MainThread
        python main @ /home/u/train.py:3
          python step @ /home/u/train.py:10
            module model.h.0.attn [Attention]
              operator aten::linear #linear | time=5000,7000 call_time=9000,11000 alloc_bytes=1000,3000
                operator aten::mm #mm | time=3000,5000 call_time=3000,5000
                  kernel sgemm | gpu_time@0:7=100,200
                  phase backward
                    operator aten::mm | time=9000 call_time=9000
                      kernel sgemm | gpu_time@1:7=400
            module model.h.1.attn [Attention]
              operator aten::linear | time=2000 call_time=2000
          python step @ /home/u/train.py:12
            phase optimizer | time=0,0,0,0 call_time=2000,2000,2000,2000
              operator aten::item | time=500,500,500,500 call_time=500,500,500,500
          python show @ /home/u/lib/log.py:41
            operator aten::item | time=1500 call_time=1500
    process worker.py | pid=8 rank=1
      thread Loader
        python fetch @ /home/u/train.py:40
          operator aten::stack | time=8000 call_time=8000
"""
EVENTS = """
    start_ns duration_ns kind     node   thread device step
    100      9000        operator linear 0      -1     0
    9000     3000        operator mm     0      -1     0
    20000    5000        operator mm     0      -1     1
    21000    200         kernel   mm     -1     0      1
"""


@pytest.fixture
def profile() -> Profile:
    return build(DRAWN, events=EVENTS)


def names(profile: Profile, text: str) -> list[str]:
    return [f"{node.kind} {node.name}" for node in profile.query(text).nodes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("operator:aten::linear", ["operator aten::linear"] * 2),
        ("aten::stack", ["operator aten::stack"]),
        ("operator:aten::* where time >= 8us sort time", ["aten::stack", "aten::mm", "aten::mm", "aten::linear"]),
        ('operator:r"^aten::(mm|stack)$" sort name', ["aten::mm", "aten::mm", "aten::stack"]),
        ("operator:'aten::*'", []),  # quotes mean exactly that text
        ("python:train.py sort line", ["main", "step", "step", "fetch"]),
        ('python:"lib/log.py"', ["show"]),
        ("python:*@log.py:41", ["show"]),
        ("python:train.py:12", ["step"]),
        ("python:main operator:aten::stack", []),
        ("python:main ... kernel:*", ["sgemm", "sgemm"]),
        ("python:main // kernel:*", ["sgemm", "sgemm"]),
        ("python:main / operator:*", []),
        ("module:*attn/operator:* sort -time", ["aten::linear", "aten::linear"]),
        ("phase:backward//operator:*", ["aten::mm"]),
        ("operator:*[calls = 2] kernel:* where gpu_time.count > 1", ["sgemm"]),
        ("process:worker.py ... / operator:*", ["aten::stack"]),
        ("module:model.h.?.attn where above(kernel:*)", ["model.h.0.attn"]),
        ("operator:* where under(phase:optimizer)", ["aten::item"]),
        ("operator:* where calls(kernel:sgemm)", ["aten::mm", "aten::mm"]),
        ("operator:aten::item where phase != optimizer", ["aten::item"]),
        ("operator:* where not (phase in (optimizer, backward) or rank = 0)", ["aten::stack"]),
        ("operator:* where file = log.py and line = 41", ["aten::item"]),
        ("kernel:* where device = 1", ["sgemm"]),
        ("operator:* where thread ~ '^Load' and device = cpu", ["aten::stack"]),
        ("operator:* where module = model.h.0.attn and phase = ''", ["aten::linear", "aten::mm"]),
        ("operator:* where class = Attention and time.max > 2 * time.min", []),
        ("operator:aten::linear where alloc_bytes.max > 2.5 * alloc_bytes.min", ["aten::linear"]),
        ("operator:* where self > 25%", ["aten::linear"]),
        ("operator:* where alloc_bytes > 0.003MB", ["aten::linear"]),
        ("operator:* where (time.max - time.min) / time.max > 25% and calls < 3", ["aten::linear", "aten::mm"]),
        ("operator:* where cpu_time.mean > 7us sort name", ["aten::mm", "aten::stack"]),
    ],
)
def test_a_query_finds_these_nodes(profile, text, expected):
    found = profile.query(text).nodes
    assert [f"{node.kind} {node.name}" if " " in (expected or [""])[0] else node.name for node in found] == expected


def test_costliest_first_unless_asked_otherwise_and_with_units(profile):
    result = profile.query("operator:aten::linear")
    assert result["time"].tolist() == [29000, 2000]
    assert result["self"].tolist() == [12000, 2000]
    assert result["calls"].tolist() == [2, 1]
    assert result["line"].tolist() == [10, 10]
    assert result["file"].tolist() == ["/home/u/train.py"] * 2
    assert (result.units["time"], result.units["alloc_bytes"]) == ("ns", "bytes")
    assert profile.query("operator:* sort time top 1")["time"].tolist() == [1500]


def test_groups_add_up_and_count_nested_work_once(profile):
    by_name = {row["name"]: row for row in profile.query("operator:* by name")}
    assert by_name["aten::mm"]["self"] == 17000
    assert by_name["aten::mm"]["time"] == 17000  # the backward one lies below the forward one
    assert by_name["aten::mm"]["nodes"] == 2
    assert by_name["aten::mm"]["calls"] == 3
    assert sum(row["self"] for row in by_name.values()) == profile.tree.root.inclusive("time").sum
    lines = profile.query("operator:aten::item by line")
    assert list(zip(lines["file"], lines["line"], lines["calls"], strict=True)) == [
        ("/home/u/train.py", 12, 4),
        ("/home/u/lib/log.py", 41, 1),
    ]


def test_shares_and_steps(profile):
    result = profile.query("operator:* by phase show self.share, self.per_step sort -self")
    assert result["self.share"].sum() == pytest.approx(1.0)
    assert (
        dict(zip(result["phase"], result["self.per_step"], strict=True))["optimizer"] == 1000
    )  # four calls for two gradients
    (row,) = profile.query("kernel:* by rank show gpu_time, gpu_time.mean, gpu_time.max, gpu_time.std")
    assert (row["rank"], row["gpu_time"], row["gpu_time.max"]) == (0, 700, 400)
    assert row["gpu_time.mean"] == pytest.approx(700 / 3)
    assert row["gpu_time.std"] == pytest.approx(np.std([100, 200, 400]))


def test_events_of_the_window_by_their_path(profile):
    result = profile.query("events operator:aten::mm where event = operator sort start")
    assert result["duration"].tolist() == [3000, 5000]
    assert result["start"].tolist() == [8900, 19900]
    by_step = profile.query("events * where duration > 1us by step show duration.max, calls")
    assert {row["step"]: (row["duration.max"], row["calls"]) for row in by_step} == {0: (9000, 2), 1: (5000, 1)}
    with pytest.raises(QueryError, match="no trace window"):
        build(DRAWN).query("events operator:*")


def test_tables_of_other_libraries(profile):
    result = profile.query("operator:* by name")
    pandas, polars, arrow = pytest.importorskip("pandas"), pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for table, kind in (
        (result.to_pandas(), pandas.DataFrame),
        (result.to_polars(), polars.DataFrame),
        (result.to_arrow(), arrow.Table),
    ):
        assert isinstance(table, kind)
        assert list(table["self"]) == result["self"].tolist() or table["self"].to_pylist() == result["self"].tolist()


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("", 1, "a path is expected"),
        ("operater:mm", 1, "no kind of frame called 'operater'"),
        ("operator:", 10, "a name is expected after 'operator:'"),
        ("operator:* /", 13, "a step is expected"),
        ("operator:* wher time > 1ms where", 33, "value is expected"),
        ("operator:* where tiem > 1ms", 18, "did you mean time"),
        ("operator:* where time.median > 1ms", 23, "no statistic 'median'"),
        ("operator:* where time > 5", 25, "give it a unit"),
        ("operator:* where time > 5MB", 25, "a time cannot be compared with a size"),
        ("operator:* where time > 5 minutes", 27, "no unit 'minutes'"),
        ("operator:* where time", 22, "a comparison is expected"),
        ("operator:* where name ~ '('", 25, "not a regular expression"),
        ('operator:r"["', 10, "not a regular expression"),
        ("operator:'aten", 10, "never closed"),
        ("operator:* where under(kernel:*", 32, "')' is expected"),
        ("operator:* where (time > 5ms", 29, "')' is expected"),
        ("operator:*[time > 5ms", 22, "']' is expected"),
        ("operator:* top ten", 16, "a whole number"),
        ("operator:* top 5 sort time", 18, "'sort' comes once and before 'top'"),
        ("operator:* by time", 15, "can be grouped by"),
        ("operator:* show", 16, "a field is expected"),
        ("operator:* where call_time.share > 1%", 18, "has no share"),
        ("operator:* where name > 'a'", 23, "texts can be compared with"),
        ("operator:* where time * time > 1ms", 23, "has no unit"),
        ("operator:* where " + "(" * 100 + "1", None, "nested more than"),
        ("operator:* where not " * 1 + "not " * 90 + "time > 1ms", None, "nested more than"),
    ],
)
def test_a_wrong_query_is_one_sentence_with_the_place(profile, text, column, says):
    with pytest.raises(QueryError) as caught:
        profile.query(text)
    sentence = str(caught.value)
    assert says in sentence
    assert "\n" not in sentence
    if column is not None:
        assert f"at column {column}," in sentence


def test_a_profile_without_steps_says_so(profile):
    with pytest.raises(QueryError, match="no steps"):
        build("operator aten::mm | time=5").query("operator:* show time.per_step")


def test_nothing_found_says_the_likely_reason(profile):
    assert "names like it are aten::mm" in profile.query("operator:mm").note
    assert "no frames of kind collective" in profile.query("collective:*").note
    assert "no matching node meets the condition" in profile.query("operator:* where time > 1s").note


def test_a_deep_and_thin_tree_is_answered():
    lines = [" " * (2 * level) + f"python f{level % 7} @ deep.py:{level + 1}" for level in range(3000)]
    deep = build("\n".join([*lines, " " * 6000 + "operator aten::mm | time=5"]))
    assert len(deep.query("python:f3 ... operator:*")) == 1
    assert len(deep.query("python:* where above(operator:aten::mm)")) == 3000


def test_the_command(profile, tmp_path, capsys):
    path = str(tmp_path / "run.leadline")
    write_profile(path, profile)
    assert cli.main(["query", path, "operator:* by name top 2"]) == 0
    text = capsys.readouterr().out
    assert "17.0 µs" in text
    assert "aten::mm" in text
    assert cli.main(["query", path, "operator:* by name", "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name,nodes,calls,self,self.share,time,gpu_time,alloc_bytes"
    assert len(lines) == 5
    assert cli.main(["query", path, "operator:* by name", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["columns"]["self"] == "ns"
    assert answer["row_count"] == 4
    assert cli.main(["query", path, "operator:mm"]) == 0
    assert "names like it" in capsys.readouterr().out
    assert cli.main(["query", path, "operator:mm", "--format", "csv"]) == 0
    found = capsys.readouterr()
    assert found.out.count("\n") == 1 and "names like it" in found.err
    assert cli.main(["query", path, "operator:* where"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("leadline: The query is wrong at column 17")
    assert error.count("\n") == 1


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=10))
def test_globs_mean_what_the_shells_do(glob: str, text: str) -> None:
    assert bool(re.fullmatch(glob_regex(glob), text, re.DOTALL)) == fnmatch.fnmatchcase(text, glob)


def test_a_glob_with_many_stars_is_answered_at_once() -> None:
    """Without bounds this takes longer than any limit of a test."""
    assert re.fullmatch(glob_regex("*a*a*a*a*a*a*a*a*b"), "a" * 5000) is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("operator:* wher calls > 3", "column 12.*did you mean 'where'"),
        ("operator:* sortt -self", "column 12.*did you mean 'sort'"),
        ("operator:* where duration > 1ms", "field of single events; begin the query with 'events'"),
        ("operator:* where " + " and ".join(["calls > 1"] * 600), "at most 500 conditions"),
        ("operator:* where calls > " + "+".join(["1"] * 4000), "at most 500 conditions"),
    ],
)
def test_slips_are_named_where_they_are(profile, text, sentence):
    with pytest.raises(QueryError, match=sentence):
        profile.query(text)


def test_groups_without_time_of_their_own_are_ordered_by_what_is_below(profile):
    times = profile.query("python:* by function")["time"].tolist()
    assert times == sorted(times, reverse=True)
    assert len(set(times)) > 1
