"""Lightning: `trainer.global_step` counts optimizer calls, so a batch may be no step, one, or more."""

from __future__ import annotations

from typing import Any

from leadline.capture.training.profiler import TrainingProfiler, build_profiler


def make() -> type:
    """LightningCallback(config, **keywords), for `Trainer(callbacks=[...])`; from lightning or pytorch_lightning."""
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback  # type: ignore[assignment]

    class LightningCallback(Callback):
        """Profiles `Trainer.fit`. Steps are numbered by `trainer.global_step` before them; with several optimizers a
        batch that moves it by two is one step, numbered by the last call."""

        def __init__(self, config: object = None, **keywords: Any) -> None:
            self.profiler: TrainingProfiler | None = None
            self._asked = (config, keywords)
            self._told = 0

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            config, keywords = self._asked
            self.profiler = build_profiler(config, rank=trainer.global_rank, **keywords)
            self._told = trainer.global_step
            if self.profiler is not None:
                if self.profiler.config.shapes:
                    self.profiler.describe_model(getattr(pl_module, "model", pl_module))
                self.profiler.start(trainer.global_step)

        def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
            if self.profiler is not None and trainer.global_step != self._told:
                self._told = trainer.global_step
                self.profiler.begin_step(trainer.global_step)

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            if self.profiler is not None and trainer.global_step != self._told:
                self.profiler.step(trainer.global_step - 1)

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            if self.profiler is not None:
                self.profiler.note_error(exception)
            self._stop()

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            self._stop()

        def _stop(self) -> None:
            if self.profiler is not None:
                self.profiler.stop()

    return LightningCallback
