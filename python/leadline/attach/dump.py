"""What every thread of a process does at this moment, as data and as text."""

from __future__ import annotations

import contextlib
import itertools
import sys
from typing import Any

from leadline._dataclass import asdict, dataclass, replace
from leadline.attach.interpreter import Frame, Interpreter
from leadline.attach.native_stack import Names, NativeFrame, NativeStacks, named
from leadline.attach.offsets import LayoutError, find_offsets
from leadline.attach.open_scopes import Scope, open_scopes
from leadline.attach.target import AttachError, Target
from leadline.attach.waiting import doing

_TRIES = 5


@dataclass(frozen=True)
class ThreadDump:
    """One thread. `frames`: the innermost Python frame first; empty where it runs none. `cpu_s`: CPU seconds so far."""

    tid: int
    name: str
    main: bool
    state: str
    cpu_s: float
    python: bool
    frames: tuple[Frame, ...]
    scopes: tuple[Scope, ...] = ()
    """Of a measured process: open modules, operators, regions, the outermost first."""
    joined: tuple[NativeFrame | Frame, ...] = ()
    """Python and native frames, the innermost first, where native ones were asked for and the thread waits."""


@dataclass(frozen=True)
class Dump:
    """A process at one moment."""

    pid: int
    command: str
    python: str
    threads: tuple[ThreadDump, ...]
    scopes_age_s: float | None = None
    """How long ago `scopes` were written down; None where the process is not measured."""

    def as_object(self) -> dict[str, Any]:
        """As `json.dumps` takes it."""
        return asdict(self)


def dump(pid: int, names: Names | None = None, every: bool = False) -> Dump:
    """`names`: names native frames, which are then read too; `every`: also those of the interpreter. Raises AttachError
    with one sentence where the process cannot be looked into."""
    target = Target(pid)
    try:
        for _ in range(_TRIES - 1):
            with contextlib.suppress(AttachError):  # what was read may have ended meanwhile: a thread, a frame
                return _look(target, names, every)
        return _look(target, names, every)
    except LayoutError as error:
        raise AttachError(str(error)) from error
    finally:
        target.close()


def _look(target: Target, names: Names | None, every: bool) -> Dump:
    interpreter = Interpreter(target, find_offsets())
    states = interpreter.threads()
    stacks = None if names is None else NativeStacks(target, "" if every else interpreter.file)
    measured = open_scopes(target)
    threads = []
    joined = []
    for tid in target.threads():
        state = states.get(tid)
        frames = tuple(interpreter.stack(state)) if state is not None else ()
        now = doing(target, tid, interpreter.runtime)
        name = target.text_of_thread(tid, "comm").strip()
        scopes = measured.scopes.get(tid, ()) if measured is not None else ()
        main = tid == target.pid
        threads.append(ThreadDump(tid, name, main, now.state, now.cpu_s, state is not None, frames, scopes))
        runs = interpreter.runs(state) if stacks is not None and state is not None else []
        joined.append((stacks.joined(tid, runs) if stacks is not None else None) or [])
    if not threads:
        raise AttachError(f"Process {target.pid} has ended.")
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if names is not None:
        found = zip(threads, named(joined, names), strict=True)
        threads = [replace(thread, joined=tuple(stack)) for thread, stack in found]
    age_s = None if measured is None else measured.age_s
    return Dump(target.pid, target.command, version, tuple(threads), age_s)


def text_of(found: Dump, every: bool = False, native: bool = False) -> str:
    """As a person reads it; threads without Python only where they run, or where `every` is true. `native`: native
    frames were asked for, so a thread that has none says why."""
    lines = [f"process {found.pid}  {_printable(found.command)}  (Python {found.python})"]
    hidden = 0
    age = "" if found.scopes_age_s is None else f"  ({found.scopes_age_s:.1f} s ago)"
    for thread in found.threads:
        if not (every or thread.python or thread.main or thread.state == "running"):
            hidden += 1
            continue
        who = "main thread" if thread.main else f"thread {_printable(thread.name)}"
        lines += ["", f"{who} ({thread.tid})  {thread.state}, {thread.cpu_s:.2f} s of CPU time so far"]
        if thread.scopes:
            lines.append(f"    in {_printable(' › '.join(scope.name for scope in thread.scopes))}{age}")
        shown = thread.joined or thread.frames
        for one, times in ((one, len(list(same))) for one, same in itertools.groupby(shown, key=_text)):
            lines.append(f"    {_printable(one)}" + (f"  (x {times})" if times > 1 else ""))
        if native and not thread.joined and thread.state == "running":
            lines.append("    (its native frames can be read only while it waits)")
        if not shown:
            lines.append("    (no Python)" if not thread.python else "    (no Python frame)")
    if hidden:
        lines += ["", f"{hidden} more threads wait and run no Python; --all shows them"]
    return "\n".join(lines) + "\n"


def _text(frame: NativeFrame | Frame) -> str:
    if isinstance(frame, Frame):
        return f"{frame.file}:{frame.line} {frame.name}"
    return f"{frame.name}  [{frame.file.rpartition('/')[2]}]" if frame.file else frame.name


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)
