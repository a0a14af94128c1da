"""In which precision a kernel computes, from its name or else its operator's types; classes of a graph's kernels."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

import numpy as np

from leadline.profiles.demangle import demangler
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import IntArray, Selection, TaskKind
from leadline.whatif.reading import dtypes_in
from leadline.work.kernels import KernelClass, classify

_PRECISIONS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (precision, re.compile(pattern, re.IGNORECASE))
    for precision, pattern in (
        ("fp8", r"e4m3|e5m2|fp8|qgmma|nvjet_qq|\bck::.*\b_BitInt\(8\)"),
        ("bf16", r"bf16|bfloat16|BFloat16|nvjet_tst|nvjet_ttt|_BBS_|_BSS_|\bck::.*<.*\bunsigned short,"),
        ("fp32", r"ffma|simt_sgemm|f32f32_f32f32|(?<!s1688)sgemm|scudnn|sgemv|\bck::.*\bfloat, float, float,"),
        ("tf32", r"tf32|s1688|nvjet_sst|nvjet_sss"),
        ("fp16", r"f16|fp16|_Float16|half|h884|s884|h1688|hmma|hgemm|nvjet_hsh|nvjet_hhh|_HHS_|_HSS_"),
        ("fp64", r"dgemm|f64|double"),
    )
)

_DTYPE_PRECISION = {
    "float": "fp32", "double": "fp64", "c10::Half": "fp16", "c10::BFloat16": "bf16", "float32": "fp32",
    "float16": "fp16", "bfloat16": "bf16", "c10::Float8_e4m3fn": "fp8", "c10::Float8_e5m2": "fp8",
    "c10::Float8_e4m3fnuz": "fp8", "c10::Float8_e5m2fnuz": "fp8",
}  # fmt: skip
ELEMENT_BYTES = {
    "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "long int": 8, "long": 8, "int": 4, "bool": 1,
    "unsigned char": 1, "signed char": 1, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1, "short": 2,
    "c10::Float8_e4m3fnuz": 1, "c10::Float8_e5m2fnuz": 1,
}  # fmt: skip
PRECISION_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1}


def precision_of(name: str, dtypes: Sequence[str] = ()) -> str | None:
    """Precision in which a kernel computes: by its name, else by its first floating-point input; None if unknown."""
    named = _named_precision(name)
    if named is not None:
        return named
    return next((_DTYPE_PRECISION[dtype] for dtype in dtypes if dtype in _DTYPE_PRECISION), None)


@lru_cache(maxsize=4096)
def _named_precision(name: str) -> str | None:
    name = _readable(name)
    return next((precision for precision, pattern in _PRECISIONS if pattern.search(name)), None)


def _readable(name: str) -> str:
    """Traces that were not imported may have names of kernels as compilers write them."""
    return _demangler()(name) if name.startswith("_Z") else name


@lru_cache(maxsize=1)
def _demangler() -> Callable[[str], str]:
    return demangler()


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
            _ORDER.index(classify(_readable(graph.names[pair // width]), graph.names[pair % width]))
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
