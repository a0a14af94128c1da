"""Real ranks over gloo, folded: their sums, their number, and the one that is late."""

import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.distributed.launch import forked, torchrun

import leadline
from leadline.cli.main import main

pytest.importorskip("torch", reason="its ranks are measured")
PROGRAM = Path(__file__).with_name("gloo_ranks.py")


def report(path: Path, capsys: pytest.CaptureFixture[str]) -> dict:
    capsys.readouterr()
    assert main(["report", str(path), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)["ranks"]


def test_the_rank_that_waits_for_its_data_is_named(tmp_path: Path, capsys) -> None:
    command = forked(4, PROGRAM, tmp_path / "ranks", 2, module="torch._dynamo")
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert main(["merge", str(tmp_path / "ranks"), "-o", str(tmp_path / "job.leadline")]) == 0
    ranks = report(tmp_path / "job.leadline", capsys)
    assert (ranks["count"], ranks["world_size"], ranks["missing"], ranks["steps"]) == (4, 4, "", 20)
    column = {name: place for place, name in enumerate(ranks["names"])}
    for row in ranks["rows"]:  # what another thread did of a collective is no more than the main thread waited
        assert 0 < row["values"][column["communication"]] <= row["values"][column["wall"]]
    (late,) = ranks["late"]
    assert (late["ranks"], late["cause"]) == ([2], "data loading"), late["sentence"]
    job = leadline.open(tmp_path / "job.leadline")
    told = job.findings()
    assert told.steps == 20  # of each rank, not over all
    assert any("4 ranks are merged" in note for note in told.notes)
    imbalance = next(one for one in told if one.rule == "imbalance")
    assert imbalance.title.startswith("Rank 2") and "data loading" in imbalance.title
    assert [line.short.rpartition("/")[2] for line in imbalance.lines[:1]] == ["gloo_ranks.py"]
    parts = [leadline.open(path) for path in (tmp_path / "ranks").glob("*.leadline")]
    for metric in ("time", "alloc_bytes", "wait_time"):
        whole = [part.tree.root.inclusive(metric) for part in parts]
        merged = job.tree.root.inclusive(metric)
        assert (merged.sum, merged.count) == (sum(one.sum for one in whole), sum(one.count for one in whole)), metric
    assert len(job.tree) < 1.5 * max(len(part.tree) for part in parts)


def test_one_file_that_holds_all_ranks_is_folded_too(tmp_path: Path, capsys) -> None:
    """`leadline run -- torchrun ...` leaves one file; its launcher has no rank and stands beside."""
    command = [sys.executable, "-m", "leadline", "run", "-o", str(tmp_path / "run.leadline"), "-q", "--"]
    program = tmp_path / "train.py"
    program.write_text(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "for _ in range(5):\n"
        "    x = torch.ones(64, 64) @ torch.ones(64, 64)\n"
        "    dist.all_reduce(x)\n"
        "dist.destroy_process_group()\n"
    )
    done = subprocess.run([*command, *torchrun(2, program)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert main(["merge", str(tmp_path / "run.leadline"), "-o", str(tmp_path / "job.leadline")]) == 0
    ranks = report(tmp_path / "job.leadline", capsys)
    assert (ranks["count"], ranks["world_size"]) == (2, 2)
    job, run = leadline.open(tmp_path / "job.leadline"), leadline.open(tmp_path / "run.leadline")
    assert job.tree.root.inclusive("time").sum == run.tree.root.inclusive("time").sum
    assert sum(node.exclusive("call_time").count for node in job.tree.find(name="aten::mm")) == 10


def test_stages_of_a_mesh_stay_apart_and_are_no_stragglers(tmp_path: Path, capsys) -> None:
    if "group_desc" not in inspect.getsource(importlib.import_module("torch.distributed.device_mesh")):
        pytest.skip("meshes of this torch do not name their groups")
    program = PROGRAM.with_name("mesh_ranks.py")
    done = subprocess.run(forked(4, program, tmp_path / "ranks"), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert main(["merge", str(tmp_path / "ranks"), "-o", str(tmp_path / "job.leadline")]) == 0
    job = leadline.open(tmp_path / "job.leadline")
    assert [one.node.name for one in job.processes] == ["ranks of pp 0", "ranks of pp 1"]
    ranks = report(tmp_path / "job.leadline", capsys)
    assert [row["role"] for row in ranks["rows"]] == [{"pp": r // 2, "dp": r % 2} for r in range(4)]


@pytest.mark.parametrize(
    ("description", "dimension"),
    [
        ("mesh_tp", "tp"),
        ("mesh_dp_shard", "dp"),
        ("TENSOR_MODEL_PARALLEL_GROUP", "tp"),
        ("PIPELINE_MODEL_PARALLEL_GROUP", "pp"),
        ("DATA_PARALLEL_GROUP", "dp"),
        ("EXPERT_MODEL_PARALLEL_GROUP", "ep"),
        ("CONTEXT_PARALLEL_GROUP", "cp"),
        ("EXPERT_DATA_PARALLEL_GROUP", ""),
        ("default_pg", ""),
        ("undefined", ""),
    ],
)
def test_what_a_groups_description_says(description: str, dimension: str) -> None:
    from leadline.capture.providers.torch.roles import dimension_of

    assert dimension_of(description) == dimension


def test_the_rank_that_did_not_arrive_is_named_while_the_job_hangs_and_when_it_was_killed(
    tmp_path: Path, capsys
) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    job = subprocess.Popen(forked(4, PROGRAM.with_name("hanging_ranks.py"), folder, 2), start_new_session=True)
    try:
        deadline = time.monotonic() + 200
        while not (left := list(folder.glob("hang_*.txt"))) and time.monotonic() < deadline:
            assert job.poll() is None
            time.sleep(0.1)
        assert "Rank 2 did not arrive at allreduce no. 4 of default_pg (4 ranks)" in left[0].read_text()
        said = ""
        while "did not arrive" not in said and time.monotonic() < deadline:
            assert job.poll() is None
            if main(["watch", "--once", str(folder)]) == 0:
                said = capsys.readouterr().out
        assert "Rank 2 did not arrive: it had begun 3 collectives and ranks 0-1, 3 4." in said
        assert said.count("running") == 4
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        for child in _living(folder):
            os.kill(child, signal.SIGKILL)
    assert main(["merge", str(folder), "-o", str(tmp_path / "job.leadline")]) == 0
    ranks = report(tmp_path / "job.leadline", capsys)
    assert ranks["arrival"] == ["Rank 2 did not arrive: it had begun 3 collectives and ranks 0-1, 3 4."]
    assert ranks["partial"] == "0-3"


def _living(folder: Path) -> list[int]:
    """Processes that have the folder's name in their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(folder).encode() in words and int(entry.parent.name) != os.getpid():
            found.append(int(entry.parent.name))
    return found
