"""Looks at a job by itself when its collectives stand: a file says which rank is missing, before torch's watchdog
ends the job.

A thread looks now and then how long ago this process's last collective began while one has not ended. After
`hang_after_s`, or half of torch's timeout where that is shorter, a process of its own looks at all ranks as `leadline
dump --job` does, and leaves `hang_HOST_TIME.txt` beside the profiles, where anybody is behind. One process of a machine
looks at a time, and once for each standstill. Promises: the job is not stopped and never fails by it; without a group
of several ranks there is no thread.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from leadline._own_thread import Flag, OwnThread
from leadline.capture.config import VARIABLES
from leadline.capture.messages import say

_LOOK = """
import sys
if sys.path[:1] == [""]:
    del sys.path[0]  # as in finish.py
from leadline.cli.hang_file import main
sys.exit(main())
"""
_MOST_FILES = 3
"""Of one process: whoever stands for ever is told of once, and who stands often has been heard."""
_LONGEST_LOOK_S = 120.0
_TIMEOUT_SHARE = 0.5
"""Of torch's timeout: the rest is for looking."""


class HangWatch:
    """One per session. `standing_s`: how long ago the last collective began while one has not ended, else 0; `part`:
    where the session keeps its files, None once it has ended."""

    def __init__(self, after_s: float, standing_s: Callable[[], float], part: Callable[[], Path | None]) -> None:
        self._after_s = after_s
        self.limit_s = after_s
        """How long everything stands before anybody looks."""
        self.knows = False
        """Whether somebody has told of the standstill of now."""
        self._standing_s = standing_s
        self._part = part
        self._ended = Flag()
        self._thread: OwnThread | None = None
        self._pid = 0
        self._files = 0

    def follow(self, groups: list[tuple[Any, int]]) -> None:
        """The process groups that this rank is in now."""
        several = [group for group, _ in groups if group.size() > 1]
        if not self._after_s or not several:
            return
        limits = [_TIMEOUT_SHARE * timeout_s for group in several if (timeout_s := _timeout_s(group))]
        self.limit_s = min([self._after_s, *limits])
        if self._thread is None or self._pid != os.getpid():  # threads are not in a forked child
            self._pid = os.getpid()
            self._ended = Flag()
            self._thread = OwnThread(self._run, self._ended)
            self._thread.start()

    def stop(self) -> None:
        """The session ends."""
        self._ended.set()
        self._thread = None

    # ---------------------------------------------------------------- inside

    def _run(self, ended: Flag) -> None:
        due_s = self.limit_s
        while not ended.wait(min(self.limit_s / 8, 5.0)):
            standing_s = self._standing_s()
            if standing_s < self.limit_s:
                due_s, self.knows = self.limit_s, False
            part = self._part()
            if standing_s < due_s or part is None or self._files >= _MOST_FILES:
                continue
            with contextlib.suppress(OSError, subprocess.SubprocessError), _one_of_this_machine(part.parent) as first:
                if first:
                    self.knows = self._look(part, standing_s, ended)
                    due_s = float("inf") if self.knows else standing_s + self.limit_s

    def _look(self, part: Path, standing_s: float, ended: Flag) -> bool:
        """Whether somebody has told of this standstill."""
        host = os.uname().nodename
        if _made_since(part.parent, host, standing_s):
            return True
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        path = part.parent / f"hang_{host}_{stamp}.txt"
        environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        command = [sys.executable, "-c", _LOOK, str(part), str(os.getpid()), str(path), f"{standing_s:.0f}"]
        looking = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        until_s = time.monotonic() + _LONGEST_LOOK_S
        while looking.poll() is None:
            if ended.wait(0.1) or time.monotonic() > until_s:
                looking.kill()
        said = looking.communicate()[0].decode("utf-8", "replace").strip()
        if not said or not path.exists():
            return False
        self._files += 1
        say(f"{said} {path} lists all ranks.")
        return True


def _timeout_s(group: Any) -> float:
    """After how long torch gives up waiting in this group; 0 where it does not say."""
    with contextlib.suppress(Exception):
        return float(group._get_backend(group._device_types[0]).options._timeout.total_seconds())
    return 0.0


@contextlib.contextmanager
def _one_of_this_machine(folder: Path) -> Iterator[bool]:
    """Whether nobody else of this machine looks at this folder's job now."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a file system without locks: everybody looks
            pass
        yield True
    finally:
        os.close(descriptor)


def _made_since(folder: Path, host: str, ago_s: float) -> bool:
    since_s = time.time() - ago_s
    return any(path.stat().st_mtime >= since_s for path in folder.glob(f"hang_{host}_*.txt"))
