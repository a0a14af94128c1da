"""One process of a run: hooks for remedies, the steps as they end, and the end of the program behind the last one.

Without a remedy the program computes what it computes alone. What goes wrong in here is noted in the record.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import sys
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leadline.capture.import_hook import ImportHook
from leadline.capture.providers.replaced import Replacements
from leadline.capture.source_hashes import source_hashes
from leadline.remedies.base import NotApplied, Remedy
from leadline.remedies.borders import MODULE_CALLS, OPTIMIZER, ORDER, STEP_CALLS, Borders
from leadline.remedies.modules import OutermostModules
from leadline.remedies.outside import Outside
from leadline.remedies.plan import SCHEMA, Plan
from leadline.remedies.programs import Programs
from leadline.remedies.registry import find
from leadline.remedies.seeds import Seeds
from leadline.remedies.values import Values

GRACE_S = 15.0
"""The program has so long to end in order behind its last step; then its process ends."""


class Trial:
    """One per process. `facts`: what remedies may leave for the record; `loss_scale`: what a remedy multiplies losses
    by before `backward()`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.replaced = Replacements()
        self.facts: dict[str, Any] = {}
        self.optimizers: list[Any] = []
        self.loss_scale = 1.0
        self.count = 0
        self.values = Values(self)
        self.modules = OutermostModules(self)
        self.programs = Programs(self)
        self.seeds = Seeds(self)
        self._borders = Borders(self, self._closed)
        self._remedies: list[Remedy] = [find(name, value, file) for name, value, file in plan.remedies]
        self._not_applied: dict[str, str] = {}
        self._marks: dict[str, int] = {}
        self._times: list[int] = []
        self._mark = plan.mark
        self._faults: list[str] = []
        self._on_step: dict[int, list[Callable[[], None]]] = {}
        self._outside = Outside(str(Path.cwd()), plan.folder) if plan.look else None
        self._began_ns = time.perf_counter_ns()
        self._began_real_ns, self._cwd = time.time_ns(), str(Path.cwd())
        self._end_ns = self._warm_ns = 0
        self._warm_collections = 0
        self._pid = os.getpid()

    # ---------------------------------------------------------------- what remedies use

    def when_imported(self, package: str, call: Callable[[Any], None]) -> None:
        """Calls back with the package right after the program has imported it; at once where it has already."""
        ImportHook(package, call).install()

    def on_module(self, call: Callable[[Any], None]) -> None:
        """Calls back with each outermost module that is trained, before its first call."""
        self.modules.actions.append(call)

    def on_step(self, number: int, call: Callable[[], None]) -> None:
        """Calls back when so many steps have ended."""
        self._on_step.setdefault(number, []).append(call)

    @property
    def step(self) -> int:
        """Number of the step that runs, from 1 on."""
        return self.count + 1 + self._borders.is_late

    def fault(self, error: BaseException) -> None:
        """Notes what went wrong in here; the program goes on."""
        if len(self._faults) < 5:
            self._faults.append(f"{type(error).__name__}: {error}"[:300])

    def wants(self, mark: str) -> bool:
        """Whether steps may be counted by this mark."""
        return self.plan.mark in ("", mark)

    # ---------------------------------------------------------------- the run

    def start(self) -> None:
        """Before the program's first line."""
        atexit.register(self._at_exit)
        if self._outside is not None:
            self._outside.start()
        self.seeds.install()
        self.values.install()
        for remedy in self._remedies:
            try:
                remedy.start(self)
            except NotApplied as reason:
                self._not_applied[remedy.title] = str(reason)
        self.modules.install()
        self._borders.install()

    def optimizer_begins(self, optimizer: Any) -> None:
        if not any(one is optimizer for one in self.optimizers):
            self.optimizers.append(optimizer)
            if self.count == 0:
                with contextlib.suppress(Exception):
                    self.values.begin()

    def module_returned(self, output: Any) -> None:
        """The outermost module has been called, of a program that only infers."""
        if self.wants(MODULE_CALLS):
            if self._mark in ("", MODULE_CALLS) and not self.optimizers:
                self.values.module_returned(output)
            self._borders.module_called()

    def _closed(self, mark: str, at_ns: int) -> None:
        """A step of this mark has ended. The first mark in `ORDER` that has been seen twice is the program's."""
        if os.getpid() != self._pid:
            return  # a child that was forked: what it does is no step of this process
        seen = self._marks[mark] = self._marks.get(mark, 0) + 1
        if not self.plan.mark:
            better = self._mark not in ORDER or ORDER.index(mark) < ORDER.index(self._mark)
            if seen >= 2 and better:
                self._mark, self.count = mark, seen - 1
                self._times.clear()
        if mark != self._mark:
            return
        self.count += 1
        self._times.append(at_ns)
        for call in self._on_step.get(self.count, ()):
            try:
                call()
            except Exception as error:
                self.fault(error)
        if self.count == 1 and not self.optimizers:
            with contextlib.suppress(Exception):
                self.values.step_ended()
        if self.count == self.plan.warm_up:
            self._warm()
        elif self._end_ns:
            os._exit(0)  # it was told to end, and went on
        elif self.count >= (self.plan.warm_up + self.plan.steps) * self._patience():
            self._end()

    def _patience(self) -> int:
        """Where the mark is not known yet, batches of a program that trains may be parts of a step."""
        unsure = not self.plan.mark and self._mark not in (STEP_CALLS, OPTIMIZER) and self.values.has_backward
        return 4 if unsure else 1

    def _warm(self) -> None:
        gc.callbacks.append(self._collected)
        _synchronise()
        _reset_peaks()
        self._warm_ns = time.perf_counter_ns()

    def _collected(self, phase: str, facts: dict[str, int]) -> None:
        if phase == "stop" and facts.get("generation") == 2:
            self._warm_collections += 1

    def _end(self) -> None:
        _synchronise()
        self._end_ns = time.perf_counter_ns()
        self._write()
        threading.Thread(target=_end_at_last, daemon=True).start()
        raise SystemExit(0)

    def _at_exit(self) -> None:
        if os.getpid() == self._pid and not self._end_ns:
            with contextlib.suppress(SystemExit):
                self._borders.finish()
        if os.getpid() == self._pid and not self._end_ns and (self._marks or "torch" in sys.modules):
            if self._warm_ns:
                _synchronise()
                self._end_ns = self._times[-1] if self._times else time.perf_counter_ns()
            self._write()

    # ---------------------------------------------------------------- its record

    def _write(self) -> None:
        try:
            outcomes = {**self._not_applied}
            for remedy in self._remedies:
                if remedy.title not in outcomes:
                    outcomes[remedy.title] = self._outcome(remedy)
            record = {
                "schema": SCHEMA,
                "pid": self._pid,
                "argv": sys.orig_argv,
                "rank": int(os.environ.get("RANK", "0") or 0),
                "mark": self._mark,
                "steps": self.count,
                "warm_up": self.plan.warm_up,
                "measured_ns": max(self._end_ns - self._warm_ns, 0) if self._warm_ns else 0,
                "before_ns": (self._warm_ns or self._end_ns) - self._began_ns,
                "step_ns": [b - a for a, b in zip(self._times, self._times[1:], strict=False)],
                "full_collections": self._warm_collections,
                "outcomes": outcomes,
                "faults": self._faults,
                "facts": self.facts,
                "memory": _peaks(),
                "versions": _versions(),
                "sources": source_hashes(self._began_real_ns, {"argv": sys.orig_argv, "cwd": self._cwd}),
                **self.values.result(),
            }
            if self._outside is not None:
                record |= {"ports": self._outside.ports, "outside": self._outside.files}
            path = Path(self.plan.folder) / f"{self._pid}.json"
            path.with_suffix(".part").write_text(json.dumps(record), encoding="utf-8")
            path.with_suffix(".part").rename(path)
        except Exception as error:
            print(f"leadline: this process could not write its record of the trial ({error!r})", file=sys.stderr)

    def _outcome(self, remedy: Remedy) -> str:
        try:
            return remedy.outcome(self)
        except NotApplied as reason:
            return str(reason)
        except Exception as error:
            return f"whether it took effect is not known ({error!r})"

    def write_numbers(self, name: str, numbers: array[float]) -> None:
        with (Path(self.plan.folder) / f"{self._pid}.{name}").open("wb") as file:
            numbers.tofile(file)


def _end_at_last() -> None:
    time.sleep(GRACE_S)
    os._exit(0)


def _synchronise() -> None:
    torch: Any = sys.modules.get("torch")
    with contextlib.suppress(Exception):
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.synchronize()


def _reset_peaks() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    torch: Any = sys.modules.get("torch")
    with contextlib.suppress(Exception):
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.reset_peak_memory_stats()


def _peaks() -> dict[str, int]:
    """Bytes: of the process (and of tensors on GPUs), since the warm-up."""
    found: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                found["process"] = int(line.split()[1]) * 1024
    torch: Any = sys.modules.get("torch")
    with contextlib.suppress(Exception):
        if torch is not None and torch.cuda.is_initialized():
            found["tensors"] = int(torch.cuda.max_memory_allocated())
    return found


def _versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for name in ("torch", "jax", "numpy", "transformers", "lightning"):
        version = getattr(sys.modules.get(name), "__version__", "")
        if version:
            found[name] = str(version)
    torch: Any = sys.modules.get("torch")
    with contextlib.suppress(Exception):
        if torch is not None and torch.cuda.is_initialized():
            found["device"] = str(torch.cuda.get_device_name())
    return found
