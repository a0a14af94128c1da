"""Classes and precisions of a graph's kernels."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from leadline.hardware.precision import precision_of, readable
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import IntArray, Selection, TaskKind
from leadline.whatif.reading import dtypes_in
from leadline.work.kernels import KernelClass, classify


def is_device_copy(name: str) -> bool:
    """A copy that stays on one device (not over PCIe)."""
    return bool(re.search(r"DtoD|device -> device|Memset|peer", name, re.IGNORECASE))


_ORDER = tuple(KernelClass)


class KernelTable:
    """The class of every device task of one graph, worked out once per distinct (name, operator)."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        kind = graph.column("kind")
        self.device = Selection(graph.alive & np.isin(kind, (int(TaskKind.GPU), int(TaskKind.COMM))))
        ids = self.device.ids
        width = len(graph.names)
        pairs = graph.column("name")[ids].astype(np.int64) * width + graph.column("operator")[ids]
        distinct, which = np.unique(pairs, return_inverse=True)
        codes = [
            _ORDER.index(classify(readable(graph.names[pair // width]), graph.names[pair % width]))
            for pair in distinct.tolist()
        ]
        self._code = np.full(len(graph), -1, dtype=np.int8)
        if ids.size:
            self._code[ids] = np.array(codes, dtype=np.int8)[which.reshape(-1)]
        self._code[ids[kind[ids] == TaskKind.COMM]] = _ORDER.index(KernelClass.COLLECTIVE)

    def of(self, task: int) -> KernelClass:
        """Class of a device task. Raises KeyError for a CPU task."""
        if self._code[task] < 0:
            raise KeyError(task)
        return _ORDER[int(self._code[task])]

    def all(self, *classes: KernelClass) -> Selection:
        return Selection(np.isin(self._code, [_ORDER.index(kind) for kind in classes]))

    @property
    def kernels(self) -> Selection:
        """Device tasks that compute: no copies, no collectives."""
        return self.device - self.all(KernelClass.COPY, KernelClass.COLLECTIVE)

    def precision(self, task: int) -> str | None:
        """Precision in which a device task computes; None where neither its name nor its operator tells."""
        return self.precisions(Selection([task]))[0]

    def precisions(self, tasks: Selection) -> list[str | None]:
        """The same for many tasks, in id order."""
        names = self.graph.column("name")[tasks.ids]
        rows = self.graph.column("detail")[self.shaped[tasks.ids]]
        rows = np.where(self.shaped[tasks.ids] >= 0, rows, -1)
        known: dict[tuple[int, int], str | None] = {}
        found = []
        for key in zip(names.tolist(), rows.tolist(), strict=True):
            if key not in known:
                dtypes = dtypes_in(self.graph.details[key[1]]) if key[1] >= 0 else []
                known[key] = precision_of(self.graph.names[key[0]], dtypes)
            found.append(known[key])
        return found

    @cached_property
    def shaped(self) -> IntArray:
        """`Graph.shaped_operators`, worked out once."""
        return self.graph.shaped_operators()
