"""ignite: `engine.state.iteration` counts micro-batches from 1 over all epochs."""

from __future__ import annotations

from typing import Any

from leadline.capture.training.profiler import TrainingProfiler, build_profiler


def make() -> type:
    """IgniteHandler(config, accumulation=N, **keywords).attach(trainer)."""
    from ignite.engine import Events

    class IgniteHandler:
        """Profiles an engine's run. `accumulation`: iterations per step."""

        def __init__(self, config: object = None, **keywords: Any) -> None:
            self.profiler: TrainingProfiler | None = None
            self._asked = (config, keywords)

        def attach(self, engine: Any) -> Any:
            """Follow this engine; returns it."""
            engine.add_event_handler(Events.STARTED, self._started)
            engine.add_event_handler(Events.ITERATION_COMPLETED, self._iteration_completed)
            engine.add_event_handler(Events.COMPLETED | Events.TERMINATE | Events.EXCEPTION_RAISED, self._ended)
            return engine

        def _started(self, engine: Any) -> None:
            config, keywords = self._asked
            self.profiler = build_profiler(config, **keywords)
            if self.profiler is not None:
                self.profiler.start(engine.state.iteration // self.profiler.config.accumulation)

        def _iteration_completed(self, engine: Any) -> None:
            if self.profiler is not None:
                self.profiler.step(engine.state.iteration - 1)

        def _ended(self, engine: Any, error: BaseException | None = None) -> None:
            if self.profiler is not None:
                self.profiler.note_error(error)
                self.profiler.stop()
            if error is not None:
                raise error  # a handler of this event takes it over from the engine otherwise

    return IgniteHandler
