"""What an operator's schema and tensors say about the memory it uses."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from leadline.tools.registry import Names, Objects

_TAKES_MEMORY_ONLY = frozenset(
    {
        "empty",
        "empty_like",
        "empty_strided",
        "empty_permuted",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "set_",
        "resize_as_",
    }
)
"""Operators that by their meaning neither read nor write elements."""
_OVERWRITES = frozenset(
    {
        "copy_",
        "fill_",
        "zero_",
        "normal_",
        "uniform_",
        "random_",
        "bernoulli_",
        "exponential_",
        "geometric_",
        "cauchy_",
        "log_normal_",
        "eye",
        "arange",
    }
)
"""In-place operators that do not read what they write."""
_PURGE_AT = 4096


@dataclass(frozen=True)
class OperatorFacts:
    """What is the same for every call of an operator."""

    name: str
    number: int
    touches: bool
    mutated: frozenset[int]
    """Positions of arguments that are written."""
    mutated_names: frozenset[str]
    """The same by keyword; those of `out=`."""
    overwrites: bool
    """What is written in place is not read."""
    counts_flops: Any = None
    """torch's own formula for multiplications and additions, or None."""


class Use(NamedTuple):
    """One object as one launch uses it; `first` and `end` are byte offsets in it."""

    object: int
    first: int
    end: int
    bytes: int
    elements: int
    reads: int
    writes: int


class Extent(NamedTuple):
    """Bytes of a storage from `first` up to `end`, of which a tensor has `distinct` elements."""

    first: int
    end: int
    distinct: int


def facts_of(func: Any, names: Names, flop_formulas: Mapping[Any, Any]) -> OperatorFacts:
    """Of an OpOverload, or of any other thing that can be called (a higher-order operator)."""
    schema = getattr(func, "_schema", None)
    packet = getattr(func, "overloadpacket", None)
    base = getattr(packet, "__name__", "") or str(func)
    space = getattr(func, "namespace", "")
    name = f"{space}::{base}" if space else str(base)
    mutated: set[int] = set()
    mutated_names: set[str] = set()
    for position, argument in enumerate(schema.arguments if schema is not None else ()):
        if argument.alias_info is not None and argument.alias_info.is_write:
            mutated_names.add(argument.name)
            if not argument.kwarg_only:
                mutated.add(position)
    return OperatorFacts(
        name,
        names.number(name),
        not (space == "prim" or (space == "aten" and base in _TAKES_MEMORY_ONLY)),
        frozenset(mutated),
        frozenset(mutated_names),
        base in _OVERWRITES,
        flop_formulas.get(packet),
    )


def tensors_in(value: Any) -> Iterator[Any]:
    """Tensors in an argument or a result: itself, or in lists, tuples and dictionaries; of a sparse one (rows and
    columns in COO) what it is made of."""
    if hasattr(value, "untyped_storage"):
        if value.is_sparse:
            yield value._indices()
            yield value._values()
        else:
            yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from tensors_in(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors_in(one)


class Storages:
    """Objects by storage. A weak reference keeps a storage's number from being given to another one too early."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: dict[int, tuple[int, Any]] = {}
        self._purge_at = _PURGE_AT
        self._lock = threading.Lock()
        # Here, and not when the first operator runs: an import takes long.
        self._weak = importlib.import_module("torch.multiprocessing.reductions").StorageWeakRef
        self._parameter = importlib.import_module("torch.nn").Parameter
        self._task = importlib.import_module("torch._C")._current_graph_task_id

    def number(self, tensor: Any, place: int = 0, category: str = "input") -> int:
        """The object of a tensor's storage, a new one where it is new."""
        storage = tensor.untyped_storage()
        known = self._known.get(storage._cdata)
        if known is not None:
            return known[0]
        return self._add(storage, tensor, place, category)

    def _add(self, storage: Any, tensor: Any, place: int, category: str) -> int:
        if isinstance(tensor, self._parameter):
            category = "parameter"
        shape = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
        device = tensor.device.index
        number = -1 if tensor.device.type == "cpu" else (device or 0)
        with self._lock:
            known = self._known.get(storage._cdata)
            if known is not None:
                return known[0]
            made = self._objects.add(storage.nbytes(), number, place, category, shape)
            self._known[storage._cdata] = (made, self._weak(storage))
            if len(self._known) >= self._purge_at:
                self._known = {key: one for key, one in self._known.items() if not one[1].expired()}
                self._purge_at = max(_PURGE_AT, 2 * len(self._known))
        return made

    def uses(self, facts: OperatorFacts, args: Any, kwargs: Any, result: Any, place: int) -> tuple[list[Use], int]:
        """What an operator read and wrote, and the device it ran on (-1: the CPU)."""
        read: list[Any] = []
        written: list[Any] = []
        for position, argument in enumerate(args):
            for tensor in tensors_in(argument):
                if position in facts.mutated:
                    written.append(tensor)
                    if facts.overwrites:
                        continue
                read.append(tensor)
        for name, argument in kwargs.items():
            for tensor in tensors_in(argument):
                (written if name in facts.mutated_names else read).append(tensor)
        mine = {tensor.untyped_storage()._cdata for tensor in (*read, *written)}
        fresh = [tensor for tensor in tensors_in(result) if tensor.untyped_storage()._cdata not in mine]
        if not fresh and not written and next(tensors_in(result), None) is not None:
            return [], -1  # views of what was there: nothing is touched
        uses = [self._use(tensor, place, "input", reads=True) for tensor in read]
        made = "gradient" if self._task() != -1 else "result"
        uses += [self._use(tensor, place, made, reads=False) for tensor in (*written, *fresh)]
        device = next((t.device.index or 0 for t in (*read, *written, *fresh) if t.device.type != "cpu"), -1)
        return uses, device

    def _use(self, tensor: Any, place: int, category: str, *, reads: bool) -> Use:
        number = self.number(tensor, place, category)
        first, end, distinct = self.extent(tensor)
        elements = tensor.numel()
        size = distinct * tensor.element_size()
        return Use(number, first, end, size, distinct, elements * reads, elements * (not reads))

    @staticmethod
    def extent(tensor: Any) -> Extent:
        """Where a tensor lies in its storage."""
        size = tensor.element_size()
        elements = tensor.numel()
        first = tensor.storage_offset() * size
        if tensor.is_contiguous():
            return Extent(first, first + elements * size, elements)
        distinct, last = 1, 0
        for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
            if stride != 0:
                distinct *= length
                last += (length - 1) * stride
        if not elements:
            return Extent(first, first, 0)
        return Extent(first, first + (last + 1) * size, min(distinct, last + 1))
