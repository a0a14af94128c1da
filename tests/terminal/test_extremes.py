"""Hostile names, deep trees, narrow windows, broken files: a sentence or a screen that holds, never a traceback."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tests.report.drawings import HOSTILE, hostile
from tests.terminal.looking import look, looks

from leadline.cli.main import main
from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder
from leadline.report.source import visible

REAL = str(Path(__file__).parents[1] / "compat" / "v1-torch.leadline")


def deep(levels: int):
    builder = ProfileBuilder()
    process = builder.process("deep.py", pid=1)
    node = builder.node_of_thread(builder.thread(process, "MainThread", tid=1, wall_ns=10, operator_ns=10))
    for level in range(levels):
        node = builder.child(node, builder.frame("python", f"down_{level}", file="/home/ada/deep.py", line=level + 1))
    builder.add(builder.child(node, builder.frame("operator", "aten::mm")), "time", 1_000_000)
    return builder.profile({})


def test_names_meant_to_break_out_are_shown_as_text():
    seen = looks(hostile(), "2", "x", "i", "3", *["right_square_bracket"] * 8, "1")
    assert all(line.isprintable() for one in seen for line in one.lines)
    tree = seen[3].text
    assert "<img src=x onerror=alert(1)>" in tree
    assert visible(HOSTILE[3]) in tree


def test_names_with_markup_of_the_terminal_library_are_text():
    profile = build(
        """
        process a.py | pid=1
          thread MainThread | tid=1 wall_ns=9 operator_ns=9
            operator [bold]x[/bold][/nothing] | time=9/1 call_time=9/1
        """
    )
    seen = looks(profile, "2", "3", "slash", "TYPE", typed="zebra")
    assert "[bold]x[/bold][/nothing]" in seen[1].text
    assert "[bold]x[/bold][/nothing]" in seen[2].text


def test_a_path_of_five_thousand_frames_can_be_walked_and_says_how_deep_it_is():
    seen = look(deep(5_000), "2", "end")
    assert "›" in seen.text
    found = look(deep(5_000), "slash", "TYPE", typed="down_4999")
    assert found.chosen == "down_4999 · deep.py:5000"


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (20, 6), (250, 70)])
def test_every_page_holds_in_any_window(real, size):
    for seen in looks(real, "2", "3", "4", "question_mark", "escape", size=size):
        assert all(len(line) <= size[0] for line in seen.lines)
    tree = look(real, "2", size=size)
    assert "%" in tree.text


def test_a_profile_without_measurements_is_a_sentence():
    seen = looks(ProfileBuilder().profile({}), "2", "i", "h", "m", "x", "s", "3", "enter", "4")
    assert "Nothing was measured" in seen[1].text
    assert "No operator was measured." in seen[7].text


def test_a_broken_file_is_one_sentence(tmp_path, capsys):
    broken = tmp_path / "broken.leadline"
    broken.write_bytes(b"PK\x03\x04 and then nothing")
    assert main(["view", "--tui", str(broken)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("leadline: ")
    assert said.count("\n") == 1


def test_without_a_terminal_the_command_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(["view", "--tui", REAL]) == 2
    assert "needs a terminal" in capsys.readouterr().err


def test_without_textual_the_command_names_the_extra(tmp_path):
    program = (
        "import sys; sys.modules['textual'] = None\n"
        "from leadline.cli.main import main\n"
        f"sys.exit(main(['view', '--tui', {REAL!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install 'leadline[tui]'" in done.stderr


def test_the_command_runs_in_a_terminal_and_leaves_with_q():
    """The whole way: a pseudo terminal, the key q, exit code 0."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "leadline", "view", "--tui", REAL]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    program = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    said = b""
    asked = False
    try:
        while data := os.read(leader, 65536):
            said += data
            if not asked and b"workload.py" in said:
                os.write(leader, b"q")
                asked = True
    except OSError:
        pass  # the other end is closed: the program has ended
    finally:
        os.close(leader)
    assert program.wait(timeout=60) == 0
    assert asked
