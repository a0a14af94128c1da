"""Writing files of a model's state as a phase: `torch.save`, safetensors, distributed checkpoints.

Pickling and the disk call no operator, so nothing else of the tree would hold their time. It is booked as calls of the
phase `saving` without time of its own, below the line that saves, since what is copied from a device meanwhile has its
own. Promises: `uninstall` leaves the modules as they were found, imports nothing, and results and errors of what is
wrapped come back as they are.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from leadline.capture.booking import book, place
from leadline.capture.contained import lose
from leadline.capture.import_hook import ImportHook
from leadline.capture.native import Native
from leadline.capture.providers.replaced import Replacements

PHASE = "saving"
_WRITERS = {
    "torch.serialization": ("save",),
    "torch.distributed.checkpoint.state_dict_saver": ("save", "save_state_dict"),
    "safetensors.torch": ("save_file", "save_model"),
}


class _Inside(threading.local):
    """Whether the calling thread is in a writer."""

    now = False


class Saves:
    """One per session; a function that a release has not is left out."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._inside = _Inside()
        self._replaced = Replacements()
        self._hooks = [ImportHook(name, functools.partial(self._follow, names)) for name, names in _WRITERS.items()]

    def install(self) -> None:
        """Wrap what is there, and what the program imports later."""
        for hook in self._hooks:
            hook.install()

    def uninstall(self) -> None:
        """Undo `install`."""
        for hook in self._hooks:
            hook.uninstall()
        self._replaced.undo()

    def _follow(self, names: tuple[str, ...], module: ModuleType) -> None:
        for name in names:
            original = vars(module).get(name)
            if callable(original):
                self._replaced.everywhere(name, original, self._phased(original))

    def _phased(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def phased(*arguments: Any, **named: Any) -> Any:
            if self._inside.now:  # one writer may call another
                return original(*arguments, **named)
            here, begin_ns = place(), time.perf_counter_ns()
            self._inside.now = True
            try:
                return original(*arguments, **named)
            finally:
                self._inside.now = False
                try:
                    book([("phase", PHASE)], {"call_time": time.perf_counter_ns() - begin_ns}, below=here)
                except Exception as error:
                    lose(self._native, "A saving could not be measured", error)

        # The compiler calls it as it calls torch's own, and does not look inside.
        phased._torchdynamo_disable = True  # type: ignore[attr-defined]
        return phased
