"""Summaries in experiment logs and files in object stores, each with its real package, offline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.training.loops import run

import leadline
from leadline.training import build_profiler, log_to_mlflow, log_to_tensorboard, log_to_wandb


def profiled(folder: Path, rank: int = 0, **config: object):
    profiler = build_profiler(enable=True, trace_dir=str(folder), start_step=1, end_step=3, rank=rank, **config)
    profiler.start(0)
    for step in range(4):
        with leadline.region("work"):
            pass
        profiler.step(step)
    profiler.stop()
    return profiler


@pytest.fixture
def finished(tmp_path: Path, capsys):
    profiler = profiled(tmp_path / "profiles")
    leadline.print_summary(profiler)
    capsys.readouterr()
    return profiler


def test_tensorboard_gives_back_what_it_was_given(finished, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the summary goes into it")
    pytest.importorskip("torch", reason="its writer writes the file")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert log_to_tensorboard(finished, tmp_path / "logs")
    events = EventAccumulator(str(tmp_path / "logs"))
    events.Reload()
    figures = json.loads((finished.path.parent / "summary.json").read_text())["figures"]
    (scalar,) = events.Scalars("leadline/step_mean_ns")
    assert scalar.step == 3
    assert scalar.value == pytest.approx(figures["step_mean_ns"], rel=1e-6)
    assert {f"leadline/{name.replace(' ', '_')}" for name in figures} <= set(events.Tags()["scalars"])
    (text,) = events.Tensors("leadline/summary/text_summary")
    assert b"Leadline training summary" in text.tensor_proto.string_val[0]


def test_mlflow_gives_back_what_it_was_given(finished, tmp_path: Path, monkeypatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the summary goes into it")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    with pytest.raises(ValueError, match="no active MLflow run"):
        log_to_mlflow(finished)
    with mlflow.start_run() as active:
        assert log_to_mlflow(finished)
    client = mlflow.MlflowClient()
    kept = client.get_run(active.info.run_id).data
    figures = json.loads((finished.path.parent / "summary.json").read_text())["figures"]
    assert kept.metrics["leadline/step_mean_ns"] == pytest.approx(figures["step_mean_ns"])
    assert client.get_metric_history(active.info.run_id, "leadline/step_mean_ns")[0].step == 3
    assert kept.tags["mlflow.note.content"].startswith("## Leadline training summary")
    page = client.download_artifacts(active.info.run_id, "leadline/summary.md", str(tmp_path))
    assert Path(page).read_text() == (finished.path.parent / "summary.md").read_text()


def test_wandb_takes_it_offline(finished, tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="the summary goes into it")
    program = textwrap.dedent(f"""
        import sys, pathlib, wandb
        from leadline.training import log_to_wandb
        class Stopped:
            rank, path = 0, pathlib.Path({str(finished.path)!r})
        run = wandb.init(mode="offline", dir={str(tmp_path)!r}, project="p")
        run.log({{"loss": 1.0}}, step=100)
        assert log_to_wandb(Stopped())
        print("mean", run.summary["leadline/step_mean_ns"])
        print(run.summary["leadline/summary"][:30])
        run.finish()
    """)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LEADLINE", "WANDB"))}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=250, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "mean " in done.stdout
    assert "## Leadline training summary" in done.stdout
    (record,) = (tmp_path / "wandb").glob("offline-run-*/run-*.wandb")
    assert b"leadline/step_mean_ns" in record.read_bytes()


def test_only_rank_0_with_its_own_summary_logs(tmp_path: Path) -> None:
    other = profiled(tmp_path / "a", rank=1)
    assert not log_to_tensorboard(other, tmp_path / "logs")
    assert not log_to_mlflow(None)
    assert not log_to_wandb(profiled(tmp_path / "b")), "nobody has made its summary"
    assert not (tmp_path / "logs").exists()


def test_files_go_to_a_store_in_memory_and_to_a_folder(tmp_path: Path, capsys) -> None:
    fsspec = pytest.importorskip("fsspec", reason="stores are reached through it")
    profiler = profiled(tmp_path / "a", upload="memory://bucket/run")
    leadline.print_summary(profiler)
    store = fsspec.filesystem("memory")
    names = {Path(path).name for path in store.ls("/bucket/run", detail=False)}
    assert names == {profiler.path.name, profiler.path.with_suffix(".json").name, "summary.md", "summary.json"}
    assert store.cat(f"/bucket/run/{profiler.path.name}") == profiler.path.read_bytes()
    run(tmp_path / "b", range(2), start_step=0, end_step=1, upload=(tmp_path / "store").as_uri())
    assert len(list((tmp_path / "store").glob("*.leadline"))) == 1
    capsys.readouterr()


@pytest.mark.parametrize("url", ["nosuchprotocol://x", "s3://bucket/run", "file:///proc/nowhere"])
def test_a_store_that_cannot_be_reached_costs_a_sentence(url: str, tmp_path: Path, capsys, monkeypatch) -> None:
    pytest.importorskip("fsspec", reason="stores are reached through it")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    profiler = profiled(tmp_path, upload=url)
    assert profiler.path is not None
    assert profiler.path.is_file()
    assert f"files are not uploaded to {url}" in capsys.readouterr().err
