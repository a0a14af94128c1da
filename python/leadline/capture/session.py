"""One session in one process: what starts, in which order, and how it ends however the process ends.

Promises: a program never fails because it is measured: after a start that succeeded, whatever goes wrong is said in one
sentence and counted. `stop` leaves nothing behind. In a forked child the session goes on under the child's own name.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline._dataclass import replace
from leadline.capture.config import OPTIONS_VARIABLE, OUTPUT_VARIABLE, SESSION_VARIABLE, Options
from leadline.capture.contained import contained, for_hooks, lose
from leadline.capture.current import CURRENT
from leadline.capture.errors import ProfileError
from leadline.capture.follow import Follower, is_own_thread
from leadline.capture.messages import say
from leadline.capture.native import Native, load_native
from leadline.capture.part import PartDirectory
from leadline.capture.process_info import MeasuredProcess, first_record, native_info, take_rank
from leadline.capture.providers import Provider, create_providers, end_step, in_order_of_stopping
from leadline.capture.records import MOST_KILLED, Stats
from leadline.capture.schedule import TimedWindow, show_window
from leadline.capture.source_hashes import source_hashes

if TYPE_CHECKING:  # most sessions need none of these, and each is time before the program's first line
    from leadline.capture.background import Background
    from leadline.capture.budget import BudgetKeeper
    from leadline.capture.duty import DutyKeeper
    from leadline.capture.endpoint import Endpoint

_EXEC = {"exec": True}


class Session:
    """The measuring of this process. `owner`: it is a root of the session, and the last root to stop makes the file;
    other processes only leave segments.

    `inner`: started by the program itself, so the program may stop it; one that came from outside goes on to the end.
    """

    def __init__(self, part: PartDirectory, options: Options, *, owner: bool, inner: bool) -> None:
        self.part = part
        self.options = options
        self.owner = owner
        self.inner = inner
        self._process = MeasuredProcess.here()
        self._record = first_record(self._process, part.session_id)
        self._native: Native | None = None
        self._providers: tuple[Provider, ...] = ()
        self._timed_window: TimedWindow | None = None
        self._budget: Background | None = None
        self.duty: DutyKeeper | None = None
        self._endpoint: Endpoint | None = None
        self._pausing: set[str] = set()
        self._follower = Follower(self._at_os_exit, self._before_exec, self._exec_failed, self._before_kill)

    @property
    def output(self) -> Path:
        """The file that this session ends in."""
        return self.part.output

    def start(self) -> None:
        """Begin measuring; raises ProfileError, and then nothing has been changed."""
        native = load_native()
        self._native = native
        options = self.options
        try:
            native.start(
                segment_path=str(self.part.segment(self._process.stem)),
                max_nodes=options.max_nodes,
                flush_interval_s=options.flush_interval_s,
                trace_max_events=options.trace_max_events,
                record_shapes=options.shapes,
                memory=options.memory,
                track_modules=options.modules,
            )
        except RuntimeError as error:
            raise ProfileError(str(error)) from error
        CURRENT.set(self, native)
        with contained(native, "Measuring started, but not in full"):
            self._start_rest(native)

    def _start_rest(self, native: Native) -> None:
        """What may fail without taking the session with it."""
        self._introduce(native)
        self._install_process_hooks(native)
        window = self.options.trace
        show_window(native, self.part, self._process, self.options, forked=False)
        if window is not None and window.steps is not None:
            native.trace_steps(int(window.wait), window.steps)
        elif window is not None:
            self._timed_window = TimedWindow(window, native.trace_start, native.trace_stop)
            self._timed_window.start()
        self._providers = create_providers(for_hooks(native), self.options, self._provider_changed)
        for provider in self._providers:
            with contained(native, f"The provider {provider.name} could not start"):
                provider.start()
        self._provider_changed()
        self._keep_budget(native)
        if self.options.endpoint:
            from leadline.capture.endpoint import open_announced

            self._endpoint = open_announced(self.options.endpoint, native)
        self._follower.install(self._environment())
        native.flush()  # a process that is killed young leaves at least its name

    def _introduce(self, native: Native) -> None:
        """Tell the native side who this process is, and note what it says of this Python."""
        native.set_process_info(native_info(self._record))
        stats = Stats.of(native.stats())
        self._record.python_frames = "read" if stats.python_frames else stats.python_frames_missing

    def stop(self, exit_status: dict[str, Any] | None = None) -> Path | None:
        """End measuring in this process; as the last root, make the file. Returns its path, None where there is none.

        Raises nothing: what could not be written is said on stderr.
        """
        with CURRENT.lock:
            if CURRENT.session is not self or self._native is None:
                return None
            native = self._native
            with contained(native, "Measuring was not removed completely"):
                if self._timed_window is not None:
                    self._timed_window.stop()
                if self._budget is not None:
                    self._budget.stop()
                if self.duty is not None:
                    self.duty.stop()
                if self._endpoint is not None:
                    self._endpoint.close()
            with contained(native, "Calls that end a process are still followed"):
                self._follower.uninstall()
            for provider in in_order_of_stopping(self._providers):
                with contained(native, f"The provider {provider.name} could not stop"):
                    provider.stop()
                self._record.tools += getattr(provider, "results", [])
            CURRENT.clear()
            with contained(native, "The last segment could not be written"):
                self._end_record(Stats.of(native.stop()), exit_status)
        if self.owner:
            from leadline.capture.claim import leave

            return self._make_file() if leave(self.part, exit_status) else None
        return None

    @property
    def pausing(self) -> frozenset[str]:
        """Who has paused it."""
        return frozenset(self._pausing)

    @property
    def labels(self) -> Mapping[str, str]:
        """What the program says of this process."""
        return self._record.labels

    def set_labels(self, labels: Mapping[str, str | None]) -> None:
        """Change labels of this process; None takes one away."""
        merged = {**self._record.labels, **labels}
        self._record.labels = {name: value for name, value in merged.items() if value is not None}
        self._write_record()

    def pause(self, who: str = "program") -> None:
        """Stop counting until whoever has paused has called `resume`; hooks stay."""
        if self._native is not None:
            self._pausing.add(who)
            with contained(self._native, "Measuring could not be paused"):
                self._native.pause()

    def resume(self, who: str = "program") -> None:
        """Count again after `pause`."""
        self._pausing.discard(who)
        if self._native is not None and not self._pausing:
            with contained(self._native, "Measuring could not be resumed"):
                self._native.resume()

    def _keep_budget(self, native: Native) -> None:
        if self.options.duty:
            from leadline.capture.duty import keep_duty

            self.duty = keep_duty(self, self._record, self._write_record)
        if self.options.budget:
            from leadline.capture.background import Background

            self._budget = Background(self.options.budget_after_s, lambda: self._begin_budget(native))
            self._budget.start()

    def _begin_budget(self, native: Native) -> BudgetKeeper:
        from leadline.capture.budget import keep_budget

        return keep_budget(self, self._providers, self._record, self._write_record, native)

    def step(self, number: int | None) -> None:
        """A training step has ended; `number` is its number, None to count up."""
        if self._native is not None:
            try:
                end_step(self._native, self._providers, self.options, number)
                if self.duty is not None:
                    self.duty.border(given=True)
            except Exception as error:
                lose(self._native, "A step could not be ended", error)

    def first_step_begins(self) -> None:
        """The loop has told the native side where its first step begins: as many steps are timed as end."""
        self._record.first_step_begun = True
        self._write_record()

    def _environment(self) -> dict[str, str]:
        """What children find; empty when they are not to be followed."""
        if not self.options.follow:
            return {}
        return {
            OUTPUT_VARIABLE: str(self.part.output),
            SESSION_VARIABLE: str(self.part.folder),
            OPTIONS_VARIABLE: self.options.to_json(),
        }

    def available(self) -> dict[str, Any]:
        """What each provider says of itself, by its name."""
        return {provider.name: provider.status() for provider in self._providers}

    def tell_rank(self, rank: int, world_size: int = 0) -> None:
        """See `take_rank`."""
        if take_rank(self._record, rank, world_size) and CURRENT.native is not None:
            CURRENT.native.set_process_info(native_info(self._record))

    def _provider_changed(self) -> None:
        self._record.available = self.available()
        self._take_engines()
        for place in filter(None, (getattr(provider, "place", None) for provider in self._providers)):
            self.tell_rank(*place)
        self._write_record()

    def engines(self) -> list[dict[str, Any]]:
        """What each engine that serves in this process did, until now."""
        return [one for provider in self._providers for one in getattr(provider, "engines", list)()]

    def _take_engines(self) -> None:
        self._record.engines = self.engines()

    def _write_record(self) -> None:
        with contextlib.suppress(OSError):  # disk full or session over: the native writer counts write_failed
            self.part.write_record(self._process.stem, self._record)

    def _end_record(self, stats: Stats, exit_status: dict[str, Any] | None) -> None:
        record = self._record
        record.complete = stats.written
        record.not_written = "" if stats.written else stats.write_status
        record.cost = stats.cost
        record.wall_ns = time.monotonic_ns() - self._process.started_monotonic_ns
        record.ended_at_ns = max(time.time_ns(), record.started_at_ns + record.wall_ns)  # clocks are set back
        record.paused_ns = stats.paused_ns
        record.exit = exit_status
        for provider in self._providers:
            record.dataflow |= getattr(provider, "dataflow", dict)()
        self._take_engines()
        record.sources = source_hashes(record.started_at_ns, record.program)
        if self.part.exists:
            self._write_record()

    def _make_file(self) -> Path | None:
        from leadline.capture.finish import finish

        if (finished := finish(self.part)).sentence:
            say(finished.sentence)
        if (path := finished.path) is not None and not self.inner and not self.options.quiet:
            say(f"wrote {path}; read it with `leadline report {path}`.")
        return path

    # ---------------------------------------------------------------- the ways a process ends or multiplies

    def _install_process_hooks(self, native: Native) -> None:
        if CURRENT.hooks_installed:
            return
        CURRENT.hooks_installed = True
        after = {"after_in_parent": _after_fork_in_parent, "after_in_child": _after_fork_in_child}
        os.register_at_fork(before=_before_fork, **after)
        # By itself and last: it asks to be called back when Python code runs again, which any line here would be.
        os.register_at_fork(after_in_parent=native.after_fork_in_parent)
        native.when_fork_is_over(_fork_is_over)
        # Registered before the program's own handlers when the session came from outside, so it runs after them.
        atexit.register(_at_interpreter_exit)

    def _at_os_exit(self, status: int) -> None:
        with contained(self._native, "The end of the process could not be handled"):
            self.stop({"code": status})

    def _before_exec(self) -> None:
        """The image may be replaced at once, or the exec fails and the program goes on: write once and go on."""
        with contained(self._native, "The process could not be saved before exec"):
            if self._native is not None:
                self._native.before_exec()
                written = self._native.flush()
                stats = Stats.of(self._native.stats())
                self._end_record(replace(stats, written=written, write_status=self._native.write_status()), _EXEC)

    def _before_kill(self, pid: int) -> None:
        """A server ends its workers so, and nobody else can say that it was no accident."""
        with contained(self._native, "The end of a child could not be recorded"):
            if len(self._record.killed) < MOST_KILLED and pid not in self._record.killed:
                self._record.killed.append(pid)
                self._write_record()

    def _exec_failed(self) -> None:
        """The program goes on as what it was."""
        with contained(self._native, "A failed exec could not be recorded"):
            if self._native is not None:
                self._native.exec_failed()
            self._record.complete = False
            self._record.exit = None
            self._record.ended_at_ns = None
            self._write_record()

    def around_fork(self, *, over: bool) -> None:
        """The program forks: no thread of ours is there meanwhile. `over`: it has forked, and this is the parent."""
        if self._budget is not None:
            (self._budget.start if over else self._budget.pause)()

    def continue_in_child(self) -> None:
        """Called in a forked child: a process of its own from here on, which never makes the file."""
        native = self._native
        if native is None:
            return
        self.owner = False
        self._timed_window = self._budget = self.duty = None  # their threads are not here
        if not self.options.follow or is_own_thread():
            CURRENT.clear()
            self._follower.abandon()
            native.after_fork("")
            return
        previous, self._process = self._process, MeasuredProcess.here()
        available = self._record.available
        self._record = first_record(self._process, self.part.session_id)
        self._record.available = available
        self._record.forked_from = previous.identity.pid
        self._record.parent_identity = str(previous.identity)
        native.after_fork(str(self.part.segment(self._process.stem)))
        show_window(native, self.part, self._process, self.options, forked=True)
        for provider in self._providers:
            with contained(native, f"The provider {provider.name} could not continue in a forked child"):
                provider.forked()
        self._record.available = self.available()
        self._introduce(native)
        self._write_record()
        for who in ("budget", "duty"):  # a rest of the parent's is none of the child's
            self.resume(who)
        self._keep_budget(native)


def _before_fork() -> None:
    CURRENT.lock.acquire()  # not while another thread starts or stops
    if CURRENT.native is not None:
        with contained(CURRENT.native, "A fork could not be prepared"):
            if CURRENT.session is not None:
                CURRENT.session.around_fork(over=False)
            CURRENT.native.before_fork()


def _after_fork_in_parent() -> None:
    CURRENT.lock.release()


def _fork_is_over() -> None:
    session = CURRENT.session
    if session is not None:
        with contained(CURRENT.native, "What was paused for a fork does not resume"):
            session.around_fork(over=True)


def _after_fork_in_child() -> None:
    CURRENT.renew_lock()
    session = CURRENT.session
    if session is not None:
        native = CURRENT.native
        with contained(native, "A forked child could not be followed"):
            session.continue_in_child()
            return
        CURRENT.clear()
        if native is not None:
            native.after_fork("")  # what was held over the fork is let go


def _at_interpreter_exit() -> None:
    session = CURRENT.session
    if session is not None:
        with contained(CURRENT.native, "The session could not be ended"):
            session.stop(_exit_status())


def _exit_status() -> dict[str, Any] | None:
    """What can be known inside the process: the exception that ends it, if one does."""
    kind = getattr(sys, "last_type", None)
    return {"exception": kind.__name__} if isinstance(kind, type) else None
