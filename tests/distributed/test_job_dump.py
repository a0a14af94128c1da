"""`leadline dump --job` over real gloo ranks: one that stops, one that calls something else, one that is killed."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.distributed.launch import forked, torchrun

import leadline
from leadline.cli.main import main
from leadline.profiles import ProfileFileError
from leadline.profiles.flight import read_flight

pytest.importorskip("torch", reason="its ranks are measured")
PROGRAM = Path(__file__).with_name("standing_ranks.py")
RANKS = 3


@pytest.fixture
def job(tmp_path: Path):
    """Starts a job and returns its ranks' numbers of processes once all stand; nobody is left at the end."""
    started: list[subprocess.Popen] = []

    def start(kind: str) -> dict[int, int]:
        run = [
            sys.executable,
            "-m",
            "leadline",
            "run",
            "-q",
            "-o",
            str(tmp_path / "job.leadline"),
            "--flush-interval",
            "1",
            "--hang-after",
            "2",
        ]
        words = (RANKS, PROGRAM, kind, tmp_path / "standing")
        command = forked(*words) if kind == "late" else [*run, "--", *torchrun(*words)]
        started.append(subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True))
        end = time.monotonic() + 120
        while len(pids := {int(one.name): int(one.read_text()) for one in tmp_path.glob("standing/*")}) < RANKS:
            assert time.monotonic() < end and started[-1].poll() is None
            time.sleep(0.1)
        return pids

    yield start
    for process in started:
        pids = [int(one.read_text()) for one in tmp_path.glob("standing/*")]
        for group in {process.pid, *pids}:
            try:
                os.kill(group, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait(timeout=60)


def looked(folder: Path, capsys) -> dict:
    """Once every rank stands where it will stand, and those that wait have written so: a rank that another program kept
    from its core is late as well, and is said to be."""
    end = time.monotonic() + 120
    while True:
        capsys.readouterr()
        assert main(["dump", "--job", str(folder), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        mains = {one["rank"]: thread for one in found["ranks"] for thread in one["threads"] if thread["main"]}
        waiting = all(mains.get(rank, {}).get("inside", "").startswith("Work.wait") for rank in (0, 2))
        lost = [one["name"] for one in mains.get(1, {}).get("frames", ())][:1] == ["lost"]
        if waiting and lost and not found["moved"]:
            return found
        assert time.monotonic() < end, found


def test_the_rank_that_stopped(job, tmp_path: Path, capsys) -> None:
    pids = job("stop")
    found = looked(tmp_path, capsys)
    assert found["roots"] == [1]
    assert found["sentences"][0] == (
        "Rank 1 did not arrive at allreduce no. 4 of default_pg (3 ranks): it has begun 3 collectives of it, and "
        "ranks 0, 2 wait there."
    )
    flight = read_flight(next(tmp_path.glob(f"*.leadline.part/*/{pids[1]}-*.flight")))
    assert str(flight.last) == "allreduce no. 3 of default_pg"
    ranks = {one["rank"]: one for one in found["ranks"]}
    assert {rank: one["pid"] for rank, one in ranks.items()} == pids
    assert [one["problem"] for one in ranks.values()] == [""] * RANKS
    assert ranks[0]["collectives"][-1]["sequence"] == 4 and ranks[0]["collectives"][-1]["elements"] == 7
    assert ranks[1]["collectives"][-1]["done_ns"] > 0
    mains = {rank: next(one for one in seen["threads"] if one["main"]) for rank, seen in ranks.items()}
    assert [one["name"] for one in mains[1]["frames"]][:2] == ["lost", "step"]
    assert "all_reduce" in [one["name"] for one in mains[0]["frames"]]
    assert mains[0]["inside"].startswith("Work.wait")
    assert main(["dump", "--job", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "ranks 0, 2, main thread" in text and "torch_flight" not in text
    assert main(["dump", str(pids[0])]) == 0
    of_one = capsys.readouterr().out
    assert re.search(r"^    allreduce no\. 3 of default_pg, 7 elements: done, begun .* ago$", of_one, re.M), of_one
    assert re.search(r"^    allreduce no\. 4 of default_pg, 7 elements: begun .* ago, launched$", of_one, re.M)
    assert main(["dump", str(pids[0]), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["sequence"] for one in told["collectives"]] == [1, 2, 3, 4]
    assert [(one["name"], one["begun"], one["done"], one["sure"]) for one in told["groups"]] == [("0", 4, 3, True)]
    left = written_by_itself(tmp_path)
    assert found["sentences"][0] in left and re.search(r"^rank 1, main thread: asleep\n    .* lost$", left, re.M), left


def written_by_itself(folder: Path) -> str:
    """What the job has left while it stands, long before torch gives up (30 min here)."""
    end = time.monotonic() + 60
    while not (files := list(folder.glob("hang_*.txt"))):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert len(files) == 1  # one of the ranks that wait has looked
    return files[0].read_text()


def test_the_rank_that_sends_no_message(job, tmp_path: Path, capsys) -> None:
    job("message")
    found = looked(tmp_path, capsys)
    assert found["roots"] == [1]
    assert re.match(
        r"Rank 1 did not (send|receive) message no. 4( with tag 2)? (to rank 2|from rank 0): it has begun 3",
        found["sentences"][0],
    )
    ranks = {one["rank"]: one for one in found["ranks"]}
    counted = {group["description"]: group["begun"] for group in ranks[2]["groups"]}
    assert counted == {
        "from rank 1 to rank 2": 3,
        "from rank 1 to rank 2, tag 2": 4,
        "from rank 2 to rank 0": 4,
        "from rank 2 to rank 0, tag 2": 4,
    }


def test_the_file_of_a_killed_rank_says_where_it_was(job, tmp_path: Path) -> None:
    """It kills itself; the launcher then ends the others, and `leadline run` makes the file of what is left."""
    job("kill")
    file = tmp_path / "job.leadline"
    end = time.monotonic() + 200
    while not file.exists():
        assert time.monotonic() < end
        time.sleep(0.2)
    left = leadline.open(file)
    told = [loss.detail for loss in left.losses if str(loss.kind) == "process_incomplete"]
    assert any("Its last collective was allreduce no. 3 of default_pg" in one for one in told), told
    table, text = left.tables["collectives"], left.tables.strings
    assert {text[row] for row in table["name"].tolist()} == {"allreduce"}
    killed = [row for row, one in enumerate(left.processes) if one.rank == 1]
    assert table["sequence"][table["process"] == killed[0]].tolist() == [1, 2, 3]


def test_ranks_that_were_attached_at_different_collectives(job, tmp_path: Path, capsys) -> None:
    """As `leadline attach` does it, before their first, second and third all_reduce."""
    job("late")
    found = looked(tmp_path, capsys)
    assert found["roots"] == [1]
    assert found["sentences"][0] == (
        "Rank 1 did not arrive at allreduce no. 4 of default_pg (3 ranks): it has begun 3 collectives of it, and "
        "ranks 0, 2 wait there."
    )
    groups = {one["rank"]: {group["description"]: group for group in one["groups"]} for one in found["ranks"]}
    seen = {rank: (of["default_pg"]["since"], of["default_pg"]["begun"]) for rank, of in groups.items()}
    assert seen == {0: (0, 4), 1: (1, 3), 2: (2, 4)}
    assert [one["collectives"][0]["sequence"] for one in found["ranks"] if one["rank"] == 2] == [3]


def test_nothing_there_is_one_sentence(tmp_path: Path, capsys) -> None:
    assert main(["dump", "--job", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["dump"]) == 2


@pytest.mark.parametrize("size", [0, 7, 40, 5000])
def test_a_damaged_recorder_is_one_sentence(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x.flight"
    path.write_bytes((b"LDLFLT02" + b"\xff" * 5000)[:size])
    with pytest.raises(ProfileFileError):
        read_flight(path)
