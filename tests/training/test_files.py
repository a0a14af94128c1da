"""Files of ranks: none takes another's place, and the oldest go."""

import json
import os
from pathlib import Path

import pytest
from tests.training.loops import run

import leadline
from leadline.capture.current import CURRENT
from leadline.capture.training.config import TrainingConfig
from leadline.capture.training.files import claim_name, remove_oldest
from leadline.capture.training.journal import job_name, measured_ranks
from leadline.training import build_profiler


def test_names_of_one_second_are_all_different(tmp_path: Path) -> None:
    names = {claim_name(tmp_path, rank, 1e9) for rank in (0, 0, 0, 1, 1)}
    assert len(names) == 5
    assert sorted(path.name.split("_", 1)[1] for path in names) == [
        "rank0_20010909T014640Z-1.leadline",
        "rank0_20010909T014640Z-2.leadline",
        "rank0_20010909T014640Z.leadline",
        "rank1_20010909T014640Z-1.leadline",
        "rank1_20010909T014640Z.leadline",
    ]


def test_the_oldest_of_this_rank_are_removed_and_no_other(tmp_path: Path) -> None:
    mine = [claim_name(tmp_path, 0, 1e9 + second) for second in range(5)]
    other = claim_name(tmp_path, 10, 1e9)
    mine[0].with_suffix(".json").write_text("{}")
    assert remove_oldest(tmp_path, 0, 3, mine[-1]) == mine[:2]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in [*mine[2:], other])


def test_a_run_keeps_as_many_as_it_may(tmp_path: Path) -> None:
    for _ in range(3):
        run(tmp_path, range(2), start_step=0, end_step=1, max_files=2)
    assert len(list(tmp_path.glob("*.leadline"))) == 2
    assert len(list(tmp_path.glob("*.json"))) == 2
    facts = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert (facts["complete"], facts["recorded_steps"], facts["steps"]) == (True, [0], 2)


def test_a_folder_that_cannot_be_written_costs_the_profile_and_nothing_else(tmp_path: Path, capfd) -> None:
    (tmp_path / "file").write_text("")
    profiler = build_profiler(enable=True, trace_dir=str(tmp_path / "file" / "profiles"), rank=0)
    profiler.start()
    profiler.step(0)
    assert profiler.stop() is None
    error = capfd.readouterr().err
    assert "Cannot write profiles to" in error
    assert "Training continues without a profile." in error


def test_the_second_profiler_of_a_process_does_nothing(tmp_path: Path, capfd) -> None:
    first, second = (build_profiler(enable=True, trace_dir=str(tmp_path), rank=0) for _ in range(2))
    first.start()
    second.start()
    assert "a process has one profiler" in capfd.readouterr().err
    second.step(0)
    assert second.stop() is None
    assert CURRENT.session is not None
    assert first.stop() is not None
    assert len(list(tmp_path.glob("*.leadline"))) == 1


def test_twice_the_same_loss(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="a loss is torch's")

    def losses(profiler) -> list[str]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))
        optimizer = torch.optim.AdamW(model.parameters())
        found = []
        if profiler:
            profiler.start()
        for step in range(8):
            loss = model(torch.randn(4, 8)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item().hex())
            if profiler:
                profiler.step(step)
        if profiler:
            profiler.stop()
        return found

    profiler = build_profiler(enable=True, trace_dir=str(tmp_path), start_step=2, end_step=5, shapes=True, rank=0)
    assert losses(None) == losses(profiler)
    assert leadline.open(str(profiler.path)).window.steps == (2, 3, 4)


def test_a_process_that_never_stops_its_profiler_leaves_both_files(tmp_path: Path) -> None:
    import subprocess
    import sys

    text = (
        "import leadline\n"
        f"p = leadline.build_profiler(enable=True, trace_dir={str(tmp_path)!r}, start_step=0, end_step=9, rank=3)\n"
        "p.start()\np.step(0)\np.step(1)\nraise ValueError('training failed')\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment, timeout=120)
    assert "training failed" in done.stderr
    (profile,) = tmp_path.glob("*_rank3_*.leadline")
    assert leadline.open(str(profile)).window.steps == (0, 1)
    assert json.loads(profile.with_suffix(".json").read_text())["complete"]


def test_a_folder_that_others_clean_too_is_no_error(tmp_path: Path, monkeypatch) -> None:
    mine = [claim_name(tmp_path, 0, 1e9) for _ in range(4)]
    real = Path.stat

    def stat(path: Path, **options):
        if path == mine[1]:
            mine[1].unlink(missing_ok=True)
        return real(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    remove_oldest(tmp_path, 0, 2, mine[-1])
    assert len(list(tmp_path.glob("*.leadline"))) == 2


def test_merged_profiles_count_too(tmp_path: Path) -> None:
    stem = claim_name(tmp_path, 0, 1e9).name.split("_rank0_")[0]
    for second in range(4):
        (tmp_path / f"{stem}_merged_2001090{second + 1}T014640Z.leadline").write_text("")
    remove_oldest(tmp_path, 1, 2, tmp_path / "none")
    assert len(list(tmp_path.glob("*_merged_*"))) == 4
    remove_oldest(tmp_path, 0, 2, tmp_path / "none")
    assert [path.name[-25:-9] for path in tmp_path.glob("*_merged_*")] == ["20010904T014640Z"], "room for the next"


def test_jobs_without_an_id_are_told_apart_by_their_master() -> None:
    torchrun = {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "a", "MASTER_PORT": "1"}
    assert job_name(torchrun) != job_name({**torchrun, "MASTER_PORT": "2"})
    assert job_name(torchrun) != job_name({**torchrun, "MASTER_ADDR": "b"})
    assert job_name({**torchrun, "TORCHELASTIC_RUN_ID": "seven"}) != job_name(torchrun)
    assert (job_name({"TORCHELASTIC_RUN_ID": "none"}), job_name({})) == ("", "")


def test_which_ranks_are_waited_for(monkeypatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    ranks = {asked: measured_ranks(TrainingConfig(enable=True, ranks=asked)) for asked in ("0,3,9", "first-of-node")}
    assert ranks == {"0,3,9": [0, 3], "first-of-node": None}
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert measured_ranks(TrainingConfig(enable=True, ranks="first-of-node")) == [0, 4]
    assert measured_ranks(TrainingConfig(enable=True)) == list(range(8))
