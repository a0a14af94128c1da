"""`leadline.training`: profiling from inside training loops of frameworks.

Each class is made when it is first asked for, since it derives from the framework's own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from leadline.capture.training.config import TrainingConfig
from leadline.capture.training.experiment_logs import log_to_mlflow, log_to_tensorboard, log_to_wandb
from leadline.capture.training.profiler import TrainingProfiler, build_profiler

if TYPE_CHECKING:
    AccelerateTracker: Any
    ComposerCallback: Any
    HFTrainerCallback: Any
    IgniteHandler: Any
    LightningCallback: Any
    maybe_enable_profiling: Any

__all__ = [
    "AccelerateTracker",
    "ComposerCallback",
    "HFTrainerCallback",
    "IgniteHandler",
    "LightningCallback",
    "TrainingConfig",
    "TrainingProfiler",
    "build_profiler",
    "log_to_mlflow",
    "log_to_tensorboard",
    "log_to_wandb",
    "maybe_enable_profiling",
]
_FRAMEWORKS = {
    "AccelerateTracker": "on_accelerate",
    "ComposerCallback": "on_composer",
    "HFTrainerCallback": "on_transformers",
    "IgniteHandler": "on_ignite",
    "LightningCallback": "on_lightning",
    "maybe_enable_profiling": "on_torchtitan",
}


def __getattr__(name: str) -> Any:
    module = _FRAMEWORKS.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = importlib.import_module(f"leadline.capture.training.{module}").make()
    globals()[name] = value
    return value
