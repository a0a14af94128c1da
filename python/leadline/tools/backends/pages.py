"""Operators on the CPU, and which pages of their inputs they really touch.

As `declared`, but the memory of an operator's arguments is closed while it runs, and each first access to a block is
seen as a fault. A gather that declares its whole table has the rows that it read. By flag only: while memory is closed
a system call that is handed it fails, so operators that might make one are left to what they declare.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from leadline.tools.backends import Wants
from leadline.tools.backends.declared import DeclaredBackend
from leadline.tools.backends.declared_operators import OperatorFacts, Use, tensors_in
from leadline.tools.backends.page_watch import (
    BUSY,
    MOST_SPANS,
    NO_HANDLER,
    WATCHING,
    PageWatch,
    Watched,
    block_of,
    spans_of,
    why_not,
)
from leadline.tools.backends.rows import TOUCHED, Rows
from leadline.tools.batch import Batch
from leadline.tools.errors import ToolError
from leadline.tools.tool import Context

EVENTS = frozenset({"launch", "touched", "value", "count"})
TRAITS = ("CPU", "operators instead of kernels", "pages really touched of inputs", "eager code only", "slow")
DOC = "pages that operators on the CPU really touch, by faults"
NOTHING = "no operator ran outside of compiled code while the tools ran"

_DECLARED = "touched sets that are declared ones, since their operator could not be watched ({why})"

_REFUSED = {
    NO_HANDLER: "the program handles SIGSEGV itself",
    BUSY: "there was no room to note what it touches",
}
"""By what the watch answers."""


class _Here(threading.local):
    """What the operator under way on this thread was seen to touch, by the object's address."""

    found: tuple[list[Watched], Any, Any] | None = None


class PagesBackend(DeclaredBackend):
    """`declared` with the arguments' memory closed while an operator runs."""

    name = "pages"
    traits: tuple[str, ...] = TRAITS

    def __init__(self, native: Any, context: Context, wants: Wants) -> None:
        super().__init__(native, context, wants)
        self._watch = PageWatch()
        self._sizes = np.array(wants.pages, np.uint64)
        self._block = block_of(wants.pages, counted=wants.needs("touched", "pages"))
        self._columns = (*TOUCHED, *(f"pages@{size}" for size in wants.pages))
        self._seen = Rows(context.launches)
        self._here = _Here()
        self._one = threading.Lock()

    def start(self) -> None:
        if not self._watch.start():
            raise ToolError("The backend pages does not work here: the system does not allow a handler for SIGSEGV.")
        super().start()

    def stop(self) -> None:
        super().stop()
        self._watch.stop()

    def lost(self) -> dict[str, int]:
        return {**super().lost(), **self._seen.lost()}

    def drain(self) -> Iterable[Batch]:
        seen = list(self._seen.drain())  # before the launches are asked for, so that each of them is among those
        yield from super().drain()
        yield from seen

    # ---------------------------------------------------------------- on the program's threads

    def call(self, facts: OperatorFacts, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], place: int) -> Any:
        self._here.found = None
        try:
            extents = self._extents(facts, func, args, kwargs) if self._may_watch(facts, place) else []
            spans = spans_of(extents)
        except Exception as error:
            self.count_unreadable(error)
            extents = []
        if not extents:
            return func(*args, **kwargs)
        if not self._one.acquire(blocking=False):
            self.count_lost(_DECLARED.format(why="another thread's operator was being watched"))
            return func(*args, **kwargs)
        watching = BUSY
        try:
            watching = self._watch.begin(spans, self._block)
            return func(*args, **kwargs)
        finally:
            if watching == WATCHING:
                self._here.found = (extents, *self._watch.end(len(extents), self._sizes))
            else:
                self.count_lost(_DECLARED.format(why=_REFUSED[watching]))
            self._one.release()

    def _may_watch(self, facts: OperatorFacts, place: int) -> bool:
        return self._touched_wanted and self._selector.would_choose(self._numbers_seen, facts.name, place)

    def _extents(self, facts: OperatorFacts, func: Any, args: Any, kwargs: Any) -> list[Watched]:
        """What is to be closed: of each object at least a block. Nothing where that might harm, which is counted."""
        if getattr(func, "is_view", False):
            return []
        found: dict[int, Watched] = {}
        named = [(name in facts.mutated_names, value) for name, value in kwargs.items()]
        for written, value in (*((position in facts.mutated, one) for position, one in enumerate(args)), *named):
            for tensor in tensors_in(value):
                if tensor.device.type != "cpu":
                    return []  # the device's driver reads and writes by itself
                at = self._storages.extent(tensor)
                base = tensor.untyped_storage().data_ptr()
                uses = 2 if written and facts.overwrites else 3 if written else 1
                if base in found:
                    found[base].widen(at.first, at.end, uses)
                elif at.end > at.first:
                    found[base] = Watched(tensor, base, at.first, at.end, uses)
        large = [one for one in found.values() if one.end - one.first >= self._block]
        if large and (why := _might_harm(facts, kwargs, large)):
            self.count_lost(_DECLARED.format(why=why))
            return []
        return _apart(large)

    def put_touched(self, launch: int, uses: list[Use], time_ns: int, place: int) -> bool:
        if self._here.found is None:
            return super().put_touched(launch, uses, time_ns, place)
        extents, results, pages = self._here.found
        self._here.found = None
        rows, watched, incomplete = [], set(), 0
        for one, seen, of_size in zip(extents, results.tolist(), pages.tolist(), strict=True):
            read, written, distinct, first, end, _, cut = seen
            incomplete += cut
            number, size = self._storages.number(one.tensor), one.tensor.element_size()
            watched.add(number)
            if distinct:
                row = (launch, number, first, end, distinct, read // size, written // size, time_ns, place)
                rows.append((*row, *of_size))
        if incomplete:
            self.count_lost(_DECLARED.format(why="the kernel had no room for more mappings"), incomplete)
        self._seen.put("touched", self._columns, rows)
        rest = [use for use in uses if use.object not in watched]
        return super().put_touched(launch, rest, time_ns, place) or self._seen.wake.is_set()


def _might_harm(facts: OperatorFacts, kwargs: dict[str, Any], extents: list[Watched]) -> str:
    """Why this operator's memory is not to be closed, or empty."""
    if not facts.name.startswith("aten::"):
        return "it is not one of torch's own, and may hand its memory to the system"
    if any(name in facts.mutated_names for name in kwargs):
        return "an out= argument may be given other memory"
    return f"more than {MOST_SPANS} tensors" if len(extents) > MOST_SPANS else ""


def _apart(extents: list[Watched]) -> list[Watched]:
    """Without those whose memory lies within another's: two storages over one buffer."""
    kept: list[Watched] = []
    over = 0
    for one in sorted(extents, key=lambda one: (one.base + one.first, -one.end)):
        if one.base + one.first >= over:
            kept.append(one)
            over = one.base + one.end
    return kept


def probe() -> str:
    """Why it would not work here, or empty."""
    return why_not()


def create(native: Any, context: Context, wants: Wants) -> PagesBackend:
    """See `leadline.tools.backends`."""
    return PagesBackend(native, context, wants)
