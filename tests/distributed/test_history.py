"""Who was late when: simulated files of the stretches of a job, in which ranks are slow for a while."""

from dataclasses import replace
from pathlib import Path

from tests.distributed.simulated import MS, SimulatedRank

from leadline.cli.main import main
from leadline.distributed.merge import merge_files
from leadline.distributed.stretches import stretches
from leadline.profiles import write_profile
from leadline.profiles.merge import merge_profiles
from leadline.report.lateness import lateness

RANKS, STRETCHES, LENGTH = 5, 7, 1_700 * MS
BEGAN = 1_700_000_000_000_000_000


def write(folder: Path, slow: dict[tuple[int, int], dict[str, int]]) -> None:
    """`slow`: by (rank, stretch) what of it differs; the others wait for it."""
    for stretch in range(STRETCHES):
        excess = max((sum(slow.get((rank, stretch), {}).values()) for rank in range(RANKS)), default=0)
        for rank in range(RANKS):
            start = BEGAN + stretch * LENGTH + rank * MS
            one = SimulatedRank(rank, world_size=RANKS, start_ns=start, end_ns=start + LENGTH)
            mine = slow.get((rank, stretch), {})
            waits = one.communication + excess - sum(mine.values())
            changed = {name: getattr(one, name) + more for name, more in mine.items()}
            made = replace(one, communication=waits, **changed)
            write_profile(folder / f"host_rank{rank}_{stretch}.leadline", made.profile())


def test_ranks_that_were_slow_for_a_while(tmp_path: Path, capsys) -> None:
    slow = {(3, at): {"data": 400 * MS} for at in (1, 2, 3)}
    slow |= {(4, at): {"forward": 400 * MS} for at in (5, 6)}
    write(tmp_path, slow)
    parts = list(stretches([str(tmp_path)]))
    assert [one.files for one in parts] == [RANKS] * STRETCHES
    late, looked = lateness((one.start_ns, one.end_ns, one.profile) for one in parts)
    assert looked == STRETCHES
    told = [(one.who, one.cause, (one.start_ns - BEGAN) // LENGTH, one.stretches) for one in late]
    assert told == [("rank 3", "data loading", 1, 3), ("rank 4", "computation", 5, 2)]
    assert main(["watch", str(tmp_path), "--history"]) == 0
    assert "rank 3: data loading" in capsys.readouterr().out


def test_nobody_was(tmp_path: Path, capsys) -> None:
    write(tmp_path, {})
    (tmp_path / "cut.leadline").write_bytes(b"PK")
    assert main(["watch", str(tmp_path), "--history"]) == 0
    assert capsys.readouterr().out == "No rank was late in any of 7 intervals that have files.\n"


def test_nothing_there(tmp_path: Path, capsys) -> None:
    assert main(["watch", str(tmp_path), "--history"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_launcher_alone_in_a_file_is_no_rank(tmp_path: Path) -> None:
    """It runs before its ranks do, and has a file of its own where files roll."""
    launcher = replace(SimulatedRank(-1), pid=7, start_ns=BEGAN, end_ns=BEGAN + LENGTH)
    write_profile(tmp_path / "first.leadline", launcher.profile())
    later = replace(launcher, start_ns=BEGAN + LENGTH, end_ns=BEGAN + 2 * LENGTH)
    ranks = [SimulatedRank(rank, start_ns=BEGAN + LENGTH) for rank in range(2)]
    write_profile(tmp_path / "second.leadline", merge_profiles([one.profile() for one in (later, *ranks)]))
    merged = merge_files([str(tmp_path)])
    assert merged.ranks == 2 and len(merged.plan.beside) == 2
