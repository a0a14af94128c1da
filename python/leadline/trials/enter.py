"""Runs a command where its working directory can be written without being changed: `enter.py FOLDER UPPER WORK ARGV`.

An overlay in a mount namespace of its own: what the command writes below FOLDER lands in UPPER. Started by path with
`python -I -S`, so it imports nothing but the standard library. Exit code 125: the kernel does not allow it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

NOT_ALLOWED = 125
_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18


def main(arguments: list[str]) -> int:
    folder, upper, work, *argv = arguments
    try:
        _mount(folder, upper, work)
    except OSError as error:
        print(f"no overlay: {error.strerror}", file=sys.stderr)
        return NOT_ALLOWED
    os.chdir(folder)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        print(f"Cannot run {argv[0]}: {error.strerror}.", file=sys.stderr)
        return 127


def _mount(folder: str, upper: str, work: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    _check(libc.unshare(_CLONE_NEWNS | _CLONE_NEWUSER))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    _check(libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
    options = f"lowerdir={folder},upperdir={upper},workdir={work},userxattr"
    _check(libc.mount(b"overlay", folder.encode(), b"overlay", 0, options.encode()))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
