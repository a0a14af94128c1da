"""XLA's operations in the trace window: what each run of a program executed, when, and on which thread.

While the window is open XLA's profiler runs all the time (`jax_windows.py`). What it has seen of the host becomes
events at the nodes that the program's times are booked at, and what the program says of its operands is kept for the
edges between them. Work of devices is not in it.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from leadline.capture.native import Native
from leadline.capture.providers.booked import Booked
from leadline.capture.providers.jax.booking import POOL, program_frame
from leadline.capture.providers.jax.programs import Compiled, Programs
from leadline.capture.providers.jax.runs import Key
from leadline.xla.parts import Frame, program_name
from leadline.xla.recorded import host_thread, origin_ns

MOST_OPERATIONS = 20_000
"""Of a program whose operands are kept."""
_Times = tuple[list[int], list[int]]
_Operation = tuple[int, str]
"""Row of the thread, and the operation."""
_Call = tuple[int, int, int]
"""Begin and duration in ns, and row of the thread."""
_CALL = "PjitFunction("
"""How the profiler names a call of a program from Python; it tells some twice, one inside of the other."""


@dataclass
class _Run:
    """Of a program: when its first operation began, and what it executed."""

    program: int
    module: str
    begun_ns: int
    operations: dict[_Operation, _Times] = field(default_factory=dict)


class TracedRuns:
    """Puts runs into the window, and knows which operation waited for which."""

    def __init__(self, native: Native, programs: Programs) -> None:
        self._native = native
        self._programs = programs
        self._booked = Booked(native)
        self._graphs: list[dict[str, Any]] = []
        self._graph_of: dict[int, int] = {}
        """By the number of a program; -1 where it does not say."""
        self._runs: list[int] = []
        """Of each run that was put in its graph."""
        self._unplaced = 0

    def facts(self) -> dict[str, Any]:
        """For whoever derives edges: `runs` holds the row of `graphs` for each run, whose events have
        its place in the list plus one as their correlation. `unplaced`: runs that are in no window for want of a
        call."""
        if not self._runs and not self._unplaced:
            return {}
        return {"first": 1, "graphs": self._graphs, "runs": self._runs, "unplaced": self._unplaced}

    def add(self, data: bytes, seen: Sequence[Key]) -> None:
        """What a session of XLA's profiler recorded; `seen`: what was dispatched meanwhile, in order."""
        found = importlib.import_module("leadline._xla").profile(
            data, ["program_id", "run_id"], ["hlo_op", "hlo_module"]
        )
        columns, stats, strings = found["events"], found["stats"], found["strings"]
        if "hlo_op" not in stats or "program_id" not in stats:
            return
        shift_ns = origin_ns(found["planes"], found["base_ns"]) + time.monotonic_ns() - time.time_ns()
        threads = [host_thread(line) for line in found["lines"]]
        run_of = stats.get("run_id")
        runs: dict[tuple[int, int], _Run] = {}
        operation, program, module = stats["hlo_op"], stats["program_id"], stats.get("hlo_module")
        line, start_ps, lasted_ps = columns["line"], columns["start_ps"], columns["duration_ps"]
        called: dict[str, list[_Call]] = {}
        functions = {row: text[len(_CALL) : -1] for row, text in enumerate(strings) if text.startswith(_CALL)}
        for row in range(len(operation)):
            start_ns = start_ps[row] // 1000
            duration_ns = (start_ps[row] + lasted_ps[row]) // 1000 - start_ns
            if operation[row] and threads[line[row]] is not None:
                key = (program[row], run_of[row] if run_of is not None else 0)
                run = runs.get(key)
                if run is None:
                    run = runs[key] = _Run(key[0], strings[module[row]] if module is not None else "", start_ns)
                run.begun_ns = min(run.begun_ns, start_ns)
                begins, durations = run.operations.setdefault((line[row], strings[operation[row]]), ([], []))
                begins.append(start_ns + shift_ns)
                durations.append(duration_ns)
            elif columns["name"][row] in functions:
                of_name = called.setdefault(program_name(f"jit({functions[columns['name'][row]]})"), [])
                of_name.append((start_ns + shift_ns, duration_ns, line[row]))
        dispatched: dict[str, list[Key]] = {}
        for one in seen:
            dispatched.setdefault(program_name(one[1]), []).append(one)
        calls = {name: _outermost(called.get(name, [])) for name in dispatched}
        for name, found_calls in calls.items():
            if len(found_calls) != len(dispatched[name]):
                found_calls.clear()  # which is which cannot be told
        for run in sorted(runs.values(), key=lambda one: one.begun_ns):
            if dispatched.get(run.module):
                call = calls[run.module].pop(0) if calls[run.module] else None
                self._put(dispatched[run.module].pop(0), run, threads, call)
            else:
                self._unplaced += 1

    def _put(self, key: Key, run: _Run, threads: Sequence[tuple[int, str] | None], call: _Call | None) -> None:
        compiled = self._programs.get(run.program, run.module)
        self._runs.append(self._graph(run.program, compiled))
        top = program_frame(key[1], compiled)
        events: list[tuple[tuple[Frame, ...], int, list[int], list[int]]] = []
        if call is not None:
            events.append(((top,), key[0], [call[0]], [call[1]]))
        for (line, name), (begins, durations) in run.operations.items():
            parts = compiled.parts_of(name) if compiled is not None else ()
            frames = max(parts, key=lambda part: part.share).frames if parts else ()
            thread = threads[line]
            place = 0 if thread is None else self._native.thread_place(*thread)
            events.append(((top, POOL, *frames), place, begins, durations))
        for path, place, begins, durations in events:
            node = self._booked.node(key[0], path)
            if node and place:
                self._native.timed(node, place, len(self._runs), begins, durations)

    def _graph(self, number: int, compiled: Compiled | None) -> int:
        known = self._graph_of.get(number)
        if known is None:
            known = -1
            program = None if compiled is None else compiled.read()
            calls, edges = program.dataflow() if program is not None else ([], [])
            if compiled is not None and 0 < len(calls) <= MOST_OPERATIONS:
                known = len(self._graphs)
                self._graphs.append({"program": compiled.name, "calls": calls, "edges": edges})
            self._graph_of[number] = known
        return known


def _outermost(calls: list[_Call]) -> list[_Call]:
    """Those that lie in no other one, in order."""
    found: list[_Call] = []
    for one in sorted(calls, key=lambda call: (call[0], -call[1])):
        if not found or one[0] >= found[-1][0] + found[-1][1] or one[2] != found[-1][2]:
            found.append(one)
    return found
