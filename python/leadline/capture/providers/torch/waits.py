"""Known waits of torch's Python side: for other processes (`Work.wait`, which every blocking collective calls) and for
the workers of a data loader. What the thread did not run meanwhile is booked as `wait_time` where it waited.

Waits inside operators are the native side's (native/providers/torch/communication.h). Promises: `uninstall` leaves
torch's classes as they were found, imports nothing, and results and errors of what is wrapped come back as they are.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from leadline.capture.current import CURRENT
from leadline.capture.import_hook import ImportHook
from leadline.capture.native import Native
from leadline.capture.providers.replaced import Replacements

COMMUNICATION = '{"role": "communication"}'
"""Detail of frames that are communication, as in native/providers/torch/communication.h."""
_WAIT = "Work.wait"


class KnownWaits:
    """One per session; a class that a release of torch has not is left out."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._replaced = Replacements()
        self._hooks = [
            ImportHook("torch.distributed.distributed_c10d", self._follow_work),
            ImportHook("torch.utils.data.dataloader", self._follow_loader),
        ]

    def install(self) -> None:
        """Wrap what is there, and what the program imports later."""
        for hook in self._hooks:
            hook.install()

    def uninstall(self) -> None:
        """Undo `install`."""
        for hook in self._hooks:
            hook.uninstall()
        self._replaced.undo()

    def _follow_work(self, c10d: ModuleType) -> None:
        work = getattr(c10d, "Work", None)
        if isinstance(work, type) and callable(vars(work).get("wait")):
            self._replaced.attribute(work, "wait", self._communicating(work.wait))  # type: ignore[attr-defined]

    def _follow_loader(self, dataloader: ModuleType) -> None:
        iterator = getattr(dataloader, "_MultiProcessingDataLoaderIter", None)
        if isinstance(iterator, type) and callable(vars(iterator).get("_get_data")):
            self._replaced.attribute(iterator, "_get_data", self._timed(vars(iterator)["_get_data"]))

    def _timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def timed(*arguments: Any, **named: Any) -> Any:
            session, begin_ns = CURRENT.generation, _asleep_ns()
            try:
                return original(*arguments, **named)
            finally:
                if _still(session):
                    self._native.waited(max(_asleep_ns() - begin_ns, 0))

        return timed

    def _communicating(self, original: Callable[..., Any]) -> Callable[..., Any]:
        timed = self._timed(original)

        @functools.wraps(original)
        def communicating(*arguments: Any, **named: Any) -> Any:
            session = CURRENT.generation
            token = self._native.region_begin(_WAIT, COMMUNICATION)
            try:
                return timed(*arguments, **named)
            finally:
                if _still(session):
                    self._native.region_end(token)

        # The compiler calls it as it calls torch's own, and does not look inside.
        communicating._torchdynamo_disable = True  # type: ignore[attr-defined]
        return communicating


def _still(session: int) -> bool:
    """Whether the session in which a call began is the one that runs now."""
    return CURRENT.native is not None and CURRENT.generation == session


def _asleep_ns() -> int:
    """Of this thread, from an unknown beginning."""
    return time.monotonic_ns() - time.thread_time_ns()
