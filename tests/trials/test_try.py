"""`leadline try` from outside: what is said of programs whose steps have a known length."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.trials.programs import leadline, tried, write_program


def test_a_remedy_that_halves_the_step_is_faster_by_half_and_one_that_does_nothing_says_so(tmp_path: Path) -> None:
    found = tried("--remedy", "mine.py:half", "--remedy", "mine.py:nothing", "train.py", cwd=write_program(tmp_path))
    baseline, half, nothing = found["rows"]
    assert found["rounds"] >= 5
    assert found["mark"] == "leadline.step"
    assert baseline["step_ns"] == pytest.approx(8e6, rel=0.5)
    assert half["verdict"] == "faster"
    assert half["change"]["low"] <= half["change"]["median"] <= half["change"]["high"] < 0
    assert -0.6 < half["change"]["median"] < -0.25
    assert nothing["verdict"] == "not applied"
    assert nothing["sentence"] == "not applied: there is nothing here for it"
    assert nothing["change"] is None


def test_a_remedy_that_ends_the_program_fails_alone_and_its_last_lines_are_shown(tmp_path: Path) -> None:
    write_program(tmp_path)
    words = ("--no-predict", "--steps", "8", "--warm-up", "2", "--remedy", "mine.py:broken", "--remedy", "mine.py:half")
    text = leadline("try", *words, "train.py", cwd=tmp_path).stdout
    assert "failed with exit code 1" in text
    assert "TypeError" in text
    assert "faster by" in text


def test_the_users_files_are_as_they_were_whatever_the_program_writes(tmp_path: Path) -> None:
    program = """
import leadline, os, pathlib, time
pathlib.Path("out.txt").write_text("mine")
pathlib.Path("kept.txt").unlink()
pathlib.Path("changed.txt").write_text("other")
for _ in range(20):
    time.sleep(0.002)
    leadline.step()
"""
    write_program(tmp_path, program)
    (tmp_path / "kept.txt").write_text("kept")
    (tmp_path / "changed.txt").write_text("as it was")
    tried("--no-ledger", "--remedy", "mine.py:nothing", "train.py", cwd=tmp_path)
    names = {one.name for one in tmp_path.iterdir()} - {"__pycache__"}
    assert names == {"pace.py", "train.py", "mine.py", "kept.txt", "changed.txt"}
    assert (tmp_path / "kept.txt").read_text() == "kept"
    assert (tmp_path / "changed.txt").read_text() == "as it was"


def test_in_place_lets_the_program_write(tmp_path: Path) -> None:
    write_program(tmp_path, "import leadline\nopen('out.txt', 'w')\nfor _ in range(20): leadline.step()\n")
    tried("--in-place", "--no-ledger", "--remedy", "mine.py:nothing", "train.py", cwd=tmp_path)
    assert (tmp_path / "out.txt").exists()


def test_the_program_ends_in_order_behind_the_last_step(tmp_path: Path) -> None:
    program = """
import atexit, leadline, pathlib, sys
note = pathlib.Path(sys.argv[1])
count = 0
try:
    while True:
        count += 1
        leadline.step()
finally:
    with note.open("a") as file:
        file.write(f"{count} ")
"""
    write_program(tmp_path, program)
    note = tmp_path.parent / f"{tmp_path.name}.note"
    tried("--remedy", "mine.py:nothing", "--rounds", "2", "train.py", str(note), cwd=tmp_path)
    assert set(note.read_text().split()) == {"14"}


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("print('done')\n", "has no step"),
        ("import leadline\nfor _ in range(3): leadline.step()\n", "ends after 3 steps, too few"),
        ("input('name? ')\n", "reads from the terminal"),
        ("raise ValueError('by itself')\n", "failed with exit code 1 without any fix"),
    ],
)
def test_a_program_that_cannot_be_compared_says_why_in_a_sentence(tmp_path: Path, program: str, sentence: str) -> None:
    write_program(tmp_path, program)
    done = leadline("try", "--no-predict", "--remedy", "mine.py:nothing", "train.py", cwd=tmp_path, code=1)
    assert sentence in done.stderr
    assert "Traceback (most recent call last)" not in done.stdout


def test_a_program_with_few_steps_is_compared_on_those(tmp_path: Path) -> None:
    found = tried("--remedy", "mine.py:half", "train.py", "9", cwd=write_program(tmp_path))
    assert (found["steps"], found["warm_up"]) == (7, 2)
    assert "The program has 9 steps" in " ".join(found["notes"])


def test_ports_and_files_outside_are_named_before_the_first_round(tmp_path: Path) -> None:
    outside = Path("/var/tmp") / f"leadline-{os.getpid()}.txt"
    program = f"""
import leadline, socket, time
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); port = listener.getsockname()[1]; listener.close()
listener = socket.socket(); listener.bind(("127.0.0.1", port))
open({str(outside)!r}, "w").close()
for _ in range(20):
    leadline.step()
"""
    write_program(tmp_path, program)
    try:
        words = ("--steps", "8", "--no-predict", "--remedy", "mine.py:nothing", "--rounds", "2")
        done = leadline("try", *words, "train.py", cwd=tmp_path)
    finally:
        outside.unlink(missing_ok=True)
    before = done.stderr.partition("round 1")[0]
    assert "opens port" in before
    assert str(outside) in before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_with_the_table_so_far_and_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    write_program(tmp_path)
    words = ["try", "--no-predict", "--steps", "12", "--warm-up", "2", "--rounds", "25", "--remedy", "mine.py:half"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    process = subprocess.Popen(
        [sys.executable, "-m", "leadline", *words, "train.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "round 4" in line:
            os.kill(process.pid, number)
            break
    text, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    assert "Ctrl-C ended the trial" in text
    assert "half" in text
    until = time.monotonic() + 20
    while _running(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _running(tmp_path)


def _running(folder: Path) -> list[str]:
    found = []
    for one in Path("/proc").iterdir():
        try:
            if one.name.isdigit() and (one / "cwd").resolve() == folder and one.name != str(os.getpid()):
                found.append(one.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("remedy", "sentence"),
    [
        ("fusd_optimizer", "did you mean fused_optimizer?"),
        ("workers", "write workers=N"),
        ("workers=-1", "a whole number from 0 on"),
        ("autocast=int8", "takes bf16, fp16"),
        ("compile=fast", "takes default, reduce-overhead, max-autotune"),
        ("gc_freeze=3", "takes no value"),
        ("batch=x0", "a factor such as batch=x2"),
        ("missing.py", "there is no such file"),
        ("pace.py", "defines no fix"),
        ("bad.py", "SyntaxError"),
    ],
)
def test_a_remedy_that_does_not_exist_is_a_sentence(tmp_path: Path, remedy: str, sentence: str) -> None:
    write_program(tmp_path)
    (tmp_path / "bad.py").write_text("def\n")
    done = leadline("try", "--remedy", remedy, "train.py", cwd=tmp_path, code=2)
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_every_remedy_is_listed_with_what_it_changes() -> None:
    text = leadline("try", "--list", cwd=Path.cwd()).stdout
    assert {"autocast", "compile", "fused_optimizer", "workers=N"} <= {
        line.split()[0].partition("=bf16")[0].partition("=default")[0] for line in text.splitlines()
    }


def test_the_ledger_of_a_trial_can_be_read_back(tmp_path: Path) -> None:
    write_program(tmp_path)
    tried("--remedy", "mine.py:half", "train.py", cwd=tmp_path)
    done = leadline("ledger", "--format", "json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert [one["remedy"] for one in found["entries"]] == ["half"]
    assert found["summary"]["measured"] == 1
    assert found["summary"]["predicted"] == 0
    assert "half" in leadline("ledger", cwd=tmp_path).stdout


def test_a_missing_ledger_is_a_sentence(tmp_path: Path) -> None:
    assert "`leadline try` writes one" in leadline("ledger", cwd=tmp_path, code=2).stderr
