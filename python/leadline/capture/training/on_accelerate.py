"""accelerate: no hook for steps; an optimizer's own hook runs when its step was not skipped for accumulation."""

from __future__ import annotations

from typing import Any

from leadline.capture.training.profiler import TrainingProfiler, build_profiler


def make() -> type:
    """AccelerateTracker(accelerator, optimizer, config, next_step=0, **keywords): a `with` block around the loop."""

    class AccelerateTracker:
        """Counts the steps of a prepared optimizer. `next_step`: number of the first one, after a resume."""

        def __init__(
            self, accelerator: Any, optimizer: Any, config: object = None, *, next_step: int = 0, **keywords: Any
        ) -> None:
            self.profiler: TrainingProfiler | None = build_profiler(config, rank=accelerator.process_index, **keywords)
            self._optimizer = getattr(optimizer, "optimizer", optimizer)
            self._next = next_step
            self._hook: Any = None

        def __enter__(self) -> AccelerateTracker:
            if self.profiler is not None:
                self.profiler.start(self._next)
                self._hook = self._optimizer.register_step_post_hook(self._stepped)
            return self

        def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
            if self._hook is not None:
                self._hook.remove()
            if self.profiler is not None:
                self.profiler.note_error(error)
                self.profiler.stop()

        def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
            if self.profiler is not None:
                self.profiler.step(self._next)
                self._next += 1

    return AccelerateTracker
