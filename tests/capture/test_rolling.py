"""`leadline run --every`: a file for each stretch of a program that goes on, whole at every moment; together they are
the whole."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leadline._package import write_json
from leadline.capture.durations import seconds
from leadline.capture.errors import ProfileError
from leadline.capture.part import PartDirectory
from leadline.capture.rolling import Keep, Rolling, _locked
from leadline.profiles import ProfileFileError, open_profile
from leadline.profiles import roll_marks as marks
from leadline.steps import Steps
from leadline.steps.of_profile import steps_of

REGIONS = """
import leadline, os, sys, time
end = time.monotonic() + float(sys.argv[1])
done = 0
told = os.open("begun", os.O_CREAT | os.O_WRONLY)
while time.monotonic() < end:
    os.pwrite(told, b"%9d" % (done + 1), 0)
    with leadline.region("work"):
        with leadline.region("inner"):
            time.sleep(0.002)
    done += 1
print(done, flush=True)
"""


def command(folder: Path, *words: object) -> list[str]:
    return [sys.executable, "-m", "leadline", "run", "-q", "-o", str(folder / "out.leadline"), *map(str, words)]


def started(folder: Path, *words: object) -> subprocess.Popen:
    (folder / "program.py").write_text(REGIONS)
    return subprocess.Popen(
        command(folder, "--every", "1s", "--flush-interval", "0.2", *words),
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )


def regions(path: Path, name: str) -> int:
    return sum(node.exclusive("call_time").count for node in open_profile(path).tree.find(name=name, kind="region"))


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("out_*.leadline"))


def wait_for(what, seconds: float = 60):
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def test_files_that_follow_one_another_add_up_to_the_whole(tmp_path: Path) -> None:
    program = started(tmp_path, "program.py", 5)
    out, _ = program.communicate(timeout=120)
    assert program.returncode == 0
    made = files(tmp_path)
    assert len(made) >= 2
    assert not (tmp_path / "out.leadline").exists() and not (tmp_path / "out.leadline.part").exists()
    assert sum(regions(path, "work") for path in made) == sum(regions(path, "inner") for path in made) == int(out)
    opened = [open_profile(path) for path in made]
    for before, after in itertools.pairwise(opened):
        assert after.processes[0].start_ns == before.processes[0].end_ns
    merged = tmp_path / "whole.leadline"
    assert subprocess.run([sys.executable, "-m", "leadline", "merge", *made, "-o", merged], timeout=120).returncode == 0
    assert regions(merged, "work") == int(out)
    assert opened[1].meta["rolled"]["bounds"] >= 0 and opened[1].meta["complete"]
    for profile in opened:  # each says what measuring cost in its own time
        cost, work = (
            profile.meta["cost"],
            sum(node.exclusive("call_time").count for node in profile.tree.find(kind="region")),
        )
        assert work <= cost["events"] <= 4 * work + 100
        assert 0 <= cost["percent"] < 100 and cost["held_bytes"] > 0  # an estimate of a second may find nothing


def children(pid: int) -> dict[int, list[bytes]]:
    """Commands of a process's children, by their numbers."""
    found = {}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(OSError):  # it has ended
            found[int(child)] = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
    return found


def makers(pid: int) -> list[int]:
    return [child for child, words in children(pid).items() if any(b"profiles.roll" in word for word in words)]


@pytest.mark.parametrize("when", ["between files", "while a file is made", "and its maker too"])
def test_every_file_is_readable_when_everybody_is_killed(tmp_path: Path, when: str) -> None:
    """The supervisor and the program, at any moment: what is there is whole, and what is missing is recovered once,
    also where the process that writes a file outlives them."""
    program = started(tmp_path, "program.py", 600)
    wait_for(lambda: len(files(tmp_path)) >= 2)
    (child,) = [pid for pid, words in children(program.pid).items() if words[1:3] == [b"program.py", b"600"]]
    making = [] if when == "between files" else wait_for(lambda: makers(program.pid))
    program.kill()
    for pid in [child, *(making if when == "and its maker too" else [])]:
        os.kill(pid, signal.SIGKILL)
    program.wait(timeout=60)
    part = tmp_path / "out.leadline.part"
    recover = [sys.executable, "-m", "leadline", "recover", str(part)]
    done = subprocess.run(recover, timeout=180, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 or "holds nothing that its last file does not hold" in done.stderr
    made = files(tmp_path) + list(tmp_path.glob("out.leadline"))
    begun = int((tmp_path / "begun").read_text())
    assert 0 < sum(regions(path, "work") for path in made) <= begun, "none is counted twice"
    opened = [open_profile(path).processes[0] for path in made]
    for before, after in itertools.pairwise(opened):
        assert after.start_ns == before.end_ns


def test_recovering_waits_for_whoever_writes_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The maker of a file outlives its supervisor: recovered before it is there, its time would be in both."""
    mark = tmp_path / "out.leadline.part" / ("0" * 16) / "marks" / "1"
    mark.mkdir(parents=True)
    file = tmp_path / "out_20260101T000000Z.leadline"
    write_json(mark / "file", {"file": str(file), "going_on": []})
    (held,) = _locked(mark / "file")
    rests = []

    def rest() -> None:
        rests.append(file.exists())
        if len(rests) == 2:
            file.write_bytes(b"whole")
            os.close(held)

    monkeypatch.setattr(marks, "_rest", rest)
    assert marks.last_mark(tmp_path / "out.leadline.part") is None
    assert marks.settled_mark(tmp_path / "out.leadline.part") == mark
    assert rests == [False, False]
    other = _locked(mark / "file")
    monkeypatch.setattr(marks, "_PATIENCE_S", 0)
    with pytest.raises(ProfileFileError, match="still being written"):
        marks.settled_mark(tmp_path / "out.leadline.part")
    os.close(other[0])


def test_only_so_many_files_stay(tmp_path: Path) -> None:
    stranger = tmp_path / "out_20200101T000000Z.txt"
    stranger.write_text("mine")
    old = tmp_path / "out_20200101T000000Z.leadline"
    old.write_bytes(b"of an earlier run")
    os.utime(old, (1, 1))
    program = started(tmp_path, "--keep", "2", "program.py", 5)
    program.communicate(timeout=120)
    assert len(files(tmp_path)) == 2 and stranger.exists() and not old.exists()


@pytest.mark.parametrize(
    ("text", "kept"),
    [("24h", Keep(86400, 0)), ("100", Keep(0, 100)), ("1h30min,7", Keep(5400, 7)), ("", Keep())],
)
def test_what_keep_means(text: str, kept: Keep) -> None:
    assert Keep.parse(text) == kept


@pytest.mark.parametrize("text", ["yesterday", "0", "-3", "10 min", "24h,now"])
def test_what_keep_cannot_mean(text: str) -> None:
    with pytest.raises(ProfileError, match="write"):
        Keep.parse(text)


@pytest.mark.parametrize("text", ["10", "min", "0s", "3weeks", "1h 2min", ""])
def test_what_no_time_is(text: str) -> None:
    with pytest.raises(ProfileError):
        seconds(text, "--every")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--every", "1s"], "--flush-interval"),
        (["--keep", "24h"], "--roll"),
        (["--every", "soon"], "--roll"),
    ],
)
def test_refusals_are_one_sentence(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "p.py").write_text("raise SystemExit(9)")
    done = subprocess.run(command(tmp_path, *words, "p.py"), cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_age_counts_from_when_a_file_was_written_and_the_newest_stays(tmp_path: Path) -> None:
    part = PartDirectory(tmp_path / "out.leadline.part", "0" * 16, tmp_path / "out.leadline")
    names = [tmp_path / f"out_20260101T00000{second}Z.leadline" for second in range(3)]
    for age, path in zip((5000, 3000, 2000), names, strict=True):
        path.write_bytes(b"")
        os.utime(path, (time.time() - age,) * 2)
    left = tmp_path / ".out_20260101T000009Z.leadline.0123456789abcdef.tmp"
    left.write_bytes(b"half")
    Rolling(part, 60, Keep(2500, 0), print).remove_old()
    assert [path.exists() for path in names] == [False, False, True] and not left.exists()
    Rolling(part, 60, Keep(1, 0), print).remove_old(names[2])
    assert names[2].exists()


def test_ended_processes_leave_the_part_directory(tmp_path: Path) -> None:
    """A loader that forks new workers for weeks must not fill the disk."""
    (tmp_path / "program.py").write_text(
        "import leadline, os, time\n"
        "end = time.monotonic() + 4\n"
        "while time.monotonic() < end:\n"
        "    if not (child := os.fork()):\n"
        "        with leadline.region('child'): pass\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "    time.sleep(0.05)\n"
        "print(len(list(__import__('pathlib').Path(os.environ['LEADLINE_SESSION']).glob('*.segment'))))\n"
    )
    run = command(tmp_path, "--every", "1s", "--flush-interval", "0.2", "program.py")
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    made = files(tmp_path)
    forked = sum(regions(path, "child") for path in made)
    assert forked >= 10
    assert int(done.stdout) < forked  # some of them are in files, and nowhere else


STEPS = """
import leadline, threading, time
end, done, idle = time.monotonic() + 4, 0, threading.Event()
while time.monotonic() < end:
    with leadline.region("work"):
        idle.wait(0.02)
    leadline.step()
    done += 1
print(done, flush=True)
"""


def test_steps_of_files_that_follow_one_another_add_up(tmp_path: Path) -> None:
    """Only the very first step has a beginning that nobody marked."""
    (tmp_path / "program.py").write_text(STEPS)
    words = command(tmp_path, "--roll", "1s", "--flush-interval", "0.2", "program.py")
    done = subprocess.run(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True, timeout=200, check=True)
    found = [steps_of(open_profile(path)) for path in files(tmp_path)]
    assert len(found) > 1
    assert sum(one.number for one in found if isinstance(one, Steps)) == int(done.stdout)
