"""When a step of the program ends, in its own process, by the marks of `leadline.steps` in their order: calls of
`leadline.step()`, the end of the optimizers' round, the loader's next batch, a call of the outermost module or of one
compiled program.

The first run finds the mark; later runs are told it, so that all runs count the same.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from leadline.capture.providers.torch.optimizer_rounds import OptimizerRounds

if TYPE_CHECKING:
    from leadline.remedies.programs import Program
    from leadline.remedies.trial import Trial

STEP_CALLS, OPTIMIZER, BATCHES = "leadline.step", "optimizer", "batches"
MODULE_CALLS, PROGRAM_CALLS = "module calls", "program calls"
ORDER = (STEP_CALLS, OPTIMIZER, BATCHES, MODULE_CALLS, PROGRAM_CALLS)
"""The words of `leadline.steps.model`, which this process does not import."""

Closed = Callable[[str, int], None]


class Borders:
    """Tells `closed(mark, at_ns)` of each step that has ended."""

    def __init__(self, trial: Trial, closed: Closed) -> None:
        self._trial = trial
        self._closed = closed
        self._rounds = _Rounds(lambda at_ns: closed(OPTIMIZER, at_ns))
        self._loader: object = None
        self._calls: dict[str, int] = {}

    def install(self) -> None:
        trial = self._trial
        if trial.wants(STEP_CALLS):
            import leadline.capture.api as api

            trial.replaced.attribute(api, "step", self._after(api.step, STEP_CALLS))
        if trial.wants(OPTIMIZER):
            trial.when_imported("torch.optim.optimizer", self._follow_optimizers)
        if trial.wants(BATCHES):
            trial.when_imported("torch.utils.data.dataloader", self._follow_loaders)
        trial.programs.called.append(self._program_called)
        trial.programs.install()

    def finish(self) -> None:
        """The program has ended: its last round is a step too."""
        self._rounds.finish()

    @property
    def is_late(self) -> bool:
        """A step has ended, which is known only when the next one does."""
        return self._trial.plan.mark in ("", OPTIMIZER) and self._rounds.is_late

    def module_called(self) -> None:
        self._closed(MODULE_CALLS, time.perf_counter_ns())

    def _after(self, original: Callable[..., Any], mark: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def followed(*arguments: Any, **named: Any) -> Any:
            result = original(*arguments, **named)
            self._closed(mark, time.perf_counter_ns())
            return result

        return followed

    def _follow_optimizers(self, optimizers: Any) -> None:
        trial = self._trial

        def before(optimizer: Any, arguments: Any, named: Any) -> None:
            trial.optimizer_begins(optimizer)
            self._rounds.begins(optimizer)

        def after(optimizer: Any, arguments: Any, named: Any) -> None:
            self._rounds.ended()

        optimizers.register_optimizer_step_pre_hook(before)
        optimizers.register_optimizer_step_post_hook(after)

    def _follow_loaders(self, dataloader: Any) -> None:
        iterator = dataloader._BaseDataLoaderIter
        original = vars(iterator)["__next__"]

        @functools.wraps(original)
        def following(this: Any) -> Any:
            batch = original(this)
            data = getattr(this, "_dataset", None)
            if self._loader is None:
                self._loader = data
            if data is self._loader:
                self._closed(BATCHES, time.perf_counter_ns())
            return batch

        self._trial.replaced.attribute(iterator, "__next__", following)

    def _program_called(self, program: Program, output: Any) -> None:
        trial = self._trial
        wanted = trial.plan.program
        if not wanted:
            self._calls[program.name] = self._calls.get(program.name, 0) + 1
            wanted = max(self._calls, key=self._calls.__getitem__)  # the first of those called most
            trial.facts["program"] = wanted
        if program.name != wanted or trial.optimizers:
            return
        try:
            trial.values.program_returned(output, program.donates)
        except Exception as error:
            trial.fault(error)
        if trial.wants(PROGRAM_CALLS):
            self._closed(PROGRAM_CALLS, time.perf_counter_ns())


class _Rounds:
    """A round of optimizers ends with the last of them: known at once where rounds have one length, else when the next
    begins."""

    def __init__(self, closed: Callable[[int], None]) -> None:
        self._closed = closed
        self._rounds = OptimizerRounds()
        self._size = 0
        self._expected = 0
        self._ended_ns = 0
        self._is_open = False
        self.is_late = False

    def begins(self, optimizer: object) -> None:
        if self._rounds.begins(optimizer):
            if self._size:
                self._expected = self._size
            self._close()
            self._size, self._is_open = 1, True
        else:
            self._size += 1

    def ended(self) -> None:
        self._ended_ns, self.is_late = time.perf_counter_ns(), not self._expected
        if self._expected and self._size >= self._expected:
            self._close()

    def finish(self) -> None:
        self._close()

    def _close(self) -> None:
        self.is_late = False
        if self._is_open:
            self._is_open = False
            self._closed(self._ended_ns)
