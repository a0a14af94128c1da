"""The page's comparison and `leadline diff` are one object."""

from __future__ import annotations

import json
import threading

import pytest

from leadline.cli import main as cli
from leadline.profiles import open_profile
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile
from leadline.report.server import View, ViewServer


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
