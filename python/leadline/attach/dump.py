"""What every thread of a process does at this moment, as data and as text."""

from __future__ import annotations

import itertools
import sys
from dataclasses import asdict, dataclass
from typing import Any

from leadline.attach.interpreter import Frame, Interpreter
from leadline.attach.offsets import LayoutError, find_offsets
from leadline.attach.target import AttachError, Target
from leadline.attach.waiting import doing


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


@dataclass(frozen=True)
class Dump:
    """A process at one moment."""

    pid: int
    command: str
    python: str
    threads: tuple[ThreadDump, ...]

    def as_object(self) -> dict[str, Any]:
        """As `json.dumps` takes it."""
        return asdict(self)


def dump(pid: int) -> Dump:
    """Raises AttachError with one sentence where the process cannot be looked into."""
    target = Target(pid)
    try:
        interpreter = Interpreter(target, find_offsets())
        states = interpreter.threads()
        threads = []
        for tid in target.threads():
            state = states.get(tid)
            frames = tuple(interpreter.stack(state)) if state is not None else ()
            now = doing(target, tid, interpreter.runtime)
            name = target.text_of_thread(tid, "comm").strip()
            threads.append(ThreadDump(tid, name, tid == pid, now.state, now.cpu_s, state is not None, frames))
        if not threads:
            raise AttachError(f"Process {pid} has ended.")
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return Dump(pid, target.command, version, tuple(threads))
    except LayoutError as error:
        raise AttachError(str(error)) from error
    finally:
        target.close()


def text_of(found: Dump, every: bool = False) -> str:
    """As a person reads it; threads without Python only where they run, or where `every` is true."""
    lines = [f"process {found.pid}  {_printable(found.command)}  (Python {found.python})"]
    hidden = 0
    for thread in found.threads:
        if not (every or thread.python or thread.main or thread.state == "running"):
            hidden += 1
            continue
        who = "main thread" if thread.main else f"thread {_printable(thread.name)}"
        lines += ["", f"{who} ({thread.tid})  {thread.state}, {thread.cpu_s:.2f} s of CPU time so far"]
        for one, times in ((one, len(list(same))) for one, same in itertools.groupby(thread.frames)):
            again = f"  (x {times})" if times > 1 else ""
            lines.append(f"    {_printable(one.file)}:{one.line} {_printable(one.name)}{again}")
        if not thread.frames:
            lines.append("    (no Python)" if not thread.python else "    (no Python frame)")
    if hidden:
        lines += ["", f"{hidden} more threads wait and run no Python; --all shows them"]
    return "\n".join(lines) + "\n"


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)
