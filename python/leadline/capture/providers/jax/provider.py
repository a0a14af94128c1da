"""The JAX provider: attaches when the program has imported JAX, counts and times its programs, detaches at the end.

Promises: never imports JAX by itself and initialises no backend; a JAX that cannot be measured is named in one
sentence, and the rest of the profile goes on without it; nothing of ours raises into the program.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

from leadline.capture.config import Options
from leadline.capture.import_hook import ImportHook
from leadline.capture.native import Native
from leadline.capture.providers.jax import devices as jax_devices
from leadline.capture.providers.jax import places as jax_places
from leadline.capture.providers.jax.booking import Booking
from leadline.capture.providers.jax.compile import Compiling
from leadline.capture.providers.jax.habits import Habits
from leadline.capture.providers.jax.memory import LiveArrays
from leadline.capture.providers.jax.operations import Operations, TitlesNative
from leadline.capture.providers.jax.plugins import Plugins
from leadline.capture.providers.jax.programs import Programs
from leadline.capture.providers.jax.runs import Key, Runs, RunsNative
from leadline.capture.providers.jax.trace import TracedRuns
from leadline.capture.providers.jax.windows import Windows
from leadline.capture.providers.jax.yielding import Yielding

_LIMIT = "jax_traceback_in_locations_limit"
_FEW_FRAMES = 10
"""What releases up to 0.9 keep of a stack by themselves; only less is worth a sentence."""


class JaxNative(RunsNative, TitlesNative, Protocol):
    """What this provider alone needs of the native module."""

    def hide_folder(self, folder: str) -> None: ...
    def describe_device(self, device_type: str, index: int, name: str, memory_bytes: int, detail: str) -> None: ...


class JaxProvider:
    """One per session."""

    name = "jax"

    def __init__(self, native: JaxNative, options: Options, changed: Callable[[], None]) -> None:
        self._native = native
        self._options = options
        self._changed = changed
        self._hook = ImportHook("jax", self._imported)
        self._status: dict[str, Any] = {"ok": None, "version": "", "message": "The program did not import JAX."}
        self._said: set[str] = set()
        self._runs: Runs | None = None
        self._late = False
        self._programs = Programs(self._loss)
        self._traced = TracedRuns(native, self._programs)
        trace = (native.trace_is_open, self._traced) if options.trace is not None else None
        self._windows = Windows(self._programs, self._loss, lambda: jax_devices.measured_by(native), trace)
        self._booking = Booking(native, self._programs, self._windows)
        self._operations = Operations(native, self._programs)
        self._compiling = Compiling(native, self._programs, self._loss)
        self._memory = LiveArrays(native, self._loss) if options.memory else None
        self._yielding = Yielding(self._windows)
        self._plugins = Plugins(native, lambda: jax_devices.measured_by(native), self._loss)
        self._habits = Habits(native, self._loss, self._changed)
        self._devices: list[dict[str, Any]] = []
        self._place: tuple[int, int] | None = None
        self._undo: list[Callable[[], None]] = []
        """What puts JAX's configuration back as it was found."""

    def start(self) -> None:
        """Attach now when JAX is there, or as soon as it is."""
        self._late = "jax" in sys.modules
        self._hook.install()

    def stop(self) -> None:
        """Put in what is known, and take every hook out."""
        self._hook.uninstall()
        if self._runs is None:
            return
        runs, self._runs = self._runs, None
        atexit.unregister(self._before_backends_go)
        self._before_backends_go()
        if self._memory is not None:
            self._contained(self._memory.book)
        runs.uninstall()
        self._windows.finish()
        self._yielding.uninstall()
        if called := self._plugins.uninstall():
            self._status["pjrt"] = called
        self._habits.uninstall()
        self._contained(self._compiling.listen_again)
        self._compiling.uninstall()
        jax = sys.modules.get("jax")
        if jax is not None:
            self._say_what_is_off(jax)
        self._leave_as_found()
        self._contained(self._operations.explain)
        heard = self._operations.heard()
        untimed = self._booking.book(runs.counts, last=True, heard=heard)
        self._booking.book_turns(runs.turns())
        if self._windows.off_quietly and not heard:
            self._loss(self._windows.off)
        if untimed and not self._windows.off:
            self._loss(f"The time that XLA computed in {untimed:,} calls of jitted functions: none of them was timed.")
        self._say_what_is_stale()
        if habits := self._habits.facts():
            self._status["habits"] = habits
        if self._devices:
            self._status["devices"] = self._devices
        if traced := self._traced.facts():
            self._status["dataflow"] = traced
        self._status |= {
            "programs": self._compiling.compiled,
            "windows": self._windows.count,
            "windows_given_up": self._windows.given_up,
        }
        self._status["runs"] = every = sum(runs.counts.values())
        self._status["timed_runs"] = timed = sum(one.runs for one in self._windows.timed.values())
        if timed < every and not self._windows.off_quietly:
            self._status["estimated"] = (
                f"Times of compiled programs are estimates from {timed:,} timed runs of {every:,}; "
                + self._booking.how_exact()
            )

    def stepped(self) -> None:
        """See `HearsSteps`."""
        if self._runs is not None:
            self._windows.stepped()

    def forked(self) -> None:
        """JAX's threads are not in the child, and what it counted is the parent's."""
        if self._runs is not None:
            self._runs.forget()
            self._runs.uninstall()
            self._yielding.uninstall()
            self._runs = None
            self._leave_as_found()

    def status(self) -> dict[str, Any]:
        """See `Provider.status`."""
        noted = {} if self._runs is None else self._habits.until_now()
        return self._status | ({"habits": noted} if noted else {})

    @property
    def place(self) -> tuple[int, int] | None:
        """This process's number in `jax.distributed`, and how many there are."""
        return self._place

    def _imported(self, jax: ModuleType) -> None:
        """Called at the end of the program's own `import jax`, so nothing may escape from here."""
        try:
            self._attach(jax)
        except Exception as error:
            self._refuse(jax, f"JAX could not be attached ({type(error).__name__}: {error}).")
        self._changed()

    def _attach(self, jax: ModuleType) -> None:
        version = str(jax.__version__)
        if _numbers(version) < jax_places.OLDEST:
            oldest = ".".join(map(str, jax_places.OLDEST))
            self._refuse(jax, f"JAX {version} is not measured: it is older than {oldest}; use a newer JAX.")
            return
        package = f"{Path(str(jax.__file__)).parent}/"
        self._native.hide_folder(package)
        if self._memory is not None:
            self._memory.hidden = (package, f"{Path(__file__).parent.parent}/")
        self._hide_ours()
        runs = Runs(self._native, self, late=self._late)
        runs.inspect = self._habits.inspect
        self._windows.is_inside = runs.is_inside
        runs.install()
        if not (runs.hooked and runs.wrapped):
            runs.uninstall()
            self._refuse(jax, f"JAX {version} is not measured: its executions cannot be followed in this release.")
            return
        self._runs = runs
        self._compiling.install()
        self._yielding.install()
        self._habits.install()
        self._plugins.install()
        atexit.register(self._before_backends_go)  # after JAX's own, so it is called before
        self._say_what_is_off(jax)
        self._keep_whole_stacks(jax)
        self._status = {"ok": True, "version": version, "message": ""}

    def _hide_ours(self) -> None:
        """A frame of ours is none of the user's lines. jaxlib keeps what it was told; JAX forgets it at the end."""
        ours = str(Path(__file__).parent)
        for register in ("source_info_util", "traceback_util"):
            exclude = jax_places.member(f"jax._src.{register}.register_exclusion")
            paths = jax_places.member(f"jax._src.{register}._exclude_paths")
            if exclude is None or (isinstance(paths, list) and ours in paths):
                continue
            exclude(ours)
            if isinstance(paths, list):
                self._undo.append(partial(_forget_path, register, paths, ours))

    def _keep_whole_stacks(self, jax: ModuleType) -> None:
        """JAX keeps 10 frames up to 0.9: fewer than many a model has."""
        limit = getattr(jax.config, _LIMIT, None)
        if not isinstance(limit, int) or limit <= 0:
            return

        def put_back() -> None:
            if getattr(jax.config, _LIMIT, None) == -1:  # else the program has set its own since
                jax.config.update(_LIMIT, limit)

        jax.config.update(_LIMIT, -1)
        self._undo.append(put_back)

    def _leave_as_found(self) -> None:
        while self._undo:
            self._contained(self._undo.pop())

    def _say_what_is_off(self, jax: ModuleType) -> None:
        """What the program has set that leaves less to see, when it ends or now."""
        settings = jax.config
        if getattr(settings, "jax_disable_jit", False):
            self._loss(
                "jax_disable_jit is on, so functions run as single operations; there is no compiled program to inspect."
            )
        if not getattr(settings, "jax_include_full_tracebacks_in_locations", True):
            self._loss(
                "jax_include_full_tracebacks_in_locations is off, so operations inside compiled programs have one line "
                "of their stack; leave it on to see the whole stack."
            )
        limit = getattr(settings, "jax_traceback_in_locations_limit", -1)
        if limit == 0:
            self._loss(
                "jax_traceback_in_locations_limit is 0, so operations inside compiled programs have no lines; leave it "
                "out to see them."
            )
        elif isinstance(limit, int) and 0 < limit < _FEW_FRAMES and self._status["ok"]:  # else it is ours to raise yet
            self._loss(
                f"The program set jax_traceback_in_locations_limit to {limit}, so operations inside programs compiled "
                "after that have no more frames than that; leave it out to see all."
            )

    def _say_what_is_stale(self) -> None:
        cached, stale = self._programs.stale()
        self._status["cached_programs"] = cached
        if stale:
            self._loss(
                f"{cached:,} programs came from JAX's persistent cache, with the lines of the source that filled it; "
                f"{stale:,} of these lines have moved since. Empty the cache, or set "
                "jax_compilation_cache_include_metadata_in_key, to see today's."
            )

    def before(self, name: str) -> None:
        """See `Follows`."""
        try:
            if self._place is None and (place := jax_places.process()) is not None:
                self._place = place
                self._changed()
            self._compiling.listen_again()
            self._compiling.over()
            self._plugins.poll()
            self._windows.before(name)
        except Exception as error:
            self._loss(f"A run of a compiled program could not be followed ({error!r}).")

    def _before_backends_go(self) -> None:
        self._windows.close()
        if self._memory is not None:
            self._contained(self._memory.poll_now)
        self._contained(self._describe_devices)

    def _describe_devices(self) -> None:
        self._devices = jax_devices.describe(self._native) or self._devices

    def _contained(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:
            self._loss(f"The memory of JAX's arrays and devices could not be read ({error!r}).")

    def after(self, key: Key, output: Any) -> bool:
        """See `Follows`."""
        try:
            self._windows.after(key, output)
            if (runs := self._runs) is not None:
                self._windows.book_with(lambda: self._book(runs))
            if self._memory is not None:
                self._memory.poll()
            if self._windows.off_quietly:
                self._operations.poll()
        except Exception as error:
            self._loss(f"A run of a compiled program could not be followed ({error!r}).")
        return self._windows.is_settled(key[1])

    def _book(self, runs: Runs) -> None:
        self._booking.book(runs.counts, last=False)
        self._booking.book_turns(runs.turns())

    def is_timing(self) -> bool:
        """See `Follows`."""
        return self._windows.is_timing()

    def quiet_until_s(self) -> float:
        """See `Follows`."""
        until_s = self._windows.quiet_until_s()
        if self._windows.off_quietly:
            until_s = min(until_s, self._operations.next_s)
        return until_s if self._memory is None else min(until_s, self._memory.next_s)

    def _refuse(self, jax: ModuleType, sentence: str) -> None:
        self._status = {"ok": False, "version": str(getattr(jax, "__version__", "")), "message": sentence}
        self._native.count_loss("provider_unavailable", 1, sentence)

    def _loss(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._native.count_loss("provider_unavailable", 1, sentence)


def create(native: Native, options: Options, changed: Callable[[], None]) -> JaxProvider:
    """See `leadline.capture.providers`."""
    return JaxProvider(cast(JaxNative, native), options, changed)


def _forget_path(register: str, paths: list[str], ours: str) -> None:
    paths.remove(ours)
    for known in ("_exclude_path_regex", "is_user_filename"):  # caches of what was asked of the paths
        if (cached := jax_places.member(f"jax._src.{register}.{known}")) is not None:
            cached.cache_clear()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
