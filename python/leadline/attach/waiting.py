"""What a thread is doing as the kernel sees it: running, waiting for the interpreter's lock, for another one, for data,
for a child, asleep. From `/proc`, without a signal."""

from __future__ import annotations

import os
import platform

from leadline._dataclass import dataclass
from leadline.attach.target import Target

_FUTEX = 202
_CALLS = {
    **dict.fromkeys((0, 17, 19, 45, 47, 299), "waiting for input"),
    **dict.fromkeys((1, 18, 20, 44, 46, 307), "waiting to write"),
    **dict.fromkeys((7, 23, 232, 270, 271, 281), "waiting for input or output"),
    **dict.fromkeys((42, 43, 288), "waiting for a connection"),
    **dict.fromkeys((35, 230), "asleep"),
    **dict.fromkeys((61, 247), "waiting for a child"),
    **dict.fromkeys((73, 72), "waiting for a file lock"),
    **dict.fromkeys((74, 75, 162, 26), "waiting for the disk"),
    16: "in a device's driver",
}
"""Numbers of system calls on x86-64."""
_HOW_MANY_FILES = {23: 0, 270: 0, 7: 1, 271: 1}
"""Where select, pselect6, poll and ppoll are told how many files to wait for: with none they sleep, as `time.sleep`
does before CPython 3.11."""
_RUNTIME_BYTES = 1 << 20
"""No interpreter's `_PyRuntime` is larger; its lock lies inside."""
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Doing:
    """`state`: a few words; `call`: number of its system call, -1 for none or unknown; `cpu_s`: CPU seconds."""

    state: str
    call: int
    cpu_s: float


def doing(target: Target, tid: int, runtime: int) -> Doing:
    """What a thread does now; `runtime`: address of the interpreter's state, 0 where it has none."""
    letter, cpu_s = _stat(target.text_of_thread(tid, "stat"))
    call, arguments = _call(target.text_of_thread(tid, "syscall"))
    if letter in ("T", "t"):
        return Doing("stopped", call, cpu_s)
    if letter == "R" or call < 0:
        return Doing("running" if letter == "R" else "waiting in the kernel", -1, cpu_s)
    if platform.machine() != "x86_64":
        return Doing(f"in system call {call}", call, cpu_s)
    if call == _FUTEX:
        address = arguments[0] if arguments else 0
        if runtime and runtime <= address < runtime + _RUNTIME_BYTES:
            return Doing("waiting for the interpreter's lock (GIL)", call, cpu_s)
        return Doing("waiting for a lock", call, cpu_s)
    place = _HOW_MANY_FILES.get(call, len(arguments))
    if place < len(arguments) and not arguments[place] & 0xFFFFFFFF:
        return Doing("asleep", call, cpu_s)
    return Doing(_CALLS.get(call, f"in system call {call}"), call, cpu_s)


def _stat(text: str) -> tuple[str, float]:
    """State letter and CPU seconds (proc(5)); the name in brackets may hold anything."""
    fields = text.rpartition(")")[2].split()
    if len(fields) < 13:
        return "?", 0.0
    return fields[0], (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def _call(text: str) -> tuple[int, list[int]]:
    fields = text.split()
    if not fields or fields[0] == "running":
        return -1, []
    return int(fields[0]), [int(field, 16) for field in fields[1:7]]
