"""Native frames of the waiting threads of another process, woven with its Python frames.

A thread that waits in a system call says where its stack is (`/proc/PID/task/TID/syscall`). Its stack is copied and
walked here by the unwind information of the files that the process has loaded, without stopping it. An evaluation of
the interpreter keeps an object on its own stack frame, so the native frame that holds it is shown as its Python frames.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from leadline._dataclass import dataclass
from leadline.attach.interpreter import Frame, Run
from leadline.attach.target import AttachError, Target

_MOST_STACK = 1 << 20
_TRIES = 3

Names: TypeAlias = Callable[[str, Sequence[int]], Sequence[str]]
"""Names of the functions at these addresses of a file; empty where there is none."""


@dataclass(frozen=True)
class NativeFrame:
    """One frame of C or C++. `file`: empty for code made at run time; `address`: in the file."""

    name: str
    file: str
    address: int


@dataclass(frozen=True)
class _Walked:
    sp: int
    end: int
    file: str
    address: int


class NativeStacks:
    """The native stacks of one process."""

    def __init__(self, target: Target, interpreter_file: str) -> None:
        """`interpreter_file`: frames of that file are left out; empty to keep them."""
        from leadline import _native

        self._target = target
        # Calls that are followed pass through Leadline's own module.
        own = f"/leadline/{Path(str(_native.__file__)).name}"
        self._hidden = {interpreter_file, *(one.path for one in target.mappings if one.path.endswith(own))}
        if not interpreter_file:
            self._hidden = set()
        self._process = _native.OtherProcess()
        seen = set()
        self._paths: dict[str, str] = {}
        for mapping in target.mappings:
            if mapping.offset or mapping.path in seen:
                continue
            seen.add(mapping.path)
            path = str(target.file(mapping.path))
            if self._process.add(path, mapping.begin):
                self._paths[path] = mapping.path

    def joined(self, tid: int, runs: Sequence[Run]) -> list[NativeFrame | Frame] | None:
        """Frames of a thread that waits, the innermost first; None where it runs or does not stand still."""
        for _ in range(_TRIES):
            line = self._target.text_of_thread(tid, "syscall")
            fields = line.split()
            if len(fields) < 3 or fields[0] == "running":
                return None
            sp, pc = int(fields[-2], 16), int(fields[-1], 16)
            try:
                stack = self._target.read_some(sp, _MOST_STACK)
            except AttachError:
                continue
            if self._target.text_of_thread(tid, "syscall") == line:
                found, whole = self._process.walk(pc, sp, stack)
                return self._woven([_Walked(*one) for one in found], whole, runs)
        return None

    def _woven(self, frames: list[_Walked], whole: bool, runs: Sequence[Run]) -> list[NativeFrame | Frame]:
        found: list[NativeFrame | Frame] = []
        left = list(runs)
        for frame in frames:
            if left and frame.sp <= left[0].home < frame.end:
                found += left.pop(0).frames
                continue
            path = self._paths.get(frame.file, "")
            if not path or path not in self._hidden:
                found.append(NativeFrame("" if path else "[code made at run time]", path, frame.address))
        if left or not whole:
            found.append(NativeFrame("[no unwind information]", "", 0))
        for run in left:
            found += run.frames
        return found


def named(stacks: Sequence[list[NativeFrame | Frame]], names: Names) -> list[list[NativeFrame | Frame]]:
    """The same with names; each file is looked into once. What has none is called by its file and address."""
    wanted: dict[str, set[int]] = {}
    for stack in stacks:
        for frame in stack:
            if isinstance(frame, NativeFrame) and frame.file and not frame.name:
                wanted.setdefault(frame.file, set()).add(frame.address)
    known: dict[tuple[str, int], str] = {}
    for file, places in wanted.items():
        addresses = sorted(places)
        for address, name in zip(addresses, names(file, addresses), strict=True):
            known[file, address] = name or f"{file.rpartition('/')[2]}+{address:#x}"
    return [
        [
            NativeFrame(known.get((one.file, one.address), one.name), one.file, one.address)
            if isinstance(one, NativeFrame)
            else one
            for one in stack
        ]
        for stack in stacks
    ]
