"""Marks the making of a batch in torch's data-loading workers, which have no mark of their own for it.

In the training process torch itself marks the wait for a batch; a worker's batches get the same phase, `data loading`,
so a trace window shows how busy each worker is. Promise: `uninstall` leaves torch's classes as they were found.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from leadline.capture.native import Native

PHASE = "data loading"
_CLASSES = ("_MapDatasetFetcher", "_IterableDatasetFetcher")


class BatchMarks:
    """Wraps what makes a batch, in every process; outside a worker the wrapper only calls through."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._replaced: list[tuple[type, Callable[..., Any], Callable[..., Any]]] = []

    def install(self) -> None:
        """Wrap; a torch without these classes, which are its own affair, is left alone. Imports nothing."""
        fetch = sys.modules.get("torch.utils.data._utils.fetch")
        worker_info = getattr(sys.modules.get("torch.utils.data"), "get_worker_info", None)
        if worker_info is None:
            return
        for name in _CLASSES:
            kind = getattr(fetch, name, None)
            original = vars(kind).get("fetch") if isinstance(kind, type) else None
            if isinstance(kind, type) and callable(original):
                wrapper = self._wrapped(original, worker_info)
                kind.fetch = wrapper  # type: ignore[attr-defined]
                self._replaced.append((kind, original, wrapper))

    def uninstall(self) -> None:
        """Undo `install`. A wrapper that somebody else has wrapped in turn stays and only calls through."""
        for kind, original, wrapper in self._replaced:
            if vars(kind).get("fetch") is wrapper:
                kind.fetch = original  # type: ignore[attr-defined]
        self._replaced.clear()

    def _wrapped(self, original: Callable[..., Any], worker_info: Callable[[], Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def fetch(fetcher: Any, *arguments: Any, **named: Any) -> Any:
            if worker_info() is None or not self._replaced:
                return original(fetcher, *arguments, **named)
            token = self._native.phase_begin(PHASE, data_wait=True)
            try:
                return original(fetcher, *arguments, **named)
            finally:
                self._native.phase_end(token)

        return fetch
