"""The summary of a run into an experiment log: Weights & Biases, MLflow, TensorBoard. Each brings its own package.

Call one after `leadline.print_summary(prof)`, which writes the files that these read. Every figure of `summary.json`
becomes `leadline/NAME`, the page itself goes along as text. On ranks other than 0, and where there is no summary, they
do nothing; errors of the log's own package are raised as they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from leadline.capture.training.profiler import TrainingProfiler

PREFIX = "leadline/"


def log_to_wandb(profiler: TrainingProfiler | None, run: Any = None) -> bool:
    """Figures into the summary of `run` (by default wandb's current one), page and files as an artifact. The run's
    steps are left alone: a log that has gone further takes none back."""
    found = _summary(profiler)
    if found is None:
        return False
    import wandb

    page, facts, folder = found
    run = run if run is not None else wandb.run
    if run is None:
        raise ValueError("There is no wandb run; call wandb.init first, or give the run.")
    for name, value in _figures(facts).items():
        run.summary[name] = value
    run.summary[f"{PREFIX}summary"] = page
    artifact = wandb.Artifact("leadline-summary", type="profile")
    for file in ("summary.md", "summary.json"):
        artifact.add_file(str(folder / file))
    run.log_artifact(artifact)
    return True


def log_to_mlflow(profiler: TrainingProfiler | None, run_id: str | None = None) -> bool:
    """Figures as metrics at the last step, page and JSON as artifacts below `leadline/`, and the page as the run's
    note where it has none. `run_id`: by default that of the active run."""
    found = _summary(profiler)
    if found is None:
        return False
    import mlflow

    page, facts, _ = found
    active = mlflow.active_run()
    run_id = run_id or (active.info.run_id if active is not None else None)
    if run_id is None:
        raise ValueError("There is no active MLflow run; call mlflow.start_run first, or give run_id.")
    client = mlflow.MlflowClient()
    step = int((facts.get("steps") or {}).get("last") or 0)
    for name, value in _figures(facts).items():
        client.log_metric(run_id, name, value, step=step)
    client.log_text(run_id, page, "leadline/summary.md")
    client.log_dict(run_id, facts, "leadline/summary.json")
    if "mlflow.note.content" not in client.get_run(run_id).data.tags:
        client.set_tag(run_id, "mlflow.note.content", page)
    return True


def log_to_tensorboard(profiler: TrainingProfiler | None, writer: Any) -> bool:
    """Figures as scalars at the last step and the page as text. `writer`: a SummaryWriter, or a folder for one."""
    found = _summary(profiler)
    if found is None:
        return False
    page, facts, _ = found
    own = isinstance(writer, str | Path)
    if own:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(str(writer))
    step = int((facts.get("steps") or {}).get("last") or 0)
    for name, value in _figures(facts).items():
        writer.add_scalar(name, value, step)
    writer.add_text(f"{PREFIX}summary", page, step)
    writer.close() if own else writer.flush()
    return True


def _figures(facts: dict[str, Any]) -> dict[str, float]:
    figures = facts.get("figures") or {}
    return {PREFIX + name.replace(" ", "_"): float(value) for name, value in figures.items()}


def _summary(profiler: TrainingProfiler | None) -> tuple[str, dict[str, Any], Path] | None:
    """Page, JSON and folder of the summary that belongs to this profiler."""
    if profiler is None or profiler.rank != 0 or profiler.path is None:
        return None
    folder = profiler.path.parent
    try:
        page = (folder / "summary.md").read_text(encoding="utf-8")
        facts = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    mine = isinstance(facts, dict) and facts.get("profile") == profiler.path.name
    return (page, facts, folder) if mine else None
