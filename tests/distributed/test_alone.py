"""Late ranks stand in a merged file by themselves, too; paths of few ranks stand together in a large job."""

import json
import random
from pathlib import Path

import pytest
from tests.distributed.simulated import MS, SimulatedRank

import leadline
from leadline.analysis.stragglers import late_ranks
from leadline.cli.main import main
from leadline.distributed.merge import merge_files
from leadline.profiles.build import build
from leadline.profiles.draw import draw
from leadline.profiles.fold.alone import rank_profile, ranks_alone
from leadline.report.embedded import cut_tree
from leadline.schema import LossKind

RANKS = 8


def write(folder: Path, late: dict[int, int], number: int = RANKS, **facts) -> list[str]:
    """Ranks of which some load longer, and the others wait for them in communication."""
    most = max(late.values(), default=0)
    return [
        str(
            SimulatedRank(
                rank,
                number,
                data=(50 + late.get(rank, 0)) * MS,
                communication=(200 + most - late.get(rank, 0)) * MS,
                host=f"node{rank // 4}",
                **facts,
            ).write(folder)
        )
        for rank in range(number)
    ]


def test_a_late_rank_has_a_tree_of_its_own(tmp_path: Path, capsys) -> None:
    paths = write(tmp_path, {5: 900})
    output = tmp_path / "job.leadline"
    assert main(["merge", *paths, "-o", str(output)]) == 0
    job = leadline.open(output)
    assert [one.rank for one in ranks_alone(job)] == [5]
    alone = rank_profile(job, 5)
    own = leadline.open(paths[5])

    def shown(profile) -> list[str]:
        lines = draw(profile, ["time", "call_time", "alloc_bytes"]).splitlines()
        return sorted(line.strip() for line in lines if "process" not in line)

    assert shown(alone) == shown(own)
    assert alone.threads[0].wall_ns == own.threads[0].wall_ns
    assert job.tree.root.inclusive("time").count == RANKS * own.tree.root.inclusive("time").count, "it counts once"
    capsys.readouterr()
    assert main(["report", str(output)]) == 0
    assert "--rank 5" in capsys.readouterr().out
    assert main(["report", str(output), "--rank", "5", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["totals"]["time"]["sum"] == own.tree.root.inclusive("time").sum
    assert told["ranks"] is None
    for words, why in ((["--rank", "3"], "keeps its own tree for ranks 5"), ([], "")):
        assert main(["report", str(output), *words]) == (2 if words else 0)
        assert why in capsys.readouterr().err
    assert main(["report", paths[0], "--rank", "0"]) == 2
    assert "has one rank" in capsys.readouterr().err


def test_a_page_that_is_cut_keeps_the_sums_of_late_ranks(tmp_path: Path) -> None:
    assert main(["merge", *write(tmp_path, {5: 900}), "-o", str(tmp_path / "job.leadline")]) == 0
    job = leadline.open(tmp_path / "job.leadline")
    cut, row_of, _ = cut_tree(job.tree, job.tables, 4)
    assert cut.rows("nodes") < job.tables.rows("nodes") and (row_of >= 0).all()
    before, after = job.tables["rank_metrics"], cut["rank_metrics"]
    assert len(after["sum"]) < len(before["sum"]) and set(after["rank"].tolist()) == {5}
    for metric in set(before["metric"].tolist()):
        sums = [table["sum"][table["metric"] == metric].sum() for table in (before, after)]
        assert sums[0] == sums[1]


def test_nobody_is_late_and_nobody_stands_alone(tmp_path: Path, capsys) -> None:
    paths = write(tmp_path, {})
    output = tmp_path / "job.leadline"
    assert main(["merge", *paths, "-o", str(output)]) == 0
    assert ranks_alone(leadline.open(output)) == []
    assert main(["report", str(output), "--rank", "1"]) == 2
    assert "none was late" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(3))
def test_any_order_and_merging_merged_files_give_the_same_bytes(tmp_path: Path, seed: int) -> None:
    paths = write(tmp_path, {5: 900, 2: 700})
    choose = random.Random(seed)

    def merged(name: str, *files: str) -> bytes:
        assert main(["merge", *files, "-o", str(tmp_path / name)]) == 0
        return (tmp_path / name).read_bytes()

    whole = merged("whole", *paths)
    shuffled = choose.sample(paths, len(paths))
    assert merged("other", *shuffled) == whole
    first = [path for path in shuffled if "rank5" in path or "rank2" in path or choose.random() < 0.5]
    merged("part.leadline", *first)
    late = {one.rank for one in late_ranks(leadline.open(tmp_path / "part.leadline"))}
    again = merged("again", str(tmp_path / "part.leadline"), *(path for path in paths if path not in first))
    if late == {2, 5}:  # both were late there, too, so the merged file has kept them
        assert again == whole


def test_one_file_of_all_ranks_and_restarts(tmp_path: Path) -> None:
    """Files of one rank that follow one another are that rank together, also by itself."""
    paths = write(tmp_path, {5: 900})
    again = SimulatedRank(
        5, RANKS, data=950 * MS, communication=200 * MS, host="node1", pid=99, start_ns=9_000_000_000_000
    ).write(tmp_path, "again.leadline")
    job = merge_files([*paths, str(again)], late=late_ranks).profile
    alone = rank_profile(job, 5)
    assert alone.tree.root.inclusive("time").count == 2 * leadline.open(again).tree.root.inclusive("time").count


MANY = 128


def rare_job(folder: Path) -> list[str]:
    """Every rank has a small path of its own; rank 3 a large one; one path is of all ranks and small."""
    extra = "      python logged @ log.py:{line}\n        operator aten::item | time={ns}/1\n      operator aten::tiny | time=10/1\n"
    return [
        str(
            SimulatedRank(rank, MANY, extra=extra.format(line=rank + 1, ns=90 * MS if rank == 3 else 1000)).write(
                folder
            )
        )
        for rank in range(MANY)
    ]


def test_paths_of_few_ranks_stand_together_and_are_counted(tmp_path: Path, capsys) -> None:
    paths = rare_job(tmp_path)
    assert main(["merge", *paths, "-o", str(tmp_path / "job.leadline")]) == 0
    assert main(["merge", *paths, "-o", str(tmp_path / "all.leadline"), "--all-paths"]) == 0
    job, whole = (leadline.open(tmp_path / f"{name}.leadline") for name in ("job", "all"))
    assert len(list(whole.tree.find(name="logged"))) == MANY
    assert [node.line for node in job.tree.find(name="logged")] == [4], "rank 3's takes long"
    assert len(list(job.tree.find(name="aten::tiny"))) == 1, "what all ranks have stays, however small"
    (together,) = job.tree.find(name="(paths of few ranks)")
    assert together.parent.name == "main"
    assert together.exclusive("time").sum == 1000 * (MANY - 1)
    for metric in ("time", "alloc_bytes"):
        mine, theirs = (one.tree.root.inclusive(metric) for one in (job, whole))
        assert (mine.sum, mine.count, mine.min, mine.max) == (theirs.sum, theirs.count, theirs.min, theirs.max)
    (loss,) = [one for one in job.losses if one.kind == LossKind.PATHS_FOLDED]
    assert loss.count == 2 * (MANY - 1) and "at most 1 of 128 ranks" in loss.detail
    assert not [one for one in whole.losses if one.kind == LossKind.PATHS_FOLDED]
    ranks = job.table("node_ranks")["ranks"]
    assert [int(ranks[node.row]) for node in job.tree.find(name="aten::tiny")] == [MANY]
    assert [int(ranks[node.row]) for node in job.tree.find(name="logged")] == [1]
    assert main(["report", str(tmp_path / "job.leadline")]) == 0
    assert "stand together" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "job.leadline"), "--format", "html", "-o", str(tmp_path / "x.html")]) == 0


def test_paths_of_a_late_rank_stay(tmp_path: Path) -> None:
    extra = "      python logged @ log.py:{line}\n        operator aten::item | time=1000/1\n"
    paths = [
        str(
            SimulatedRank(
                rank,
                MANY,
                data=(950 if rank == 9 else 50) * MS,
                communication=(200 if rank == 9 else 1100) * MS,
                extra=extra.format(line=rank + 1),
            ).write(tmp_path)
        )
        for rank in range(MANY)
    ]
    job = merge_files(paths, late=late_ranks).profile
    assert [node.line for node in job.tree.find(name="logged")] == [10]
    assert [node.line for node in rank_profile(job, 9).tree.find(name="logged")] == [10]


def test_a_damaged_table_of_single_ranks_is_one_sentence(tmp_path: Path, capsys) -> None:
    """Numbers that no merge writes: refused when the file is opened, not when it is looked at."""
    from leadline.profiles.check import TableError, check_tables

    job = merge_files(write(tmp_path, {5: 900}), late=late_ranks).profile
    for table, column, value in (
        ("rank_metrics", "node", 10**6),
        ("rank_metrics", "rank", 99),
        ("rank_metrics", "device", 7),
    ):
        columns = {
            name: {one: values.copy() for one, values in part.items()} for name, part in job.tables.columns.items()
        }
        columns[table][column][0] = value
        with pytest.raises(TableError, match=table):
            check_tables(columns)
    columns = {**job.tables.columns, "node_ranks": {"ranks": job.table("node_ranks")["ranks"][:-1]}}
    with pytest.raises(TableError, match="node_ranks"):
        check_tables(columns)
    assert build("python f").table("rank_metrics")["rank"].size == 0
