"""Where tracefs is: mounted where it should be, or mounted for this process alone, visible to nobody else."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from leadline.capture.kernel.recording import Refused

_PLACES = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
# <asm-generic/unistd.h>: these numbers are the same on every architecture since Linux 5.2
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_CLOEXEC = 1
_CMD_CREATE = 6


def tracefs() -> tuple[Path, int]:
    """The folder of tracefs and a descriptor that keeps it there, -1 where none is needed. Raises Refused."""
    for place in _PLACES:
        try:
            if (place / "instances").is_dir():
                return place, -1
        except OSError:
            continue  # the folder above is closed to this user
    try:
        descriptor = _detached()
    except OSError as error:
        raise Refused(
            f"tracefs is not mounted where this user may see it, and cannot be mounted ({error.strerror})"
        ) from None
    return Path(f"/proc/{os.getpid()}/fd/{descriptor}"), descriptor


def _detached() -> int:
    """A mount of tracefs that is in no folder and ends with this process. Raises OSError."""
    context = _system_call(_FSOPEN, b"tracefs", _CLOEXEC)
    try:
        _system_call(_FSCONFIG, context, _CMD_CREATE, None, None, 0)
        return _system_call(_FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)


def _system_call(number: int, *arguments: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    result = int(library.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def write(path: Path, text: str) -> None:
    """A command to one of the files of tracefs. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
