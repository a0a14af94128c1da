"""`leadline.current()`: measuring as the program itself sees it, whoever began it.

A server or a training loop asks for it once and keeps it: it finds the session that runs at the moment of each call,
and does nothing where there is none.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from leadline.capture.config import VARIABLES
from leadline.capture.current import CURRENT
from leadline.capture.endpoint import Endpoint
from leadline.capture.errors import ProfileError
from leadline.capture.records import Stats
from leadline.capture.region import region
from leadline.capture.requests import REQUESTS, Request

_BY = "current"
_MAKE = """
import sys
if sys.path[:1] == [""]:
    del sys.path[0]  # as in finish.py
from leadline.profiles.finish import main
sys.exit(main())
"""


class Current:
    """What can be asked of measuring in this process. Every method may be called from any thread."""

    @property
    def running(self) -> bool:
        """Whether something is measured now: a session runs and is not paused."""
        session = CURRENT.session
        return session is not None and not session.pausing

    @property
    def output(self) -> Path | None:
        """The file that the session ends in; None without one."""
        session = CURRENT.session
        return session.output if session is not None else None

    def start(self, output: str | os.PathLike[str] | None = None, **options: Any) -> None:
        """Go on after `stop`, or begin a session, where none runs (see `leadline.start`). Raises ProfileError."""
        from leadline.capture.api import start

        session = CURRENT.session
        if session is None:
            start(output, **options)
        else:
            session.resume(_BY)

    def stop(self) -> Path | None:
        """End what `start` began and give its file; a session from outside rests until `start` instead."""
        session = CURRENT.session
        if session is None:
            return None
        if session.inner:
            return session.stop()
        session.pause(_BY)
        return None

    def snapshot(self, output: str | os.PathLike[str] | None = None) -> Path:
        """A profile of what the whole session has measured until now, which goes on; returns its path, by default
        beside the session's file. Made in a process of its own. Raises ProfileError."""
        session = CURRENT.session
        native = CURRENT.native
        if session is None or native is None:
            raise ProfileError("Nothing is measured, so there is nothing to take; call leadline.start() first.")
        native.flush()
        path = Path(output) if output is not None else _snapshot_name(session.output)
        environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        command = [sys.executable, "-c", _MAKE, str(session.part.directory), str(path.absolute())]
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise ProfileError(f"The snapshot {path} was not made: {said[-1] if said else 'nothing was written yet'}")
        return path

    def region(self, name: str, **detail: Any) -> region:
        """As `leadline.region`."""
        return region(name, detail or None)

    def labels(self, **labels: str | int | float) -> None:
        """Say what this process is: `model="8B", run="ablation-3"`. They stand in the file (`processes[].labels`) and
        at every metric. A label of None goes away."""
        session = CURRENT.session
        if session is not None:
            session.set_labels({name: None if value is None else str(value) for name, value in labels.items()})

    def request(self, method: str, path: str, route: str = "") -> Request:
        """A region for one request, as a `with` block: `GET /items/{id}`. Without a `route` numbers and long words of
        hexadecimal digits in the path are folded. For coroutines see `leadline.serving`."""
        return REQUESTS.enter(method, path, route)

    def stats(self) -> Stats | None:
        """Own cost and counters of the session; None without one."""
        native = CURRENT.native
        return Stats.of(native.stats()) if native is not None else None

    def serve(self, port: int = 0) -> Endpoint:
        """Open the control and metrics endpoint on the loopback address (see docs/live.md); raises OSError."""
        return Endpoint(self, port)


_CURRENT = Current()


def current() -> Current:
    """Measuring in this process."""
    return _CURRENT


def _snapshot_name(output: Path) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for number in range(1000):
        path = output.with_name(f"{output.stem}_snapshot_{stamp}{f'-{number}' if number else ''}{output.suffix}")
        if not path.exists():
            break
    return path
