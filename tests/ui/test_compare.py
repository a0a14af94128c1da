"""The page's comparison and `leadline diff` are one object."""

from __future__ import annotations

import base64
import json
import threading

import numpy as np
import pytest

from leadline._view_server import ViewServer
from leadline.cli import main as cli
from leadline.profiles import open_profile
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile
from leadline.report.view import View


def program(steps: int):
    """A second a step, after ten seconds of set-up."""
    return build(
        f"""
process train.py | pid=1
  thread main
    python main @ /a/train.py:2 | first_line=1
      python Model.__init__ @ /a/train.py:9
        operator aten::uniform_ | time=10000000000/1 call_time=10000000000/1
    python main @ /a/train.py:5 | first_line=1
      operator aten::mm | time={steps * 900}000000/{steps} call_time={steps * 900}000000/{steps}
    python main @ /a/train.py:6 | first_line=1
      phase optimizer | time={steps * 100}000000/{steps} call_time={steps * 100}000000/{steps}
""".lstrip("\n")
    )


@pytest.fixture
def pair(tmp_path):
    files = [tmp_path / "before.leadline", tmp_path / "after.leadline"]
    for file, steps in zip(files, (10, 100), strict=True):
        write_profile(file, program(steps))
    return files


def test_the_server_delivers_what_diff_prints(pair, capsys):
    view = View([(str(file), open_profile(file)) for file in pair])
    kind, body = view.answer("comparison", {})
    assert cli.main(["diff", *map(str, pair), "--format", "json"]) == 0
    assert kind == "application/json"
    assert json.loads(body) == json.loads(capsys.readouterr().out)
    assert json.loads(View([(str(pair[0]), open_profile(pair[0]))]).answer("comparison", {})[1]) is None


def column(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype)


def test_the_flame_graph_is_drawn_of_what_diff_counts(pair):
    view = View([(str(file), open_profile(file)) for file in pair])
    tree = json.loads(view.answer("compared-tree", {})[1])
    found = json.loads(view.answer("comparison", {})[1])
    parent = column(tree["parent"], "<i4")
    before, after = (column(one, "<f8") for one in tree["metrics"]["time"])
    assert (parent[1:] < np.arange(1, len(parent))).all()
    assert [before.sum(), after.sum()] == [found["work"]["a"], found["work"]["b"]] == [1e9, 1e9]
    calls = [column(one, "<f8").sum() for one in tree["metrics"]["calls"]]
    assert calls == found["calls"]
    for file, rows in zip(pair, tree["rows"], strict=True):
        nodes = open_profile(file).tree.parent[1:]
        mine = column(rows, "<i4")
        assert (parent[mine[1:]] == mine[nodes]).all(), "a child stands below its parent's row"


def test_a_renamed_function_is_one_row_with_both_names():
    def named(name):
        return build(
            f"""
process t.py | pid=1
  thread main
    python {name} @ /a/t.py:10
      operator aten::mm | time=100 call_time=100
      operator aten::exp | time=5 call_time=5
""".lstrip("\n")
        )

    tree = json.loads(View([("a", named("loss")), ("b", named("criterion"))]).answer("compared-tree", {})[1])
    assert [name for _, name in tree["renamed"]] == ["criterion"]
    assert tree["rows"][0] == tree["rows"][1]


def test_an_editor_is_handed_all_that_the_page_asks_for(pair, tmp_path):
    out = tmp_path / "page.json"
    assert cli.main(["view", *map(str, pair), "--data", str(out)]) == 0
    view = View([(str(file), open_profile(file)) for file in pair])
    data = json.loads(out.read_text())
    assert data["comparison"] == json.loads(view.answer("comparison", {})[1])
    assert data["comparedTree"] == json.loads(view.answer("compared-tree", {})[1])
    assert data["reports"] == [json.loads(view.answer(f"report/{index}", {})[1]) for index in (0, 1)]


def test_set_up_is_no_part_of_the_step_on_the_page(pair, browse):
    server = ViewServer(View([(str(file), open_profile(file)) for file in pair]))
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        seen = browse("compare.mjs", server.address)
    finally:
        server.close()
        thread.join(10)
    assert "time of a step\t1.00 s\t1.00 s\t" in seen["step"]
    assert "no clear change" in seen["step"]
    assert "The runs have 10 to 100 steps." in seen["all"]
    assert "No path changed." in seen["all"]
    assert "1.00 s before, 1.00 s after" in seen["all"], "the flame graph counts as the table does"
