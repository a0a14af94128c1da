"""composer: `state.timestamp.batch` counts batches over all epochs and resumes; a batch is one step."""

from __future__ import annotations

from typing import Any

from leadline.capture.training.profiler import TrainingProfiler, build_profiler


def make() -> type:
    """ComposerCallback(config, **keywords), for `Trainer(callbacks=[...])`."""
    from composer.core import Callback

    class ComposerCallback(Callback):  # type: ignore[misc]  # not installed where types are checked
        """Profiles `Trainer.fit`. Evaluation and checkpoints lie between steps and are in none."""

        def __init__(self, config: object = None, **keywords: Any) -> None:
            self.profiler: TrainingProfiler | None = None
            self._asked = (config, keywords)
            self._batch = 0

        def fit_start(self, state: Any, logger: Any) -> None:
            config, keywords = self._asked
            self.profiler = build_profiler(config, **keywords)
            if self.profiler is not None:
                self.profiler.start(int(state.timestamp.batch.value))

        def batch_start(self, state: Any, logger: Any) -> None:
            self._batch = int(state.timestamp.batch.value)
            if self.profiler is not None:
                self.profiler.begin_step(self._batch)

        def batch_end(self, state: Any, logger: Any) -> None:
            if self.profiler is not None:
                self.profiler.step(self._batch)

        def fit_end(self, state: Any, logger: Any) -> None:
            self.close(state, logger)

        def close(self, state: Any, logger: Any) -> None:
            if self.profiler is not None:
                self.profiler.stop()

    return ComposerCallback
