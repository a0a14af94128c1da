"""`leadline run --every`: a file for each stretch of a program that goes on, whole at every moment; together they are
the whole."""

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leadline.capture.durations import seconds
from leadline.capture.errors import ProfileError
from leadline.capture.part import PartDirectory
from leadline.capture.rolling import Keep, Rolling
from leadline.profiles import open_profile

REGIONS = """
import leadline, os, sys, time
end = time.monotonic() + float(sys.argv[1])
done = 0
while time.monotonic() < end:
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


def test_every_file_is_readable_when_everybody_is_killed(tmp_path: Path) -> None:
    """The supervisor and the program, at any moment: what is there is whole, and what is missing is recovered once."""
    program = started(tmp_path, "program.py", 600)
    wait_for(lambda: len(files(tmp_path)) >= 2)
    children = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
    told = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in children}
    (child,) = [pid for pid, words in told.items() if words[1:3] == [b"program.py", b"600"]]
    program.kill()
    os.kill(child, signal.SIGKILL)
    program.wait(timeout=60)
    made = wait_for(lambda: files(tmp_path) if not list(tmp_path.glob("*.tmp*")) else None)
    counted = [regions(path, "work") for path in made]
    assert all(counted[1:]) and sum(counted) > 0, "the first may be over before the program has begun"
    part = tmp_path / "out.leadline.part"
    done = subprocess.run([sys.executable, "-m", "leadline", "recover", str(part)], timeout=120, cwd=tmp_path)
    assert done.returncode == 0
    rest = open_profile(tmp_path / "out.leadline")
    last = open_profile(made[-1])
    assert rest.processes[0].start_ns == last.processes[0].end_ns


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
        (["--keep", "24h"], "--every"),
        (["--every", "soon"], "--every"),
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
    left = tmp_path / "out_20260101T000009Z.leadline.tmp77"
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
