"""transformers (and TRL, whose trainers derive from its Trainer): `state.global_step` counts optimizer steps."""

from __future__ import annotations

from typing import Any

from leadline.capture.training.profiler import TrainingProfiler, build_profiler


def make() -> type:
    """HFTrainerCallback(config, **keywords), for `Trainer(callbacks=[...])`."""
    from transformers import TrainerCallback

    class HFTrainerCallback(TrainerCallback):
        """Profiles `Trainer.train`. Evaluation lies between steps and is in none."""

        def __init__(self, config: object = None, **keywords: Any) -> None:
            self.profiler: TrainingProfiler | None = None
            self._asked = (config, keywords)

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            config, keywords = self._asked
            self.profiler = build_profiler(config, rank=args.process_index, **keywords)
            if self.profiler is not None:
                if self.profiler.config.shapes and kwargs.get("model") is not None:
                    self.profiler.describe_model(kwargs["model"])
                self.profiler.start(state.global_step)

        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if self.profiler is not None:
                self.profiler.begin_step(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if self.profiler is not None:
                self.profiler.step(state.global_step - 1)

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if self.profiler is not None:
                self.profiler.stop()

    return HFTrainerCallback
