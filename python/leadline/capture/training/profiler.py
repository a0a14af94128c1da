"""The profiler of a training loop: starts measuring, opens and closes windows at exact step numbers, ends in one file.

Promises: never an exception into the loop and never a collective, so no rank waits for a profiler; whatever goes wrong
is one sentence on stderr. `step(n)` names the step that has just ended.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from leadline.capture.api import start as start_measuring
from leadline.capture.budget import cost_so_far
from leadline.capture.current import CURRENT
from leadline.capture.errors import ProfileError
from leadline.capture.messages import say
from leadline.capture.process_info import environment_number
from leadline.capture.session import Session
from leadline.capture.training.config import TrainingConfig, read_config
from leadline.capture.training.files import claim_name, prepare_folder, remove_oldest, remove_profile
from leadline.capture.training.journal import Journal
from leadline.capture.training.memory_watch import SNAPSHOT_SUFFIX, MemoryWatch, is_out_of_memory, write_page
from leadline.capture.training.model_facts import model_facts
from leadline.capture.training.on_demand import Demand, Listener, listen
from leadline.capture.training.schedule import described, last_step, phase
from leadline.capture.training.step_budget import ROLLING_PERCENT, StepBudget
from leadline.capture.training.upload import upload


def build_profiler(config: object = None, *, rank: int | None = None, **keywords: Any) -> TrainingProfiler | None:
    """The profiler of this rank, or None when profiling is disabled or this rank is not to be measured.

    `config`: see `read_config`; `keywords` are fields of TrainingConfig and win. `rank`: by default RANK of the
    environment, else 0. Raises ProfileError for a wrong configuration, on every rank alike.
    """
    checked = read_config(config, **keywords)
    number = environment_number("RANK", 0) if rank is None else int(rank)
    local = environment_number("LOCAL_RANK", number)
    if not checked.enable or not checked.rank_measures(number, local):
        return None
    return TrainingProfiler(checked, number, told=rank is not None)


class TrainingProfiler:
    """Measures a training loop. `start`, `step` after every step, `stop`; or as a `with` block around the loop."""

    def __init__(self, config: TrainingConfig, rank: int, *, told: bool = False) -> None:
        """`told`: the program itself says which rank this is."""
        self.config = config
        self.rank = rank
        self._told = told
        self.path: Path | None = None
        """The profile; None until it is made, and where somebody else's session measures."""
        self.folder = Path(config.trace_dir)
        self.journal = Journal(config, rank)
        self._demand = Demand()
        self._listener: Listener | None = None
        self._running = False
        self._pid = 0
        self._session: Session | None = None
        self._budget: StepBudget | None = None
        self._roll_at_ns = 0
        self._open = False
        self._unproven = False  # the window is open for a first step of which the number is not known yet
        self._next: int | None = None
        self._said: set[str] = set()
        self._made: list[Path] = []
        self._memory = MemoryWatch(self.note_error, config.memory_history)

    # ---------------------------------------------------------------- the loop

    def start(self, next_step: int | None = None) -> None:
        """Begin measuring. `next_step`: number of the step that comes first, where the loop knows it; without it the
        first `step(n)` tells. Says a sentence and does nothing when measuring cannot begin."""
        if self._running:
            say("this profiler has been started already; its second start() does nothing.")
            return
        try:
            self._start_session()
        except ProfileError as error:
            say(f"{error} Training continues without a profile.")
            return
        self._running = True
        self._pid = os.getpid()
        _stop_at_exit(self)
        self._memory.install()
        self._next = next_step
        self._begin_first_step(next_step)
        self.journal.begin(next_step)
        self._unproven = next_step is None
        if next_step is None or self._recorded(next_step):
            self._set_open(True)
        last = last_step(self.config)
        if next_step is not None and last is not None and next_step > last and not self.config.on_demand:
            say(f"training continues at step {next_step}; the window ({described(self.config)}) has passed.")
        if self._listener is None and self.config.on_demand:
            self._listener = listen(self.config, self._demand, self.folder, self.rank)

    def begin_step(self, number: int | None = None) -> None:
        """A step begins: what has passed since the last one ended (evaluation, a checkpoint) is not step time."""
        if not self._running:
            return
        if number is not None and self._unproven:
            self._unproven = False
            if not self._recorded(number):
                self._take_back()
        number = self._next if number is None else number
        native = CURRENT.native
        if native is not None:
            native.step_begin(-1 if number is None else number)
        self.journal.begin(number)

    def step(self, number: int | None = None) -> None:
        """The step `number` has ended; without a number it is the one after the last. With `accumulation` in the
        configuration, the numbers are those of micro-batches."""
        if not self._running:
            return
        number = (self._next or 0) if number is None else int(number)
        if self.config.accumulation > 1:
            micro, number = number, number // self.config.accumulation
            self._next = micro + 1
            if (micro + 1) % self.config.accumulation:
                return
        else:
            self._next = number + 1
        if not self._in_order(number):
            return
        if (self._unproven or self._open) and not self._recorded(number):
            self._take_back() if self._unproven else self._set_open(False)
        self._unproven = False
        session = CURRENT.session
        measured = session is None or _BY not in session.pausing
        if session is not None:
            session.step(number)
        self.journal.end(number, recorded=self._open, measured=measured)
        if self._listener is not None:
            self._listener.poll(number)
        else:
            self._demand.settle(number)
        if self._roll_at_ns and time.monotonic_ns() >= self._roll_at_ns and self._session is not None:
            self._roll()
        recorded = self._recorded(number + 1)
        self._measure(number + 1, recorded, measured)
        self._set_open(recorded)

    def stop(self) -> Path | None:
        """End measuring and make the file; returns its path. A second call does nothing."""
        if not self._running:
            return self.path
        self._running = False
        if os.getpid() != self._pid:
            return self.path  # a forked child: the session, the side file and the listener's thread are its parent's
        self._memory.uninstall()
        if self._listener is not None:
            self._listener.close()
        cut = self._open and self.journal.last_step is not None and self.config.active is None
        if self._unproven:
            self._take_back()
        self._set_open(False)
        if cut and not self._demand.covers((self.journal.last_step or 0) + 1):
            where = "inside" if self.journal.recorded else "before"
            say(f"the run ended after step {self.journal.last_step}, {where} the window ({described(self.config)}).")
        self._finish_file()
        return self.path

    def __enter__(self) -> TrainingProfiler:
        self.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.note_error(error)
        self.stop()

    def note_error(self, error: BaseException | None) -> None:
        """An error has ended the loop. If memory is out, the profile is made now, its summary tells who held what, and
        torch's snapshot is kept beside it; any other error is not our matter. Errors that nobody catches come here by
        themselves."""
        if not self._running or os.getpid() != self._pid or not is_out_of_memory(error):
            return
        self.journal.out_of_memory = {
            "message": f"{type(error).__name__}: {error}"[:2000],
            "step": self._next if self._next is not None else self.journal.last_step,
            "at_ns": time.time_ns(),
        }
        place = self.journal.place
        snapshot = self._memory.keep(place.with_suffix(SNAPSHOT_SUFFIX)) if place is not None else None
        path = self.stop()
        if path is not None:
            page = write_page(path)
            beside = f" and {snapshot.name}" if snapshot is not None else ""
            shown = (
                f"{page} lists what held memory"
                if page is not None
                else f"leadline report --training {path} lists what held memory"
            )
            say(f"out of memory; {shown} (from {path.name}{beside}).")

    def upload(self, paths: Iterable[Path]) -> list[str]:
        """Put files to where the configuration's `upload` says; returns their addresses there."""
        return upload(self.config.upload, paths)

    def snapshot_memory(self) -> Path | None:
        """Torch's snapshot of the allocator as it is now, beside the profile; None without a CUDA device or a file of
        our own. `torch.cuda._memory_viz` shows it, and the summary joins it with call paths."""
        place = self.journal.place
        return self._memory.keep(place.with_suffix(SNAPSHOT_SUFFIX)) if place is not None else None

    def describe_model(self, model: Any = None, **facts: float) -> None:
        """Tell of the model, so that the summary compares counted operations with 6 N per token. `facts` win:
        `parameters`, `trainable`, `layers`, `attention_width`, `tokens_per_step`, `sequence_length`. Tokens and
        sequence are otherwise those of the largest table looked up. Says a sentence for what is no torch module."""
        try:
            found = {} if model is None else model_facts(model)
        except Exception as error:
            say(f"the model could not be described ({error!r}); the summary goes without.")
            found = {}
        self.journal.model = {**self.journal.model, **found, **facts}

    def request_window(self, steps: int | None = None, first: int | None = None, *, all_ranks: bool = False) -> None:
        """Record `steps` steps from `first` on, by default the configured number from the next one. `all_ranks`: the
        same steps on every rank, which needs `on_demand = "store"` and begins a few steps later."""
        wanted = steps or self.config.on_demand_steps
        if not all_ranks:
            self._demand.ask(wanted, first)
            return
        ask = getattr(self._listener, "ask", None)
        if ask is None:
            say('windows on all ranks need on_demand = "store" (or a file called record-now, with "file").')
        else:
            ask(wanted, first)

    @property
    def recorded_steps(self) -> tuple[int, ...]:
        """Numbers of the steps that windows have recorded so far."""
        return tuple(self.journal.recorded)

    # ---------------------------------------------------------------- inside

    def _start_session(self) -> None:
        session = CURRENT.session
        if session is not None and session.inner:
            raise ProfileError(f"Measuring into {session.output} is already under way, and a process has one profiler.")
        self.folder = prepare_folder(self.folder)
        if session is not None:
            say(f"this program is measured into {session.output}; the training profiler opens its windows there.")
            output = Path(session.output)
            self.journal.place = output.with_name(f"{output.stem}_rank{self.rank}{output.suffix}")
            self.journal.shared = True
            self.journal.write()
            return
        claimed = claim_name(self.folder, self.rank)
        try:
            start_measuring(
                claimed,
                shapes=self.config.shapes,
                cpu_sample=self.config.cpu_sample,
                native="yes" if self.config.native else "",
                memory=self.config.memory,
                trace_max_events=self.config.max_events,
                flush_interval_s=self.config.flush_interval_s,
                hang_after_s=self.config.hang_after_s,
                quiet=True,
            )
        except BaseException:
            with contextlib.suppress(OSError):
                claimed.unlink()
            raise
        self._session = CURRENT.session
        if self._told and self._session is not None:
            self._session.tell_rank(self.rank)
        self.journal.place = claimed
        self.journal.write()
        percent = self.config.budget
        if percent is None:
            percent = ROLLING_PERCENT if self.config.roll_minutes else 0.0
        self._budget = StepBudget(percent, _cost_ns) if percent else None
        if self.config.roll_minutes:
            self._roll_at_ns = time.monotonic_ns() + int(self.config.roll_minutes * 60e9)

    def _finish_file(self) -> None:
        """The session ends in its file, the side file beside it is complete, and old ones go."""
        session: Session | None = self._session
        self._session = None
        before = self.path
        if session is not None and CURRENT.session is session:
            self.path = session.stop()
        self.journal.finish(self.path)
        if before is not None and self.path is not None and self.path != before and not self.journal.steps:
            with contextlib.suppress(OSError):
                remove_profile(self.path)  # begun after the last step: there is nothing in it
            self.path = before
            return
        if self.path is not None:
            files = [self.path, *(self.path.with_suffix(suffix) for suffix in (".json", SNAPSHOT_SUFFIX))]
            self.upload(files)
            self._made.append(self.path)
            del self._made[: -max(self.config.max_files, 1)]
            remove_oldest(self.folder, self.rank, self.config.max_files, self.path, self._made)

    def _roll(self) -> None:
        """Between two steps: what was measured becomes a file, and a new one begins."""
        self._set_open(False)
        self._finish_file()
        self.journal = self.journal.next()
        try:
            self._start_session()
        except ProfileError as error:
            self._running = False
            say(f"{error} Training continues without a profile.")
            return
        self._begin_first_step(None if self._next is None else self._next // self.config.accumulation)
        self.journal.begin(self._next)

    def _measure(self, step: int, recorded: bool, measured: bool) -> None:
        """Whether the coming step is measured, as far as there is a budget; what is recorded always is. `measured`: the
        step that has ended was."""
        session = self._session
        if self._budget is None or session is None or CURRENT.session is not session:
            return
        wanted, rests = self._budget.next_is_measured(measured) or recorded, _BY in session.pausing
        if rests and wanted:
            session.resume(_BY)
            if CURRENT.native is not None:
                CURRENT.native.step_begin(step)  # what rested is no part of it
        elif not rests and not wanted:
            session.pause(_BY)

    @staticmethod
    def _begin_first_step(number: int | None) -> None:
        session, native = CURRENT.session, CURRENT.native
        if session is not None and native is not None:
            native.step_begin(-1 if number is None else number)
            session.first_step_begins()

    def _recorded(self, step: int) -> bool:
        return phase(self.config, step).recorded or self._demand.covers(step)

    def _set_open(self, wanted: bool) -> None:
        native = CURRENT.native
        if wanted == self._open or native is None:
            return
        self._open = wanted
        if wanted:
            native.trace_start()
        else:
            native.trace_stop()

    def _take_back(self) -> None:
        """The first step was none to be recorded: what the window has kept of it goes."""
        self._set_open(False)
        if CURRENT.native is not None:
            CURRENT.native.trace_take_back()

    def _in_order(self, number: int) -> bool:
        last = self.journal.last_step
        if last is None or number > last:
            return True
        if number == last:
            self._say_once(
                f"step {number} was reported twice; with gradient accumulation report each step once, at its end, or "
                "set accumulation."
            )
            return False
        self._say_once(f"steps go backwards, from {last} to {number}; they are counted under their numbers.")
        return True

    def _say_once(self, sentence: str) -> None:
        kind = sentence.split(",")[0].split(" ", 2)[-1]
        if kind not in self._said:
            self._said.add(kind)
            say(sentence)


_BY = "budget"


def _cost_ns() -> float:
    """What measuring has cost this process since the file was begun."""
    session, native = CURRENT.session, CURRENT.native
    return float(cost_so_far(native, session.options.shapes)) if session is not None and native is not None else 0.0


def _stop_at_exit(profiler: TrainingProfiler) -> None:
    """A loop that ends by an exception, or whose framework has no hook for the end, still leaves its summary's facts:
    registered behind the session's own handler, so it runs before it."""
    reference = weakref.ref(profiler)
    pid = os.getpid()

    def stop() -> None:
        alive = reference()
        if alive is not None and os.getpid() == pid:
            alive.stop()

    atexit.register(stop)
