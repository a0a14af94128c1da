"""Processes that a run has started and left behind, such as a server in a session of its own: named, and ended.

An orphan belongs to the next of its ancestors that asks for orphans (PR_SET_CHILD_SUBREAPER), so that this process
finds everything below itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE_S = 2.0
_BEAT_S = 0.02
_MOST_LETTERS = 60


def adopt_orphans() -> None:
    """From now on orphans below this process are its children."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def below(ancestor: int) -> set[int]:
    """All living processes that descend from one."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, parent = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:2]
            if state not in "ZX":
                children.setdefault(int(parent), []).append(int(path.parent.name))
    found: set[int] = set()
    waiting = [ancestor]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            found.add(child)
            waiting.append(child)
    return found


def left_behind(ancestor: int, before: set[int]) -> set[int]:
    """What lives below a process and was not there before, once it has had the time to end by itself."""
    until = time.monotonic() + _PATIENCE_S
    while (found := below(ancestor) - before) and time.monotonic() < until:
        _reap(found)
        time.sleep(_BEAT_S)
    return found


def end(processes: Iterable[int]) -> None:
    """Ends them: asked first, then without asking."""
    waiting = set(processes)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for one in waiting:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one, number)
        until = time.monotonic() + _PATIENCE_S
        while waiting and time.monotonic() < until:
            _reap(waiting)
            waiting = {one for one in waiting if _lives(one)}
            time.sleep(_BEAT_S)


def title(process: int) -> str:
    """`python server.py --port 80`; empty where it has ended."""
    try:
        words = (Path("/proc") / str(process) / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return ""
    return " ".join([words[0].rpartition("/")[2], *words[1:]]).strip()[:_MOST_LETTERS]


def _lives(process: int) -> bool:
    try:
        text = (Path("/proc") / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def _reap(processes: Iterable[int]) -> None:
    """Those that are children of this process."""
    for one in processes:
        with contextlib.suppress(ChildProcessError, OSError):
            os.waitpid(one, os.WNOHANG)
