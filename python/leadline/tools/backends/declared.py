"""What operators declare: every leaf operator is a launch that reads its inputs and writes its outputs.

Works on any device and without a device (FakeTensorMode). It is an upper bound: a gather declares its whole table.
An operator that only makes another view, or only takes memory, touches nothing and is no launch.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Iterable
from typing import Any

from leadline.tools.backends import Wants
from leadline.tools.backends.declared_operators import OperatorFacts, Storages, Use, facts_of, tensors_in
from leadline.tools.backends.inputs import InputHashes
from leadline.tools.backends.values import ValueCheck
from leadline.tools.batch import Batch, batch_of
from leadline.tools.ranges import Selector
from leadline.tools.ring import Ring
from leadline.tools.tool import Context

EVENTS = frozenset({"launch", "touched", "value", "count"})
TRAITS = ("any device", "operators instead of kernels", "upper bound of what is touched", "eager code only")
DOC = "inputs and outputs of every operator, on any device"
NOTHING = "no operator ran outside of compiled code while the tools ran"

_LAUNCH = ("launch", "kernel", "time", "duration", "flops", "inputs", "thread", "device", "place")
_TOUCHED = ("launch", "object", "first", "end", "bytes", "elements", "reads", "writes", "time", "place")
_VALUE = ("launch", "object", "nan", "inf", "elements", "clean", "time", "place")
_COUNT = ("launch", "object", "value", "time", "place")


class _Rings(threading.local):
    """The rings of the calling thread, and what it knows of itself."""

    launch: Ring | None = None
    touched: Ring | None = None
    tid = 0


class DeclaredBackend:
    """A dispatch mode on every thread of the program that runs operators."""

    name = "declared"
    events = EVENTS
    traits: tuple[str, ...] = TRAITS

    def __init__(self, native: Any, context: Context, wants: Wants) -> None:
        self._place = native.published_place
        self._context = context
        self._wants = wants
        self._selector = Selector(wants.ranges, context.places)
        self._facts: dict[Any, OperatorFacts] = {}
        self._storages: Storages  # once torch is there
        self._flop_formulas: Any = {}
        self._numbers = context.numbers
        self._numbers_seen = 0
        self._local = _Rings()
        self._rings: list[tuple[Ring, Ring]] = []
        self._side: list[tuple[str, tuple[int, ...]]] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._lost: dict[str, int] = {}
        self._touched_wanted = "touched" in wants.events
        self._checks = [ValueCheck()] if "value" in wants.events else []
        self._compiled: list[Any] = []
        self._hashes: InputHashes | None = None
        self.on = False
        self._mode: Any = None
        self._unhook: Any = None

    def start(self) -> None:
        if "count" in self._wants.events:
            from leadline.tools.backends.host_text import compile_text

            self._compiled = [compile_text(name, text) for name, text in self._wants.gpu.items()]
        from leadline.tools.backends.dispatch import Everywhere

        self._storages = Storages(self._context.objects)
        if "launch" in self._wants.events and self._wants.needs("launch", "flops"):
            self._flop_formulas = importlib.import_module("torch.utils.flop_counter").flop_registry
        if self._wants.needs("launch", "inputs"):
            self._hashes = InputHashes()
        self.on = True
        self._mode = Everywhere(self)
        self._mode.install()

    def stop(self) -> None:
        self.on = False
        if self._mode is not None:
            self._mode.uninstall()
            self._mode = None

    def wait(self, seconds: float) -> None:
        self._wake.wait(seconds)
        self._wake.clear()

    def lost(self) -> dict[str, int]:
        with self._lock:
            full = sum(launch.lost + touched.lost for launch, touched in self._rings)
            found = dict(self._lost)
        if full:
            found["rows that found their ring full"] = full
        return found

    def count_lost(self, what: str, count: int = 1) -> None:
        """Something that could not be seen; the dictionary stays small."""
        self._lost[what] = self._lost.get(what, 0) + count

    def count_unreadable(self, error: Exception) -> None:
        """An operator with tensors that are nothing to look at, such as opaque ones."""
        self.count_lost(f"operators whose tensors could not be inspected ({type(error).__name__})")

    @property
    def skipped(self) -> int:
        """Launches that the ranges left out."""
        return self._selector.skipped

    def drain(self) -> Iterable[Batch]:
        with self._lock:
            rings = list(self._rings)
            side, self._side = self._side, []
        # A launch is put before what it touches, so what is seen of the second is looked at first.
        heads = [touched.head for _, touched in rings]
        for launch, _ in rings:
            rows = launch.take()
            if len(rows):
                batch = batch_of("launch", dict(zip(_LAUNCH, rows.T.copy(), strict=True)))
                columns = batch.columns()
                self._context.launches.add(*(columns[name] for name in ("launch", "kernel", "place", "time")))
                yield batch
        for (_, touched), head in zip(rings, heads, strict=True):
            rows = touched.take(head)
            if len(rows):
                yield batch_of("touched", dict(zip(_TOUCHED, rows.T.copy(), strict=True)))
        for event, names in (("value", _VALUE), ("count", _COUNT)):
            found = [row for of, row in side if of == event]
            if found:
                yield batch_of(event, dict(zip(names, zip(*found, strict=True), strict=True)))

    # ---------------------------------------------------------------- on the program's threads

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator and note what it declares; its result."""
        facts = self._facts.get(func)
        if facts is None:
            facts = self._facts[func] = facts_of(func, self._context.names, self._flop_formulas)
        if not facts.touches or not self.on:
            return func(*args, **kwargs)
        place = self._place()
        inputs = self._hashes.of(func, args, kwargs) if self._hashes else 0  # before any is written
        before_ns = time.monotonic_ns()
        result = self.call(facts, func, args, kwargs, place)
        after_ns = time.monotonic_ns()
        try:
            self._note(facts, args, kwargs, result, place, before_ns, after_ns - before_ns, inputs)
        except Exception as error:
            self.count_unreadable(error)
        return result

    def call(self, facts: OperatorFacts, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], place: int) -> Any:
        """Only run it; its result. A backend that sees more than what is declared looks on here."""
        return func(*args, **kwargs)

    def _note(
        self,
        facts: OperatorFacts,
        args: Any,
        kwargs: Any,
        result: Any,
        place: int,
        time_ns: int,
        duration_ns: int,
        inputs: int,
    ) -> None:
        uses, device = self._storages.uses(facts, args, kwargs, result, place)
        if not any(use.reads or use.writes for use in uses):
            return
        launch = next(self._numbers)
        self._numbers_seen = launch + 1
        if not self._selector.chooses(launch, facts.name, place):
            return
        rings = self._local
        if rings.launch is None or rings.touched is None:
            rings.launch, rings.touched = Ring(len(_LAUNCH)), Ring(len(_TOUCHED))
            rings.tid = threading.get_native_id()
            with self._lock:
                self._rings.append((rings.launch, rings.touched))
        flops = self._flops(facts, args, kwargs, result) if facts.counts_flops else 0
        signed = place if place < 2**63 else place - 2**64
        full = rings.launch.put(launch, facts.number, time_ns, duration_ns, flops, inputs, rings.tid, device, signed)
        if self._touched_wanted:
            full |= self.put_touched(launch, uses, time_ns, signed)
        if full:
            self._wake.set()
        for check in self._checks:
            found = check.look(facts, args, kwargs, result)
            if found is not None:
                tensor, nan, inf, clean = found
                number = self._storages.number(tensor)
                self._aside("value", (launch, number, nan, inf, tensor.numel(), clean, time_ns, signed))
        for text in self._compiled:
            for tensor in tensors_in(result):
                why = text.why_not(tensor)
                counted = 0 if why else text.count(tensor)
                if why:
                    self.count_lost(f"results that the tool's `gpu` text could not read ({why})")
                elif counted:
                    self._aside("count", (launch, self._storages.number(tensor), counted, time_ns, signed))

    def put_touched(self, launch: int, uses: list[Use], time_ns: int, place: int) -> bool:
        """Rows of what a launch touched; whether they want to be drained."""
        ring = self._local.touched
        assert ring is not None
        full = False
        for use in uses:
            first, end, size, elements, reads, writes = use[1:]
            full |= ring.put(launch, use.object, first, end, size, elements, reads, writes, time_ns, place)
        return full

    def _flops(self, facts: OperatorFacts, args: Any, kwargs: Any, result: Any) -> int:
        try:
            return int(facts.counts_flops(*args, **kwargs, out_val=result))
        except Exception:
            self.count_lost(f"operations of {facts.name}, which torch's own counter could not count")
            return 0

    def _aside(self, event: str, row: tuple[int, ...]) -> None:
        with self._lock:
            if len(self._side) < 1 << 18:
                self._side.append((event, row))
            else:
                self.count_lost(f"rows of the event {event} that found no room")


def probe() -> str:
    """Why it would not work here, or empty."""
    return ""


def create(native: Any, context: Context, wants: Wants) -> DeclaredBackend:
    """See `leadline.tools.backends`."""
    return DeclaredBackend(native, context, wants)
