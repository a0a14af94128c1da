"""Event tools (`leadline run --tool`) as a part of the session: they start when torch is there and end before the rest.

Promise: without tools this module imports nothing of theirs, NumPy included.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from leadline.capture.config import Options
from leadline.capture.import_hook import ImportHook
from leadline.capture.messages import say
from leadline.capture.native import Native


class ToolsProvider:
    """One per session; idle where no tool was asked for."""

    name = "tools"
    stops_last = True

    def __init__(self, native: Native, options: Options, changed: Callable[[], None]) -> None:
        self._native = native
        self._options = options
        self._changed = changed
        self._hook: ImportHook | None = None
        self._hub: Any = None
        self._started = False
        self._status: dict[str, Any] = {"ok": None, "version": "", "message": ""}
        self.results: list[dict[str, Any]] = []

    def start(self) -> None:
        """Load the tools now; start them once torch is imported, or at once where none needs it."""
        if not self._options.tools:
            return
        try:
            from leadline.tools.hub import Hub
            from leadline.tools.ranges import Ranges
        except ImportError as error:
            self._refuse(f"tools need NumPy in the profiled program's Python ({error}); install it there.")
            return
        from leadline.tools.errors import ToolError

        options = self._options
        try:
            ranges = Ranges.of(options.launch_range, options.layer, options.phase, options.kernel_name, options.every)
            self._hub = Hub(
                self._native,
                options.tools,
                options.tool_options,
                options.backend,
                ranges,
                _is_library_file(),
                say,
                _when_imported,
            )
        except ToolError as error:
            self._refuse(str(error))
            return
        if self._hub.needs_torch:
            self._status = {"ok": None, "version": "", "message": "The program did not import torch, so no tool ran."}
            self._hook = ImportHook("torch", self._begin)
            self._hook.install()
        else:
            self._begin(None)

    def _begin(self, torch: ModuleType | None) -> None:
        from leadline.tools.errors import ToolError

        try:
            self._hub.start()
        except ToolError as error:
            self._hub = None
            self._refuse(str(error))
        else:
            self._started = True
            self._status = {"ok": True, "version": "", "message": ""}
        self._changed()

    def stop(self) -> None:
        """End the tools; what they have found is in `results` from then on."""
        if self._hook is not None:
            self._hook.uninstall()
        if self._started:
            self._started = False
            self.results = self._hub.stop()
            for found in self.results:
                for what, count in found["lost"].items():
                    self._native.count_loss("tool_rows_lost", count, f"tool {found['tool']}: {what}")
                if found["problem"]:
                    self._native.count_loss("tool_ended", 1, f"tool {found['tool']}: {found['problem']}")
            self._hub = None

    def forked(self) -> None:
        """The child has tools of its own, which begin with nothing; what the parent's have seen stays there."""
        if self._hub is None:
            return
        from leadline.tools.errors import ToolError

        started, self._started = self._started, False
        self.results = []
        try:
            self._hub = self._hub.in_child()
        except ToolError as error:
            self._hub = None
            self._refuse(str(error))
            return
        if started:
            self._begin(None)

    def status(self) -> dict[str, Any]:
        """See `Provider.status`."""
        return dict(self._status)

    def _refuse(self, sentence: str) -> None:
        self._status = {"ok": False, "version": "", "message": sentence}
        self._native.count_loss("provider_unavailable", 1, sentence)
        say(sentence)


def _when_imported(module: str, call: Callable[[ModuleType], None]) -> None:
    ImportHook(module, call).install()


def _is_library_file() -> Callable[[str], bool]:
    """Whether a source file belongs to Python or to an installed package, not to the program."""
    import sysconfig  # these two only where a tool runs
    import tempfile

    paths = sysconfig.get_paths()
    roots = tuple(
        {os.path.realpath(paths[key]) + "/" for key in ("stdlib", "platstdlib", "purelib", "platlib") if key in paths}
    )
    own = str(Path(sys.modules["leadline"].__file__ or "").resolve().parent) + "/"

    temporary = tempfile.gettempdir()

    def is_library(file: str) -> bool:
        # What the compiler writes while the program runs is nobody's line.
        cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
        generated = f"{cache}/" if cache else f"{temporary}/torchinductor_"
        own_kernels = "/leadline/inductor/"
        return (
            file.startswith(roots)
            or file.startswith((own, "<frozen", generated))
            or "-packages/" in file
            or own_kernels in file
        )

    return is_library


def create(native: Native, options: Options, changed: Callable[[], None]) -> ToolsProvider:
    """See `leadline.capture.providers`."""
    return ToolsProvider(native, options, changed)
