"""Short windows in which XLA times its operations, so that exact counts of runs become estimates of time.

A window is opened when a program has been run and its result is there, and closed when the result of a later run is
there and at least `SHORTEST_S` have passed, so the runs in it are whole and long operations are in it as often as short
ones. A program that was never timed is timed in its first run, and once more when it runs again, since the first run
makes what later ones find made: large programs always, others while that costs little.

Work of devices is that of their planes; on GPUs these do not number runs, so the runs of a window are those that were
dispatched in it.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import starmap
from typing import TYPE_CHECKING, Any

from leadline.capture.providers.jax import devices as jax_devices
from leadline.capture.providers.jax import places as jax_places
from leadline.capture.providers.jax.programs import Programs
from leadline.capture.providers.jax.runs import Key
from leadline.capture.providers.profilers.windows import ProfilerWindows
from leadline.xla.parts import program_name

if TYPE_CHECKING:
    from leadline.capture.providers.jax.trace import TracedRuns

_UNNUMBERED = -(2**63)
Work = tuple[str, int, int, str]
"""Operation, device, stream, and the name of the kernel or copy."""
_WORTH_NS = 300_000
"""What takes less is an operation by itself, of which there are hundreds."""
_LONG_NS = 1_000_000_000
"""Beside this, what only a first run has to make takes little."""


@dataclass
class Timed:
    """Sums over the timed runs of one program."""

    early: bool = True
    """From its first run only, which still makes what later runs find made."""
    runs: int = 0
    wall_ns: int = 0
    shortest_ns: int = 0
    longest_ns: int = 0
    operations: dict[str, list[float]] = field(default_factory=dict)
    """By operation: count, whole ps, self ps, shortest ps, longest ps."""
    work: dict[Work, list[float]] = field(default_factory=dict)
    """The same of what devices did."""

    def add_run(self, wall_ns: int) -> None:
        self.shortest_ns = wall_ns if self.runs == 0 else min(self.shortest_ns, wall_ns)
        self.longest_ns = max(self.longest_ns, wall_ns)
        self.runs += 1
        self.wall_ns += wall_ns


@dataclass(frozen=True)
class _Call:
    """A run of a program, on all of its devices."""

    program: int
    module: str
    wall_ps: int


class Windows(ProfilerWindows):
    """Windows of XLA's profiler, and what they have added up to."""

    PROFILER = "XLA"
    SHORTEST_S = 0.02
    COST_SHARE = 0.01

    def __init__(
        self,
        programs: Programs,
        loss: Callable[[str], None],
        measured_by: Callable[[], str],
        trace: tuple[Callable[[], bool], TracedRuns] | None = None,
    ) -> None:
        """`measured_by`: which vendor provider of ours measures the devices. `trace`: whether the trace window is open,
        and what puts runs into it, where there is one."""
        super().__init__(loss, None if trace is None else trace[0])
        self._traced = None if trace is None else trace[1]
        self._measured_by = measured_by
        self._programs = programs
        self._seen: list[Key] = []
        self._last: dict[str, Callable[[], Any]] = {}
        """Of each function an array that its last run in this window results in, while the program holds it."""
        self._fold: Any = None
        self._first = ""
        self.is_inside: Callable[[], bool] = bool
        """Whether this thread is inside of a run, whose arguments JAX puts where they belong by programs of its own."""
        self.device_type = ""
        """Of the devices whose work the windows saw, as files name it."""
        self.timed: dict[int, Timed] = {}
        """By the number of a program."""
        self.of_key: dict[Key, dict[int, int]] = {}
        """Timed runs of each place and function, by program."""
        self.known: set[str] = set()
        """Functions that have been timed."""
        self._whole: dict[int, tuple[int, int]] = {}
        """By program: most operations of its entry that a run had, and most devices that one was on."""
        self._too_large: set[str] = set()
        """Functions whose windows recorded more than may be held."""
        self._discarded: set[str] = set()
        self._opened_after = ""
        self._settled: set[str] = set()
        """Those that get no window of their own any more."""

    def before(self, name: str) -> None:
        """A program is about to run on the slow path, most likely for the first time."""
        if self._programs.fresh and (module := program_name(name)) in self._programs.fresh:
            self._programs.fresh.discard(module)  # compiled again, for other arguments, it was never timed
            self.known.discard(name)
            self._settled.discard(name)
        if self._session is None and self.may_open() and name not in self.known and self._may_time_first():
            self._first = name
            self._open(first_run=True)

    def after(self, key: Key, output: Any) -> None:
        """A program has been dispatched; `output` is what it will result in."""
        if self._session is None:
            if self._traced is not None:
                self._last[key[1]] = _weak(output)
                if self._trace_turns():
                    return self._turn(output)
            if self.may_open() and (self._is_due() or (key[1] not in self._settled and self._is_wanted(key[1]))):
                self._settled.add(key[1])
                self._opened_after = key[1]
                self._wait(output)
                self._open(first_run=False)
            return None
        self._seen.append(key)
        self._last[key[1]] = _weak(output)
        if self._trace_turns():
            self._turn(None)
        elif self._is_over() and not self.is_inside():
            self.close()
        return None

    def is_settled(self, name: str) -> bool:
        """Whether runs of a function need to be told only when a window is due."""
        return bool(self.off) or name in self._settled

    def is_timing(self) -> bool:
        """Whether a window is open."""
        return self._session is not None

    def quiet_until_s(self) -> float:
        """Until when, of `time.monotonic`, those runs need not be told; 0 while each is wanted."""
        if self._session is not None or self._traced is not None:
            return 0.0
        return math.inf if self.off else min(self._next_s, self.book_next_s)

    def waits_for_more(self, name: str, timed: Timed) -> bool:
        """Whether later runs of a program will soon tell its time better than its first run."""
        return timed.early and not self.is_too_large(name) and timed.wall_ns < _LONG_NS * timed.runs

    def is_too_large(self, name: str) -> bool:
        """Whether no later run of a function will be timed."""
        return name in self._too_large

    def _is_wanted(self, name: str) -> bool:
        """Whether a function that has just run is to be timed in its next run."""
        if program_name(name) in self._programs.large:
            return True
        if name not in self.known:
            self._settled.add(name)
        return name in self.known and self._may_time_first()

    def begin_session(self) -> None:
        if jax_places.is_profiling():
            return
        self.off = self._unavailable()
        if self.off:
            return
        profiler = jax_places.profiler()
        self.device_type = jax_devices.other_type()
        options = profiler.ProfileOptions()
        options.python_tracer_level = 0
        options.enable_hlo_proto = False
        self._seen = []
        self.begun.extend(starmap(self.session_type or profiler.ProfilerSession, [(options,)]))

    def last_run(self, output: Any) -> None:
        self.settle(output)
        self._last.clear()

    def settle(self, output: Any) -> None:
        for last in list(self._last.values()):
            self._wait(last())
        self._wait(output)

    def is_whole(self) -> bool:
        try:
            return all(array.is_ready() for last in list(self._last.values()) for array in _arrays(last()))
        except Exception:  # it was donated to a later run
            return False

    def stop(self, session: Any) -> tuple[bytes, list[Key]]:
        seen, self._seen = self._seen, []
        return self._stop(session), seen

    def add_up(self, seen: tuple[bytes, list[Key]]) -> None:
        self._add(*seen)

    def discard(self, session: Any) -> int:
        self._discarded = {self._opened_after, *(key[1] for key in self._seen)}
        self._seen = []
        return len(self._stop(session))

    def gave_up(self) -> None:
        if self._for_first_run:
            self.known.add(self._first)
            self._too_large.add(self._first)
        else:
            self._too_large |= self._discarded

    def _unavailable(self) -> str:
        profiler = jax_places.profiler()
        if not hasattr(profiler, "ProfilerSession") or not hasattr(profiler, "ProfileOptions"):
            return "This jaxlib has no profiler that is known here, so operations have counts and no times."
        vendor = self._measured_by() if any(True for _ in jax_devices.others()) else ""
        if vendor:
            self.off_quietly = True  # XLA may tell which operations its kernels are of
            return (
                f"Kernels are measured by the {vendor} provider, on the lines that call programs, and XLA did not say "
                "which operations inside of them launched them; it does on NVIDIA GPUs where the program is started "
                "with `leadline run`, and not with `--nvtx=-TSL`."
            )
        return ""

    def _wait(self, output: Any) -> None:
        """Until what a program results in is there; an error in it is the program's own to meet."""
        for array in _arrays(output):
            try:
                array.block_until_ready()
            except Exception:
                return

    def _stop(self, session: Any) -> bytes:
        try:
            return bytes(session.stop())
        except Exception as error:
            self._loss(f"A window of XLA's profiler was lost, as another session was open ({error}).")
            return b""

    def _add(self, data: bytes, seen: list[Key]) -> None:
        if not data:
            return
        if self._traced is not None and self._traces:
            self._traced.add(data, seen)
        if self._fold is None:
            self._fold = importlib.import_module("leadline._xla").fold
        _, runs, _ = self._fold(data, {})
        for number, name in {(run[0], run[1]) for run in runs}:
            self._programs.get(number, name)
        operations, runs, problem = self._fold(data, self._programs.control_flow(), self._expected(runs))
        if problem:
            self._loss(f"A window of XLA's profiler could not be read: {problem}")
        self.count += 1
        calls = list(self._calls(runs, operations, seen))
        early = {number: self._for_first_run or self._is_new(number) for number in {one.program for one in calls}}
        for one in calls:
            timed = self.timed.setdefault(one.program, Timed())
            if timed.early and not early[one.program]:
                timed = self.timed[one.program] = Timed(early=False)
            if timed.early == early[one.program]:
                timed.add_run(one.wall_ps // 1000)
        for number, operation, count, total_ps, self_ps, shortest_ps, longest_ps, _, device, stream, work in operations:
            of_program = self.timed.get(number)
            if of_program is None or of_program.early != early.get(number, self._for_first_run):
                continue
            nothing = [0, 0, 0, shortest_ps, 0]
            sums = (
                of_program.operations.setdefault(operation, nothing)
                if device < 0
                else of_program.work.setdefault((operation, device, stream, work), nothing)
            )
            sums[0] += count
            sums[1] += total_ps
            sums[2] += self_ps
            sums[3] = min(sums[3], shortest_ps)
            sums[4] = max(sums[4], longest_ps)
        self._assign(calls, seen)

    def _is_new(self, number: int) -> bool:
        """Whether a program was compiled while this window was open, so that its first run is in it."""
        compiled = self._programs.get(number)
        return compiled is not None and compiled.learned_s > self._opened_s

    def _calls(self, runs: list[Any], operations: list[Any], seen: list[Key]) -> Iterator[_Call]:
        """The calls of programs, each on one or several devices, in the order of their numbers."""
        together: dict[tuple[int, int], list[Any]] = {}
        for run in runs:
            together.setdefault((run[0], run[2]), []).append(run)
        for (number, run_id), parts in together.items():
            once, devices = self._whole.get(number, (0, 0))
            self._whole[number] = max(once, *(part[8] for part in parts)), max(devices, len(parts))
            if not all(part[9] for part in parts):
                continue  # an edge of the window has cut it
            module = str(parts[0][1])
            if run_id != _UNNUMBERED:
                begun, ended = min(part[4] for part in parts), max(part[5] for part in parts)
                yield _Call(number, module, ended - begun)
            else:
                yield from self._unnumbered(number, module, parts, operations, seen)

    def _expected(self, runs: list[Any]) -> dict[int, tuple[frozenset[str], int, int]]:
        """What whole runs of the programs in a window have, so that those that its edges have cut are left out."""
        expected = {}
        for number in {run[0] for run in runs}:
            compiled = self._programs.get(number)
            if compiled is not None and compiled.entry:
                expected[number] = (compiled.entry, *self._whole.get(number, (0, 0)))
        return expected

    def _unnumbered(
        self, number: int, module: str, parts: list[Any], operations: list[Any], seen: list[Key]
    ) -> Iterator[_Call]:
        """Releases before 0.8 and GPUs do not number runs. There an operation of a program's entry, which runs once
        each time, tells how many they were, and all of these together how long. On a GPU it may be several kernels, so
        what was dispatched counts where one program has this name."""
        compiled = self._programs.get(number)
        entry = compiled.entry if compiled is not None else frozenset[str]()
        once: dict[tuple[str, int], list[int]] = {}
        for program, name, count, total_ps, *_, device, _stream, _work in operations:
            if program == number and name in entry:
                sums = once.setdefault((name, device), [0, 0])
                sums[0] += count
                sums[1] += total_ps
        counts = [count for count, _ in once.values()]
        on_device = any(part[7] for part in parts)
        count = (min if on_device else max)(counts, default=1)
        alone = not any(one != number and self._programs.name(one) == module for one in {row[0] for row in operations})
        if on_device and alone:
            count = sum(program_name(key[1]) == module for key in seen) or count
        devices = len({part[3] for part in parts})
        wall_ps = sum(total_ps for _, total_ps in once.values()) // devices // count
        if not once:
            wall_ps = max(part[5] - part[4] for part in parts) // count
        yield from [_Call(number, module, wall_ps)] * count

    def _assign(self, calls: list[_Call], seen: list[Key]) -> None:
        """The runs of a name in the order they were dispatched are the runs of the functions of that name."""
        by_name: dict[str, list[int]] = {}
        for one in calls:
            by_name.setdefault(one.module, []).append(one.program)
        for key in seen:
            numbers = by_name.get(program_name(key[1]))
            if numbers:
                number = numbers.pop(0)
                of_key = self.of_key.setdefault(key, {})
                of_key[number] = of_key.get(number, 0) + 1
                self.known.add(key[1])
                timed = self.timed.get(number)
                if timed is None or not timed.early or timed.longest_ns < _WORTH_NS:
                    self._settled.add(key[1])


def _weak(output: Any) -> Callable[[], Any]:
    for array in _arrays(output):
        with contextlib.suppress(TypeError):
            return weakref.ref(array)
    return lambda: None


def _arrays(output: Any) -> list[Any]:
    """Arrays in nested tuples, lists and dicts, and in whatever else JAX takes apart."""
    if hasattr(output, "block_until_ready"):
        return [output]
    flatten = jax_places.first("jax.tree_util.tree_leaves", "jax._src.tree_util.tree_leaves")
    try:
        leaves = flatten(output) if flatten is not None else []
    except Exception:
        leaves = []
    return [leaf for leaf in leaves if hasattr(leaf, "block_until_ready")]
