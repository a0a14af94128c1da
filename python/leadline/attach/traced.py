"""One thread of another process, held by ptrace for a moment, in which functions can be called.

Linux on x86-64. What the thread was doing goes on afterwards as if nothing had been: all registers are put back, also
those of vectors, and a system call that was interrupted is begun again by the kernel.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import time
from types import TracebackType

from leadline.attach.target import AttachError

_SEIZE, _INTERRUPT, _CONT, _DETACH = 0x4206, 0x4207, 7, 17
_GETREGSET, _SETREGSET = 0x4204, 0x4205
_NT_PRSTATUS, _NT_X86_XSTATE = 1, 0x202
_MOST_VECTOR_BYTES = 1 << 16
_NAMES = (
    *(
        "r15",
        "r14",
        "r13",
        "r12",
        "rbp",
        "rbx",
        "r11",
        "r10",
        "r9",
        "r8",
        "rax",
        "rcx",
        "rdx",
        "rsi",
        "rdi",
        "orig_rax",
    ),
    *("rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
)
"""As `struct user_regs_struct` has them."""
_ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_RED_ZONE = 128
_RESTARTS = frozenset(2**64 - code for code in (512, 513, 514, 516))  # ERESTARTSYS and the like: begun again
_EINTR = 2**64 - 4
_WALL = 0x40000000
_CALL_S = 5.0
_FUTEX = 202
_QUIET_CALLS = frozenset({0, 7, 23, 35, 61, 230, 232, 247, 270, 271, 281, 288})
"""System calls that threads wait in without a lock of the C library: sleep, read, poll, select, wait, accept."""


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class TracedThread:
    """Holds the thread from `with` to its end. Raises AttachError where that is refused or does not work."""

    def __init__(self, pid: int, tid: int) -> None:
        if platform.machine() != "x86_64":
            raise AttachError(
                f"Attaching to Python before 3.14 is written for x86-64 only, not for {platform.machine()}; "
                "start the program with `leadline run`."
            )
        self._pid = pid
        self._tid = tid
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.ptrace.restype = ctypes.c_long
        self._libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
        self._memory = -1
        self._held_signals: list[int] = []
        self._saved: dict[str, int] = {}
        self._vectors = b""

    def __enter__(self) -> TracedThread:
        self._memory = os.open(f"/proc/{self._pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        try:
            self._ptrace(_SEIZE)
            try:
                self._stop()
                self._saved = self._registers()
                self._vectors = self._get(_NT_X86_XSTATE, _MOST_VECTOR_BYTES)
            except BaseException:
                self._libc.ptrace(_DETACH, self._tid, None, None)
                raise
        except BaseException:
            os.close(self._memory)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._put_back(self._saved)
            self._libc.ptrace(_DETACH, self._tid, None, None)
        finally:
            os.close(self._memory)
        for number in self._held_signals:  # they came while the thread was held
            self._libc.syscall(234, self._pid, self._tid, number)  # tgkill

    @property
    def waits_quietly(self) -> bool:
        """Whether it is in a system call in which it holds no lock of the C library."""
        return self._saved["rax"] in _RESTARTS and self._saved["orig_rax"] in _QUIET_CALLS

    def interrupt_lock(self) -> None:
        """Where it waits for a lock, that wait ends with EINTR, on which Python looks what else there is to do."""
        if self._saved["rax"] in _RESTARTS and self._saved["orig_rax"] == _FUTEX:
            self._saved = {**self._saved, "rax": _EINTR, "orig_rax": 2**64 - 1}

    def write(self, address: int, data: bytes) -> None:
        """Into the process's memory."""
        if os.pwrite(self._memory, data, address) != len(data):
            raise AttachError(f"The memory of process {self._pid} cannot be written.")

    def call(self, function: int, *arguments: int) -> int:
        """Call a C function with integers or addresses; returns its integer."""
        stack = ((self._saved["rsp"] - _RED_ZONE - 512) & ~0xF) - 8
        self.write(stack, bytes(8))  # it returns to address 0, where nobody can run: a signal that only we see
        registers = {**self._saved, "rsp": stack, "rip": function, "rax": 0, "orig_rax": 2**64 - 1}
        registers.update(zip(_ARGUMENTS, arguments, strict=False))
        self._put_back(registers)
        self._ptrace(_CONT)
        deadline = time.monotonic() + _CALL_S
        while True:
            number = self._wait_for_stop(deadline)
            if number is None:
                self._stop()
                raise AttachError(
                    f"Process {self._pid} is at a place where Leadline cannot call a function, and continues; try "
                    "again."
                )
            found = self._registers()
            if number == signal.SIGSEGV and found["rip"] == 0:
                return found["rax"]
            if number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL):
                raise AttachError(f"A call in process {self._pid} failed; the process continues as before.")
            self._held_signals.append(number)
            self._ptrace(_CONT)

    # ---------------------------------------------------------------- ptrace(2)

    def _stop(self) -> None:
        self._ptrace(_INTERRUPT)
        deadline = time.monotonic() + _CALL_S
        while True:
            number = self._wait_for_stop(deadline)
            if number is None:
                raise AttachError(
                    f"Process {self._pid} cannot be stopped for a moment: its main thread is stuck in the kernel."
                )
            if number == signal.SIGTRAP:
                return
            self._held_signals.append(number)
            self._ptrace(_CONT)
            self._ptrace(_INTERRUPT)

    def _wait_for_stop(self, deadline: float) -> int | None:
        """The signal that stopped it; None when the time is over."""
        pause = 0.0001
        while True:
            try:
                found, status = os.waitpid(self._tid, os.WNOHANG | _WALL)
            except ChildProcessError:
                raise AttachError(f"Process {self._pid} has ended.") from None
            if found and os.WIFSTOPPED(status):
                return os.WSTOPSIG(status)
            if found:
                raise AttachError(f"Process {self._pid} has ended.")
            if time.monotonic() >= deadline:
                return None
            time.sleep(pause)
            pause = min(2 * pause, 0.01)

    def _ptrace(self, request: int) -> None:
        if self._libc.ptrace(request, self._tid, None, None) == 0:
            return
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))

    def _get(self, kind: int, room: int) -> bytes:
        buffer = ctypes.create_string_buffer(room)
        vector = _Vector(ctypes.addressof(buffer), room)
        if self._libc.ptrace(_GETREGSET, self._tid, kind, ctypes.addressof(vector)) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return buffer.raw[: vector.length]

    def _set(self, kind: int, data: bytes) -> None:
        buffer = ctypes.create_string_buffer(data, len(data))
        vector = _Vector(ctypes.addressof(buffer), len(data))
        if self._libc.ptrace(_SETREGSET, self._tid, kind, ctypes.addressof(vector)) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def _registers(self) -> dict[str, int]:
        data = self._get(_NT_PRSTATUS, 8 * len(_NAMES))
        return dict(zip(_NAMES, struct.unpack(f"<{len(_NAMES)}Q", data), strict=True))

    def _put_back(self, registers: dict[str, int]) -> None:
        self._set(_NT_X86_XSTATE, self._vectors)
        self._set(_NT_PRSTATUS, struct.pack(f"<{len(_NAMES)}Q", *(registers[name] for name in _NAMES)))
