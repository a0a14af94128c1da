"""Kernels that GPU providers have measured (CUPTI, rocprofiler-sdk, roctracer, an accelerator's file) as launches: each
with its time on the device, told once it has ended; nothing is patched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.schema import EventKind
from leadline.tools.backends import Wants
from leadline.tools.backends.tap import ACTIVITY, Tap
from leadline.tools.batch import Batch, batch_of
from leadline.tools.ranges import Selector
from leadline.tools.tool import Context

EVENTS = frozenset({"launch"})
TRAITS = ("device", "graphs", "library kernels", "exact")
DOC = "kernels on GPUs with their time there, as the GPU's own library reports them"
NOTHING = "no kernel of a GPU was reported"

_KINDS = (EventKind.KERNEL, EventKind.COLLECTIVE)
"""A collective is a kernel that communicates."""


class KernelsBackend(Tap):
    """Drains the native rings of finished device work. Launches are numbered in the order in which they are told, which
    is that of their ends on each stream."""

    name = "kernels"
    what = "kernels"
    events = EVENTS
    traits = TRAITS

    def __init__(self, native: Any, context: Context, wants: Wants) -> None:
        super().__init__(native, context, 1 << ACTIVITY)
        self._selector = Selector(wants.ranges, context.places)

    @property
    def skipped(self) -> int:
        """Launches that the ranges left out."""
        return self._selector.skipped

    def drain(self) -> Iterable[Batch]:
        for rows in self._rows():
            kernels = rows[np.isin(rows["kind"], _KINDS)]
            yield self._batch(kernels[np.argsort(kernels["time"], kind="stable")])

    def _batch(self, rows: NDArray[Any]) -> Batch:
        launches = np.fromiter(self._context.numbers, np.int64, len(rows))
        kernels = self._kernels(rows)
        self._context.launches.add(launches, kernels, rows["place"], rows["time"])
        nothing = np.zeros(len(rows), np.int64)
        columns = {"launch": launches, "kernel": kernels, "time": rows["time"], "duration": rows["duration"]}
        columns |= {"flops": nothing, "inputs": nothing, "thread": nothing}
        columns |= {"device": rows["device"], "place": rows["place"], "blocks": rows["a"], "threads": rows["b"]}
        names = self._context.names
        asked = zip(launches.tolist(), kernels.tolist(), rows["place"].tolist(), strict=True)
        chosen = [self._selector.chooses(launch, names[kernel], place) for launch, kernel, place in asked]
        return batch_of("launch", columns).where(np.array(chosen, np.bool_))


def probe() -> str:
    """Why it would not work here, or empty: a program that uses no GPU has no kernels, which is said at its end."""
    return ""


def create(native: Any, context: Context, wants: Wants) -> KernelsBackend:
    """See `leadline.tools.backends`."""
    return KernelsBackend(native, context, wants)
