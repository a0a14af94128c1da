"""Opening profiles and writing results for the verbs: every failure becomes one `CommandError` sentence."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.cli.errors import CommandError

if TYPE_CHECKING:
    from leadline.profiles import Profile


def open_profile(path: str) -> Profile:
    """The profile in `path`; raises CommandError (exit code 2) when it cannot be read."""
    from leadline.profiles import ProfileFileError
    from leadline.profiles import open_profile as read

    try:
        return read(path)
    except ProfileFileError as error:
        raise CommandError(str(error)) from error


def write_result(data: str | bytes, output: str | None) -> None:
    """Write `data` to the file `output`, or to stdout where `output` is None or "-"; raises CommandError when it
    cannot.

    A file is written beside its final name and renamed, so that a full disk never leaves half a report under that name.
    """
    if output is None or output == "-":
        if isinstance(data, bytes):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            sys.stdout.write(data)
        return
    payload = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    target = Path(output)
    partial = target.with_name(f"{target.name}.tmp{os.getpid()}")
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(payload)  # /dev/stdout, a pipe: cannot be replaced by a rename
            return
        partial.write_bytes(payload)
        partial.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):  # it was perhaps never made
            partial.unlink()
        reason = error.strerror or str(error)
        raise CommandError(f"Cannot write {output}: {reason}; choose another place with -o.") from error
