"""`leadline top` without a terminal: a program that runs, looked at twice, and its end."""

import asyncio
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.terminal.looking import screen

from leadline.cli.errors import CommandError
from leadline.cli.main import main
from leadline.cli.top import find_part
from leadline.profiles import ProfileFileError, open_profile
from leadline.profiles.live import LiveRun
from leadline.profiles.overhead import overhead
from leadline.report.live import live_facts, live_text
from leadline.report.live_view import LiveView
from leadline.terminal.top import TopApp

PROGRAM = """
import leadline, sys, time
print("runs", flush=True)
while True:
    for _ in range(10):
        with leadline.region("work"):
            with leadline.region("inner"):
                time.sleep(0.002)
    leadline.step()
"""


@pytest.fixture
def running(tmp_path: Path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "leadline",
        "run",
        "-q",
        "--flush-interval",
        "0.2",
        "-o",
        "out.leadline",
        "program.py",
    ]
    program = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None and program.stdout.readline() == "runs\n"
    yield program
    program.terminate()
    program.wait(timeout=60)
    program.stdout.close()


def until(what, seconds: float = 60):
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def test_what_a_program_does_now(running, tmp_path: Path, capsys) -> None:
    part = tmp_path / "out.leadline.part"
    assert find_part(str(running.pid)) == find_part(str(tmp_path / "out.leadline")) == find_part(str(part)) == part
    run = LiveRun(part)

    def looked():
        try:
            return run.read()
        except ProfileFileError:
            return None  # nothing was written yet

    first = until(lambda: (look := looked()) and live_facts(look).steps_so_far and look)
    second = until(lambda: (look := run.read()) is not first and look.now is not first.now and look)
    cost = overhead(second.whole)
    assert cost is not None and 0 < cost.share < 1 and not cost.measured  # of a program that has not ended, too
    before, now = live_facts(first), live_facts(second)
    assert now.steps_so_far > before.steps_so_far and 0 < now.steps == now.steps_so_far - before.steps_so_far
    assert now.step_ns > 10 * 2_000_000 and not now.ended and now.seconds > 0
    assert any("work" in row.what or "inner" in row.what for row in now.rows), now.rows
    assert any("inner" in place or "work" in place for place in (*before.inside, *now.inside, "work"))
    text = live_text(now, 100, 5)
    assert "a step takes" in text and max(map(len, text.splitlines())) <= 100
    assert main(["top", str(tmp_path / "out.leadline"), "--once", "--every", "0.5"]) == 0
    assert "own time" in capsys.readouterr().out

    async def use() -> list[list[str]]:
        app = TopApp(run, "out.leadline", every_s=3600)
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            seen = [screen(app)]
            for key in ("a", "2", "1", "space"):
                await pilot.press(key)
                await pilot.pause()
                seen.append(screen(app))
            return seen

    seen = asyncio.run(use())
    assert any("own time" in line for line in seen[0])
    assert "since the start" in seen[1][0] and "paused" in seen[4][0]
    assert any("work" in line for line in seen[2])  # the tree

    view = LiveView(part)

    def counted() -> int:
        assert view.answer("", {}) is not None  # the page is loaded
        _, data = view.answer("profile/0", {}) or ("", b"")
        (tmp_path / "seen.leadline").write_bytes(data)
        nodes = open_profile(tmp_path / "seen.leadline").tree.find(name="work")
        return sum(node.exclusive("call_time").count for node in nodes)

    begun = counted()
    until(lambda: counted() > begun)

    running.terminate()
    running.wait(timeout=60)
    assert counted() > begun  # its file, now
    with pytest.raises(ProfileFileError):
        LiveRun(part).read()
    with pytest.raises(CommandError, match="has ended"):
        find_part(str(tmp_path / "out.leadline"))


def test_refusals_are_one_sentence(tmp_path: Path, capsys) -> None:
    for what in ("999999999", str(tmp_path / "none.leadline"), "1" if Path("/proc/1").exists() else "999999999"):
        assert main(["top", what, "--once"]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_damaged_segments_are_passed_over(tmp_path: Path) -> None:
    part = tmp_path / "x.leadline.part" / ("0" * 16)
    part.mkdir(parents=True)
    (part / "session.json").write_text("{}")
    (part / "1-2-3.segment").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(ProfileFileError):
        LiveRun(part.parent).read()
    shutil.rmtree(part.parent)
