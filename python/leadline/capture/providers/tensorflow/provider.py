"""The TensorFlow provider: attaches when the program has imported TensorFlow 2, counts and times what it runs.

Promises: never imports TensorFlow by itself; a release that cannot be measured is named in one sentence; nothing of
ours raises into the program; the program's own profiler sessions go first.
"""

from __future__ import annotations

import atexit
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

from leadline.capture.config import Options
from leadline.capture.import_hook import ImportHook
from leadline.capture.native import Native
from leadline.capture.providers.profilers.door import Door
from leadline.capture.providers.replaced import Replacements
from leadline.capture.providers.tensorflow.booking import Booking
from leadline.capture.providers.tensorflow.graphs import Graphs
from leadline.capture.providers.tensorflow.memory import Memory
from leadline.capture.providers.tensorflow.runs import Key, Runs
from leadline.capture.providers.tensorflow.trace import TracedCalls
from leadline.capture.providers.tensorflow.windows import Windows

OLDEST = (2, 16)
_SERVER = (
    "The program started TensorFlow's profiler server, which may begin a session at any moment, so nodes are not "
    "timed after that; they are still counted."
)


class TensorFlowNative(Native, Protocol):
    """What this provider alone needs of the native module."""

    def hide_folder(self, folder: str) -> None: ...


class TensorFlowProvider:
    """One per session."""

    name = "tensorflow"

    def __init__(self, native: TensorFlowNative, options: Options, changed: Callable[[], None]) -> None:
        self._native = native
        self._changed = changed
        self._hook = ImportHook("tensorflow", self._imported)
        self._keras_hook = ImportHook("keras", self._keras_imported)
        self._status: dict[str, Any] = {"ok": None, "version": "", "message": "The program did not import TensorFlow."}
        self._said: set[str] = set()
        self._replaced = Replacements()
        self._windows = Windows(self._loss, native.trace_is_open if options.trace is not None else None)
        self._door = Door(self._windows)
        self._graphs = Graphs("")
        self._booking = Booking(native, self._graphs, self._windows)
        self._memory = Memory(native) if options.memory else None
        self._runs: Runs | None = None

    def start(self) -> None:
        """Attach now when TensorFlow is there, or as soon as it is."""
        self._hook.install()
        self._keras_hook.install()

    def stop(self) -> None:
        """Put in what is known, and take every hook out."""
        self._hook.uninstall()
        self._keras_hook.uninstall()
        if self._runs is None:
            return
        runs, self._runs = self._runs, None
        atexit.unregister(self._windows.close)
        self._windows.finish()
        self._replaced.undo()
        self._door.uninstall()
        runs.uninstall()
        self._graphs.uninstall()
        if self._windows.traced is not None and (traced := self._windows.traced.facts()):
            self._status["dataflow"] = traced
        untimed = self._booking.book(runs.totals, last=True)
        seen, elements = self._booking.book_stages(runs.totals)
        if self._memory is not None:
            self._memory.uninstall()
            self._booking.book_memory(self._memory)
        self._graphs.forget()
        every = sum(total[0] for (_, name), total in runs.totals.items() if name.startswith("__"))
        timed = sum(sums.runs for sums in self._windows.functions.values())
        self._status |= {
            "windows": self._windows.count,
            "windows_given_up": self._windows.given_up,
            "calls": every,
            "timed_calls": timed,
        }
        self._status |= {"nodes": self._graphs.nodes, "nodes_without_line": self._graphs.without_line}
        if timed and every:
            self._status["estimated"] = (
                f"Times of nodes in graphs are estimates from {timed:,} timed calls of {every:,}; counts and times of "
                "whole calls are exact."
            )
            if untimed:
                self._status["estimated"] += f" {untimed:,} calls are timed as a whole, since none was in a window."
        self._tell(seen, elements)

    def _tell(self, seen: int, elements: int) -> None:
        """What a report says beside its tables."""
        said = [self._status["estimated"]] if "estimated" in self._status else []
        if seen:
            said.append(f"Stages of tf.data are estimates from {seen:,} elements of {elements:,}.")
        said += self._windows.allocators.sentences()
        if said:
            self._status["estimated"] = " ".join(said)
        if allocators := self._windows.allocators.status():
            self._status["allocators"] = allocators

    def dataflow(self) -> dict[str, Any]:
        """What the trace window has beside events: tensors that devices and processes handed each other, and what
        allocators held."""
        traced = self._windows.traced
        found: dict[str, Any] = {}
        if traced is not None and traced.tensors:
            found["tensors"] = [list(one) for one in traced.tensors]
        if allocators := self._windows.allocators.dataflow():
            found["allocators"] = allocators
        return found

    def forked(self) -> None:
        """TensorFlow does not survive a fork, and what it counted is the parent's."""
        if self._runs is not None:
            self._runs.totals.clear()
            self._runs.uninstall()
            self._door.uninstall()
            self._runs = None
            if self._memory is not None:
                self._memory.uninstall()

    def status(self) -> dict[str, Any]:
        """See `Provider.status`."""
        return dict(self._status)

    def _imported(self, tensorflow: ModuleType) -> None:
        try:
            self._attach(tensorflow)
        except Exception as error:
            self._refuse(tensorflow, f"TensorFlow could not be attached ({type(error).__name__}: {error}).")
        self._changed()

    def _attach(self, tensorflow: ModuleType) -> None:
        version = str(tensorflow.__version__)
        if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < OLDEST:
            self._refuse(tensorflow, f"TensorFlow {version} is not measured: it is older than 2.16; use a newer one.")
            return
        folder = f"{Path(str(tensorflow.__file__)).parent}/"
        if self._memory is not None and not self._memory.install(sys.modules):
            self._memory = None
            self._loss("This TensorFlow does not report its tensors, so their memory is not known.")
        made = None if self._memory is None else self._memory.made
        runs = Runs(self._native, self._windows.before, self._after, made)
        self._graphs = Graphs(folder)
        self._windows.inputs = self._graphs.inputs
        self._booking = Booking(self._native, self._graphs, self._windows)
        self._windows.traced = TracedCalls(self._native, self._graphs, self._windows)
        if not runs.install(sys.modules.get("tensorflow.python.pywrap_tfe")):
            self._refuse(tensorflow, f"TensorFlow {version} is not measured: what it runs cannot be followed.")
            return
        self._runs = runs
        for hidden in (folder, folder.removesuffix("tensorflow/") + "keras/"):
            self._native.hide_folder(hidden)
        if not self._graphs.install(sys.modules.get("tensorflow.python.eager.polymorphic_function.atomic_function")):
            self._loss("This TensorFlow does not report the graphs of its functions, so their nodes have no lines.")
        self._yield()
        atexit.register(self._windows.close)
        self._status = {"ok": True, "version": version, "message": ""}

    def _yield(self) -> None:
        """What begins a session of TensorFlow's profiler closes our window first."""
        binding = sys.modules.get("tensorflow.python.profiler.internal._pywrap_profiler")
        if binding is not None:
            self._door.install(binding, "start", _SERVER)

    def _keras_imported(self, keras: ModuleType) -> None:
        """Keras says when a batch of training ends, which is a step."""
        try:
            found = sys.modules.get("keras.src.callbacks.callback_list")
            callbacks = getattr(found, "CallbackList", None)
            original = vars(callbacks).get("on_train_batch_end") if isinstance(callbacks, type) else None
            if original is None:
                return
            step = self._native.step

            @functools.wraps(original)
            def on_train_batch_end(this: Any, *arguments: Any, **named: Any) -> Any:
                result = original(this, *arguments, **named)
                step()
                self.stepped()
                return result

            self._replaced.attribute(callbacks, "on_train_batch_end", on_train_batch_end)
        except Exception as error:
            self._loss(f"Steps of Keras are not marked ({error!r}).")

    def stepped(self) -> None:
        """See `HearsSteps`."""
        if self._runs is not None:
            self._windows.stepped()

    def _after(self, key: Key, began_ns: int, took_ns: int) -> None:
        try:
            self._windows.after(key, began_ns, took_ns)
            if (runs := self._runs) is not None:
                self._windows.book_with(lambda: self._booking.book(runs.totals, last=False))
        except Exception as error:
            self._loss(f"A call of TensorFlow could not be followed ({error!r}).")

    def _refuse(self, tensorflow: ModuleType, sentence: str) -> None:
        self._status = {"ok": False, "version": str(getattr(tensorflow, "__version__", "")), "message": sentence}
        self._native.count_loss("provider_unavailable", 1, sentence)

    def _loss(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._native.count_loss("provider_unavailable", 1, sentence)


def create(native: Native, options: Options, changed: Callable[[], None]) -> TensorFlowProvider:
    """See `leadline.capture.providers`."""
    return TensorFlowProvider(cast(TensorFlowNative, native), options, changed)
