"""Children that are killed at a moment of their own: what they leave behind must be fit for those who come after."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

Action = Callable[[], object]
Kill = Callable[[Action, int], bool]
"""Runs the action in a child that is killed at its step of this number, before it; False when the action was over
before."""

_TRACE_ME, _GO_TO_SYSTEM_CALL, _SET_OPTIONS = 0, 24, 0x4200
_TELL_SYSTEM_CALLS, _DIE_WITH_US = 0x1, 0x100000
_SYSTEM_CALL = signal.SIGTRAP | 0x80
_ptrace = ctypes.CDLL(None, use_errno=True).ptrace
_ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_ptrace.restype = ctypes.c_long


def at_a_call(action: Action, step: int) -> bool:
    """A step is a function of the interpreter's behind which are system calls, on files, folders and locks."""
    pid = os.fork()
    if pid == 0:
        left = step

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal left
            if event == "c_call" and _asks_the_system(argument):
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        def counted() -> None:
            sys.setprofile(count)
            action()
            sys.setprofile(None)

        _run(counted)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def at_a_system_call(action: Action, step: int) -> bool:
    """A step is a system call, of any kind."""
    pid = os.fork()
    if pid == 0:

        def traced() -> None:
            _ptrace(_TRACE_ME, 0, None, None)
            os.kill(os.getpid(), signal.SIGSTOP)
            action()

        _run(traced)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGSTOP
    assert _ptrace(_SET_OPTIONS, pid, None, _TELL_SYSTEM_CALLS | _DIE_WITH_US) == 0
    stops = handed = 0  # each system call stops the child twice, at its begin and at its end
    while True:
        assert _ptrace(_GO_TO_SYSTEM_CALL, pid, None, handed) == 0
        status = os.waitpid(pid, 0)[1]
        if not os.WIFSTOPPED(status):
            assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0
            return False
        handed = 0 if os.WSTOPSIG(status) == _SYSTEM_CALL else os.WSTOPSIG(status)
        if handed:
            continue
        stops += 1
        if stops == 2 * step + 1:
            os.kill(pid, signal.SIGKILL)
            assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])
            return True


def may_trace() -> bool:
    """Whether the system lets a process trace its children; some containers forbid it."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if _ptrace(_TRACE_ME, 0, None, None) == 0 else 1)
    return os.waitpid(pid, 0)[1] == 0


def _run(action: Action) -> NoReturn:
    code = 1
    try:
        action()
        code = 0
    finally:
        os._exit(code)


def _asks_the_system(function: object) -> bool:
    """Whether a built-in function is one of those behind which all system calls are: files, folders, locks."""
    owner = getattr(function, "__module__", None) or type(getattr(function, "__self__", None)).__module__
    return owner in ("posix", "fcntl", "_io") and getattr(function, "__name__", "") not in ("fspath", "getpid")
