"""Says where torch's checkpointing leaves what it runs again: an exception ends it inside the last operator, which was
called and never worked. Needed where operations are counted, so only where shapes are measured. Promises: the exception
goes its way; `uninstall` leaves torch as it was found.
"""

from __future__ import annotations

import contextlib
from types import ModuleType
from typing import Any

from leadline.capture.native import Native

PHASE = "recomputation ends"


class RecomputationEnds:
    """One per session."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._error: Any = None

    def install(self, checkpoint: ModuleType) -> None:
        """Follow `torch.utils.checkpoint`; a release without such an exception runs everything again."""
        error = getattr(checkpoint, "_StopRecomputationError", None)
        if not isinstance(error, type) or "__init__" in vars(error):
            return
        native = self._native

        def ending(self: Any, *arguments: Any) -> None:
            with contextlib.suppress(Exception):
                native.phase_end(native.phase_begin(PHASE))
            Exception.__init__(self, *arguments)

        error.__init__ = ending  # type: ignore[misc]
        self._error = error

    def uninstall(self) -> None:
        """Undo `install`."""
        if self._error is not None:
            del self._error.__init__
            self._error = None
