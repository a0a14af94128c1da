"""Experiment trackers, off by their own environment variables: runs of a trial are nobody's experiments."""

from __future__ import annotations

OFF = {
    "WANDB_MODE": "disabled",
    "WANDB_SILENT": "true",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "DISABLE_MLFLOW_INTEGRATION": "TRUE",
    "TRACKIO_MODE": "disabled",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


def off(scratch: str) -> dict[str, str]:
    """MLflow has no switch: it logs into the scratch directory."""
    return {**OFF, "MLFLOW_TRACKING_URI": f"file://{scratch}/mlflow"}
