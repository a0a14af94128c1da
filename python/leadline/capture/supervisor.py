"""Runs a program as the shell would and ends as it ended.

Promises: same interpreter, arguments, standard streams, working directory and process group; signals reach the program
once; the exit status is the program's, a signal included. The profile is finished between the program's end and ours.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from leadline._dataclass import dataclass
from leadline.capture.errors import ProfileError
from leadline.capture.received_signals import Witness

_KEPT = frozenset(
    {
        *(signal.SIGKILL, signal.SIGSTOP),  # nobody can receive these
        *(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT),  # the shell's, which means the whole job
        *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS, signal.SIGABRT),
        *(signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGWINCH, signal.SIGURG),
    }
)
_FORWARDED = frozenset(signal.valid_signals()) - _KEPT
"""Whatever could be meant for the program, real-time signals too."""
_BEAT_S = 30.0
_PYTHON_IGNORES = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
"""Signals that this Python ignores for itself; a program started by a shell would not inherit that."""


@dataclass(frozen=True)
class Command:
    """What to run, as it was typed, and as the shell would start it."""

    typed: tuple[str, ...]
    argv: tuple[str, ...]

    @classmethod
    def script(cls, words: Sequence[str]) -> Command:
        """`train.py ARGS`, run by this interpreter; raises ProfileError when there is no such file."""
        script = words[0]
        if script != "-" and not Path(script).exists():
            raise ProfileError(f"Cannot run {script}: there is no such file; check the name and the working directory.")
        if _is_binary(script):
            raise ProfileError(f"Cannot run {script}: it is a program, no script; write leadline run -- {script} ...")
        return cls(tuple(words), (sys.executable, *words))

    @classmethod
    def module(cls, words: Sequence[str]) -> Command:
        """`pkg.mod ARGS` of `-m pkg.mod ARGS`. Whether it exists is Python's to say: looking imports its parents."""
        return cls(("-m", *words), (sys.executable, "-m", *words))

    @classmethod
    def code(cls, words: Sequence[str]) -> Command:
        """`CODE ARGS` of `-c CODE ARGS`."""
        return cls(("-c", *words), (sys.executable, "-c", *words))

    @classmethod
    def program(cls, words: Sequence[str]) -> Command:
        """`cmd ARGS` of `-- cmd ARGS`, found on PATH."""
        return cls(tuple(words), tuple(words))

    @property
    def name(self) -> str:
        """The word that names the program: script, module or command."""
        return self.typed[1] if self.typed[0] == "-m" else self.typed[0]  # `-c` of -c CODE


@dataclass(frozen=True)
class ExitStatus:
    """How the program ended: with a code, or by a signal."""

    code: int | None
    signal: int | None

    @classmethod
    def from_wait(cls, status: int) -> ExitStatus:
        """From `os.waitpid`."""
        if os.WIFSIGNALED(status):
            return cls(None, os.WTERMSIG(status))
        return cls(os.waitstatus_to_exitcode(status), None)

    def record(self) -> dict[str, Any]:
        """For `session.json`."""
        return {"code": self.code} if self.signal is None else {"signal": signal_name(self.signal)}

    def leave(self) -> int:
        """The exit code to return; when the program died by a signal, die by the same one, so that a shell sees it."""
        if self.signal is None:
            return 0 if self.code is None else self.code
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # None when the shell has closed it (>&-)
                stream.flush()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has left its core already
        with contextlib.suppress(OSError, ValueError):  # SIGKILL has no handler to reset
            signal.signal(self.signal, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {self.signal})
        os.kill(os.getpid(), self.signal)
        return 128 + self.signal


_SENT = {0, -1, -6, 0x80}
"""Codes of signals that somebody sent (kill, sigqueue, tgkill) or a terminal did; no others are for the program: where
this process is measured itself, such as in a program that calls `leadline run`, those of its samples come, too."""


def run_program(
    command: Command, environment: Mapping[str, str], beat: Callable[[], None], every_s: float = _BEAT_S
) -> ExitStatus:
    """Start the program, pass signals on, wait for its end; `beat` is called every `every_s` seconds. Raises
    ProfileError when it cannot be started.

    Signals stay blocked in this process when it returns, so that the profile can be finished in peace: whoever sent one
    wanted the program to end, and it has. `release_signals` undoes it.
    """
    waited = _FORWARDED | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    ignored = {number for number in _FORWARDED if signal.getsignal(number) is signal.SIG_IGN}
    witness = Witness(_FORWARDED)
    try:
        pid = os.posix_spawnp(
            command.argv[0], list(command.argv), dict(environment), setsigmask=before, setsigdef=_PYTHON_IGNORES
        )
    except OSError as error:
        witness.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise ProfileError(f"Cannot run {command.argv[0]}: {error.strerror}.{_remedy(command.argv[0])}") from None
    due_s = time.monotonic() + every_s
    try:
        while True:
            received = signal.sigtimedwait(waited, max(due_s - time.monotonic(), 0))
            if time.monotonic() >= due_s:  # also where signals never stop coming
                with contextlib.suppress(Exception):  # the program runs on, whatever a look meets
                    beat()
                due_s = time.monotonic() + every_s
            if received is None:
                continue
            if received.si_signo == signal.SIGCHLD:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    return ExitStatus.from_wait(status)
            elif received.si_signo not in ignored and received.si_code in _SENT:
                _pass_on(received, pid, witness)
    finally:
        witness.close()


def run_unmeasured(command: Command) -> NoReturn:
    """Become the program, where nothing can be measured. Raises OSError."""
    for number in _PYTHON_IGNORES:
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command.argv[0], list(command.argv))


def _is_binary(script: str) -> bool:
    """Whether it is what the system itself runs, such as an interpreter."""
    try:
        with Path(script).open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:  # a folder or a pipe; Python knows what to do with it, or says why not
        return False


def _remedy(program: str) -> str:
    """What to do, also where a script was given as a command."""
    if not Path(program).exists():
        return " Check the name, or give the whole path."
    if not program.endswith(".py") or not Path(program).is_file() or os.access(program, os.X_OK):
        return " Check its permissions."
    return f" It is a script, and what follows -- runs unchanged: leave out the --, or write -- python {program}."


def _pass_on(received: signal.struct_siginfo, pid: int, witness: Witness) -> None:
    """Send the program a signal that it has not had."""
    number = received.si_signo
    with contextlib.suppress(ProcessLookupError):
        if witness.has_seen(received) and os.getpgid(pid) == os.getpgrp():
            if number < signal.SIGRTMIN:  # these do not queue: one that is pending again may be the witness's same
                signal.sigtimedwait({number}, 0)
        else:
            os.kill(pid, number)


def signal_name(number: int) -> str:
    """`SIGTERM`; `SIGRTMIN+6` for a real-time signal, of which Python names two only."""
    if signal.SIGRTMIN <= number <= signal.SIGRTMAX:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def release_signals() -> None:
    """Forget what arrived while the profile was being finished, and take signals again."""
    while signal.sigpending() & _FORWARDED:
        signal.sigwait(_FORWARDED & signal.sigpending())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED | {signal.SIGCHLD})
