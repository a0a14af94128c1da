"""`leadline merge`: ranks folded with statistics over them; what is wrong with a file is said and the rest is merged."""

import json
import random
import shutil
from pathlib import Path

import pytest
from tests.distributed.simulated import MS, SimulatedRank, write_ranks

import leadline
from leadline.cli.main import main
from leadline.profiles import Profile, write_profile
from leadline.profiles.draw import draw


def merged(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> tuple[str, str]:
    assert main(["merge", *map(str, words)]) == code
    return capsys.readouterr()


def rank_rows(profile: Profile) -> list[dict[str, object]]:
    text = profile.tables.strings
    table = profile.table("ranks")
    texts = ("host", "role", "identity", "files", "note")
    rows = zip(*(values.tolist() for values in table.values()), strict=True)
    return [{k: text[v] if k in texts else v for k, v in zip(table, row, strict=True)} for row in rows]


def test_four_ranks_become_one_tree_whose_sums_are_theirs(tmp_path: Path, capsys) -> None:
    write_ranks(tmp_path)
    out, err = merged(capsys, tmp_path, "-o", tmp_path / "job.leadline")
    assert "4 ranks" in out and err == ""
    job = leadline.open(tmp_path / "job.leadline")
    assert draw(job, ["time"]).splitlines() == [
        "process all ranks",
        "  thread MainThread",
        "    python main @ train.py:30",
        f"      operator c10d::allreduce_ | time={800 * MS}/400",
        "      phase forward | time=0/400",
        "        module model.layer [Linear]",
        f"          operator aten::linear | time={1606 * MS}/4000",
        "          phase backward",
        f"            operator aten::mm | time={3200 * MS}/4000",
        f"      phase optimizer | time={400 * MS}/400",
        f"      phase data loading | time={200 * MS}/400",
        "    phase step",
    ]
    (linear,) = job.tree.find(name="aten::linear")
    table = job.table("rank_stats")
    (row,) = [
        i for i, (n, m) in enumerate(zip(table["node"], table["metric"], strict=True)) if (n, m) == (linear.row, 0)
    ]
    values = [(400 + rank) * MS for rank in range(4)]
    assert int(table["ranks"][row]) == 4
    assert int(table["sum_high"][row]) * 2**32 + int(table["sum_low"][row]) == sum(values)
    squares = int(table["squares_high"][row]) * 2**64 + int(table["squares_low"][row])
    assert squares == sum(value**2 for value in values)
    assert (table["min"][row], table["max"][row]) == (400 * MS, 403 * MS)
    assert (table["min_rank"][row], table["max_rank"][row]) == (0, 3)
    bins = job.table("rank_histogram")
    mine = (bins["node"] == linear.row) & (bins["metric"] == 0)
    assert int(bins["ranks"][mine].sum()) == 4
    for low, number in zip(bins["bin"][mine].tolist(), bins["ranks"][mine].tolist(), strict=True):
        edge = (8 + low % 8) * 2 ** (low // 8 - 3)
        assert number == sum(edge <= value < edge + 2 ** (low // 8 - 3) for value in values)


def test_a_folder_that_holds_the_result_of_before_gives_the_same_bytes(tmp_path: Path, capsys) -> None:
    write_ranks(tmp_path)
    output = tmp_path / "job.leadline"
    merged(capsys, tmp_path, "-o", output)
    before = output.read_bytes()
    merged(capsys, tmp_path, "-o", output)
    assert output.read_bytes() == before
    other, _ = merged(capsys, tmp_path / "node*.leadline", "-o", tmp_path / "other.leadline")
    assert (tmp_path / "other.leadline").read_bytes() == before, other


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        ("role", ["ranks of pp 0", "ranks of pp 1"]),
        ("node", ["ranks on node0", "ranks on node1"]),
        ("rank", ["rank 0", "rank 1", "rank 2", "rank 3"]),
    ],
)
def test_what_stays_apart(tmp_path: Path, capsys, by: str, groups: list[str]) -> None:
    for rank in range(4):
        SimulatedRank(rank, host=f"node{rank % 2}", role={"pp": rank // 2, "dp": rank % 2}).write(tmp_path)
    merged(capsys, tmp_path, "-o", tmp_path / "job.leadline", "--by", by)
    job = leadline.open(tmp_path / "job.leadline")
    assert sorted(one.node.name for one in job.processes) == groups
    assert job.tree.root.inclusive("time").count == 4 * 2400


def test_bad_files_are_named_and_the_rest_is_merged(tmp_path: Path, capsys) -> None:
    paths = write_ranks(tmp_path, 6)
    paths[1].write_bytes(paths[1].read_bytes()[:700])  # truncated
    paths[2].unlink()  # missing
    shutil.copy(paths[3], tmp_path / "copy.leadline")  # doubled
    (tmp_path / "notes.leadline").write_text("not a profile")  # foreign
    SimulatedRank(5, 6, job="job-2", pid=77).write(tmp_path, "other.leadline")  # of another job
    newer = tmp_path / "newer.leadline"
    _with_format(paths[0], newer, 99)
    out, err = merged(capsys, tmp_path, "-o", tmp_path / "job.leadline")
    assert "4 of 6 ranks" in out and "missing: 1-2" in out
    named = [line for line in err.splitlines() if line.startswith("leadline: left out: ")]
    for name, why in (
        (paths[1].name, "cut off"),
        ("notes.leadline", "not a Leadline profile"),
        ("other.leadline", "another job (job-2)"),
        ("newer.leadline", "format 99"),
    ):
        assert any(name in line and why in line for line in named), (name, err)
    assert len(named) == 4
    assert "passed over" in err and "it is counted once" in err
    job = leadline.open(tmp_path / "job.leadline")
    rows = rank_rows(job)
    assert [row["rank"] for row in rows] == list(range(6))
    assert [row["status"] for row in rows] == [0, 2, 2, 0, 0, 0]
    assert (
        sorted((str(one.kind), one.count) for one in job.losses)
        == [("file_left_out", 1)] * 4 + [("rank_missing", 1)] * 2
    )
    assert job.tree.root.inclusive("time").count == 4 * 2400
    assert main(["report", str(tmp_path / "job.leadline")]) == 0
    assert "4 of 6 ranks on 3 machines; missing: 1-2" in capsys.readouterr().out


def _with_format(source: Path, target: Path, version: int) -> None:
    import zipfile

    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for member in old.infolist():
            data = old.read(member)
            if member.filename == "meta.json":
                meta = json.loads(data)
                meta["format"]["version"] = version
                data = json.dumps(meta).encode()
            new.writestr(member.filename, data)


def test_files_of_one_rank_that_follow_one_another_are_one_rank(tmp_path: Path, capsys) -> None:
    """Rolling files, and a start after a failure: statistics see the rank once, with all that it did."""
    write_ranks(tmp_path, 2)
    SimulatedRank(1, 2, start_ns=9_000_000_000_000, host="node0").write(tmp_path, "later.leadline")
    SimulatedRank(0, 2, start_ns=9_000_000_000_000, pid=4444, host="node0").write(tmp_path, "again.leadline")
    out, err = merged(capsys, tmp_path, "-o", tmp_path / "job.leadline")
    assert "2 ranks" in out and err == ""
    job = leadline.open(tmp_path / "job.leadline")
    assert job.tree.root.inclusive("time").count == 4 * 2400
    assert set(job.table("rank_stats")["ranks"].tolist()) == {2}
    rows = rank_rows(job)
    assert rows[1]["files"].split("\n") == ["later.leadline", "node0_rank1.leadline"]
    assert rows[0]["note"] == "It was started 2 times."


def test_two_jobs_without_names_are_not_mixed(tmp_path: Path, capsys) -> None:
    write_ranks(tmp_path, 2, job="")
    SimulatedRank(1, 2, job="", pid=5555).write(tmp_path, "z.leadline")
    _, err = merged(capsys, tmp_path, "-o", tmp_path / "job.leadline")
    assert "z.leadline holds rank 1" in err and "at the same time" in err
    assert leadline.open(tmp_path / "job.leadline").tree.root.inclusive("time").count == 2 * 2400


def test_nothing_to_merge_is_one_sentence(tmp_path: Path, capsys) -> None:
    _, err = merged(capsys, tmp_path / "no*.leadline", "-o", tmp_path / "job.leadline", code=2)
    assert err.startswith("leadline: There is nothing to merge: ") and "names no profile" in err
    (tmp_path / "bad.leadline").write_bytes(b"PK")
    _, err = merged(capsys, tmp_path, "-o", tmp_path / "job.leadline", code=2)
    assert "bad.leadline" in err and not (tmp_path / "job.leadline").exists()


def test_a_killed_rank_is_taken_from_its_part_directory(tmp_path: Path, capsys) -> None:
    """The empty file that holds its place is no bad file."""
    from leadline.profiles.writer import add_columns

    write_ranks(tmp_path, 2)
    (tmp_path / "node0_rank1.leadline").unlink()
    import zipfile

    part = tmp_path / "node0_rank1.leadline.part"
    part.mkdir()
    killed = SimulatedRank(1, 2, complete=False).profile()
    (part / "session.json").write_text(json.dumps({"argv": ["train.py"]}))
    with zipfile.ZipFile(part / "1001-1-a.segment", "w") as archive:
        add_columns(archive, killed.tables)
    (part / "1001-1-a.json").write_text(json.dumps(killed.meta["processes"][0]))
    (tmp_path / "node0_rank1.leadline").touch()
    out, err = merged(capsys, tmp_path, "-o", tmp_path / "job.leadline")
    assert "2 ranks" in out and err == ""
    assert [row["status"] for row in rank_rows(leadline.open(tmp_path / "job.leadline"))] == [0, 1]


def test_peaks_of_ranks_are_not_added(tmp_path: Path, capsys) -> None:
    """Each rank's memory peaks at a moment of its own: the result holds the peak of the rank that has most."""
    line = "    python main @ train.py:30\n      operator aten::empty | peak_live_bytes={}/1"
    for rank, peak in enumerate((8500, 8900, 8900, 8100)):
        SimulatedRank(rank, 4, extra="  thread MainThread | tid=0\n" + line.format(peak)).write(tmp_path)
    merged(capsys, tmp_path, "-o", tmp_path / "job.leadline")
    job = leadline.open(tmp_path / "job.leadline")
    assert job.tree.root.inclusive("peak_live_bytes").sum == 8900


def test_helpers_of_a_rank_stand_beside_it(tmp_path: Path, capsys) -> None:
    """Loader workers inherit the rank's number; their work is no part of the rank's statistics."""
    extra = "process python train.py --lr 1 | pid=8{rank}00 parent_pid={pid} rank={rank} start_ns=1000000000001 end_ns=1000000000002\n  thread MainThread | tid=8{rank}00 wall_ns=70\n    operator aten::stack | time=70/7\n"
    for rank in range(2):
        SimulatedRank(rank, 2, extra=extra.format(pid=1000 + rank, rank=rank)).write(tmp_path)
    merged(capsys, tmp_path, "-o", tmp_path / "job.leadline")
    job = leadline.open(tmp_path / "job.leadline")
    assert [one.node.name for one in job.processes] == ["all ranks", "train.py, started by all ranks"]
    assert job.tree.root.inclusive("time").count == 2 * 2400 + 14
    assert len(rank_rows(job)) == 2


def test_watch_shows_each_rank_and_who_is_silent(tmp_path: Path, capsys) -> None:
    """The simulated ranks wrote last long ago: those that did not stop in order are silent, the others have ended."""
    for rank in range(3):
        SimulatedRank(rank, 4, complete=rank != 1).write(tmp_path)
    assert main(["watch", "--once", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("rank 1 node0") and lines[1].endswith("silent")
    assert lines[2].startswith("rank 0 node0") and lines[2].endswith("ended")
    assert "nothing yet from ranks 3" in lines and "silent: rank 1" in lines
    assert "17.0 ms" in lines[1]  # a step
    assert main(["watch", "--once", str(tmp_path / "nowhere")]) == 2
    assert "names no profile" in capsys.readouterr().err


def test_a_rank_that_was_attached_is_not_said_to_be_behind(tmp_path: Path, capsys) -> None:
    """Rank 1 has counted 50 collectives of 100, and rank 2 has begun 80 from the first on."""
    for rank, steps in enumerate((100, 50, 80, 100, 100)):
        one = SimulatedRank(rank, 5, steps=steps, complete=False).profile()
        if rank == 1:
            one.meta["processes"][0]["attached"] = True
        write_profile(tmp_path / f"rank{rank}.leadline", one)
    merged(capsys, tmp_path, "-o", tmp_path / "job.leadline")
    assert main(["report", str(tmp_path / "job.leadline"), "--format", "json"]) == 0
    ranks = json.loads(capsys.readouterr().out)["ranks"]
    assert ranks["arrival"] == [
        "Rank 1 was attached in the middle of the job: how many collectives had begun there is not known, so "
        "whether it arrived is not, either.",
        "Rank 2 did not arrive: it had begun 80 collectives and ranks 0, 3-4 100.",
    ]
    assert "attached" not in ranks["names"]


@pytest.mark.parametrize(
    ("wrote_ns", "said"), [(-1, []), (10**9, ["Rank 3 did not arrive: it had begun 0 collectives and ranks 0-2 1."])]
)
def test_a_rank_that_wrote_before_all_others_began_is_not_said_to_be_behind(
    tmp_path: Path, capsys, wrote_ns: int, said: list[str]
) -> None:
    """Ranks begin one after another: nothing is known of what one has done since an older file than all others'."""
    for rank in range(4):
        end_ns = 2_000_000_000_000 + (wrote_ns if rank == 3 else rank)
        talk = {"communication": 0} if rank == 3 else {}
        SimulatedRank(rank, 4, steps=1, complete=False, end_ns=end_ns, **talk).write(tmp_path)
    merged(capsys, tmp_path, "-o", tmp_path / "job.leadline")
    assert main(["report", str(tmp_path / "job.leadline"), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["ranks"]["arrival"] == said


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_file_costs_a_sentence_whatever_is_wrong_with_it(tmp_path: Path, capsys, seed: int) -> None:
    chance = random.Random(seed)
    paths = write_ranks(tmp_path, 3)
    whole = paths[1].read_bytes()
    for _ in range(15):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        paths[1].write_bytes(bytes(damaged[: chance.randrange(len(damaged)) if chance.random() < 0.3 else None]))
        out, err = merged(capsys, tmp_path, "-o", tmp_path / "job.leadline")
        assert ("left out" in err and "missing: 1" in out) or "3 ranks" in out
