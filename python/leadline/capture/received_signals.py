"""Tells signals that the program has had already from those that only its supervisor has had.

A signal to the process group (a key at the terminal, a hang-up, `kill -- -PGID`, the second one of `timeout`) reaches
the program without us, and so does one that is sent to every process of a job in turn (Slurm's `--signal=USR1@60`,
systemd, `pkill`). What the kernel tells of a signal is the same in all these cases and when somebody means the
supervisor alone. So a third process stands beside both: in their group, with their command line, doing nothing. What
has reached it too was not for the supervisor alone.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterable
from typing import NoReturn

_GRACE_S = 0.1
"""How much later than the supervisor the witness may get its copy, where every process gets one in turn. A signal to
the supervisor alone is passed on so much later."""
_ANSWER_S = 2.0
"""How long the answer is waited for: a witness that somebody has stopped or killed answers nothing."""


class Witness:
    """The third process. Starting it may fail; then `has_seen` knows of keys at the terminal only."""

    def __init__(self, blocked: Iterable[int]) -> None:
        """`blocked`: every signal that will be asked for, and that this process waits for."""
        self._to = self._from = self.pid = -1
        read = write = -1
        blocked = {*blocked, signal.SIGTSTP}
        try:
            read, self._to = os.pipe()
            self._from, write = os.pipe()
            self.pid = os.fork()  # it has our command line, and no interpreter has to start
            if self.pid == 0:
                _stand_by(read, write, blocked)
        except OSError:
            self.close()
        finally:
            for descriptor in (read, write):
                if descriptor >= 0:
                    os.close(descriptor)

    def has_seen(self, received: signal.struct_siginfo) -> bool:
        """Whether a signal that this process has received reached the witness too, from the same sender."""
        if self._to < 0:
            return received.si_signo in _TERMINAL_KEYS and received.si_code == _SI_KERNEL
        try:
            os.write(self._to, bytes([received.si_signo]))
            if not select.select([self._from], [], [], _ANSWER_S)[0]:
                raise OSError("no answer")
            return int(os.read(self._from, 32) or -1) == received.si_pid
        except (OSError, ValueError):
            self.close()
            return self.has_seen(received)

    def close(self) -> None:
        """Let it end."""
        for descriptor in (self._to, self._from):
            if descriptor >= 0:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self._to = self._from = -1


def _stand_by(read: int, write: int, blocked: Iterable[int]) -> NoReturn:
    """The forked process: for each signal number that it reads, who sent it that signal, -1 for nobody."""
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        os.dup2(read, 0)
        os.dup2(write, 1)
        os.closerange(2, _MOST_DESCRIPTORS)
        while request := os.read(0, 1):
            received = signal.sigtimedwait(request, _GRACE_S)
            os.write(1, b"%d\n" % (received.si_pid if received else -1))
    finally:
        os._exit(0)


_MOST_DESCRIPTORS = 1 << 20
_TERMINAL_KEYS = frozenset({signal.SIGINT, signal.SIGQUIT})
_SI_KERNEL = 0x80  # asm-generic/siginfo.h: sent by the kernel, as the terminal does for a key, to the whole group
