"""Names of files to write: the default one, free ones beside it, and what can be known to be wrong with a name."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path

from leadline._output import PROFILE, OutputError, check_kind, longest_name
from leadline.capture.config import SUFFIX
from leadline.capture.errors import ProfileError

PART_SUFFIX = ".part"
_LEAST_FREE_BYTES = 4 << 20
"""Room that must be free at the start. Profiles of long programs stay below 1 MB; segments need the same again."""


def default_output(argv: Sequence[str]) -> Path:
    """`<script>.leadline` in the working directory, from a command line whose first word is the script or command."""
    stem = Path(argv[0]).stem if argv else ""
    return Path(f"{stem if stem not in ('', '-', '-c', '-m') else 'python'}{SUFFIX}")


def part_path(output: Path) -> Path:
    """The part directory that belongs to an output file."""
    return output.with_name(f"{output.name}{PART_SUFFIX}")


def free_names(output: Path) -> Iterator[Path]:
    """NAME-1.leadline, NAME-2.leadline, ... of which neither the file nor the part directory is there."""
    for number in range(1, 10_000):
        name = output.with_name(f"{output.stem}-{number}{output.suffix}")
        if not os.path.lexists(name) and not os.path.lexists(part_path(name)):
            yield name
    raise ProfileError(f"There are 10,000 measurements next to {output}; delete some.")


def absolute(output: Path) -> Path:
    """`output` from the root, so that a program may change its folder; raises ProfileError."""
    try:
        str(output).encode()
        return output.absolute()
    except UnicodeEncodeError:
        raise ProfileError(f"Cannot write {str(output)!r}: the name is not UTF-8; choose another file.") from None
    except OSError:
        raise ProfileError(f"Cannot write {output}: the working directory is gone; give the whole path.") from None


def check_output(output: Path) -> None:
    """Raise ProfileError when `output` (a whole path) could not be written, as far as that can be known now."""
    try:
        _check_output(output)
    except OSError as error:
        raise ProfileError(f"Cannot write {output}: {error.strerror}; choose another file.") from None


def _check_output(output: Path) -> None:
    folder = output.parent
    if output.name == "-":
        raise ProfileError("A profile cannot be written to standard output; name a file with -o NAME.leadline.")
    if output.is_dir():
        raise ProfileError(f"Cannot write {output}: it is a folder; give a file name.")
    if not folder.is_dir():
        raise ProfileError(f"Cannot write {output}: the folder {folder} does not exist; make it first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ProfileError(f"Cannot write {output}: no permission to write in {folder}; choose another file.")
    try:
        check_kind(output, PROFILE)
    except OutputError as error:
        raise ProfileError(str(error)) from None
    longest = longest_name(folder) - len(f"-9999{PART_SUFFIX}")  # other measurements of that name get a number
    if len(os.fsencode(output.name)) > longest:
        raise ProfileError(f"Cannot write {output}: the name is longer than {longest} bytes; choose a shorter one.")
    most_bytes = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if most_bytes != resource.RLIM_INFINITY and most_bytes < _LEAST_FREE_BYTES:
        raise ProfileError(
            f"Cannot write {output}: files may grow to {most_bytes} bytes here, {_LEAST_FREE_BYTES >> 20} MiB are "
            "needed; raise the limit (ulimit -f)."
        )
    free_bytes = free_space_bytes(folder)
    if free_bytes < _LEAST_FREE_BYTES:
        raise ProfileError(
            f"Cannot write {output}: {free_bytes >> 10} KiB are free, {_LEAST_FREE_BYTES >> 20} MiB are needed; "
            "make room, or choose another file."
        )


def may_replace(output: Path) -> bool:
    """Whether writing there loses nothing of anybody else's: no file, an empty one or a profile."""
    try:
        check_kind(output, PROFILE)
    except OutputError:
        return False
    return True


def keep_old(output: Path) -> Path | None:
    """Give the profile that is there a second name, NAME.1.leadline or the next free one; None where none is there.

    The old name stays until the new profile takes its place, so that a run that measures nothing loses nothing.
    Raises ProfileError.
    """
    if not output.is_file() or output.stat().st_size == 0:
        return None
    try:
        for number in range(1, 10_000):
            kept = output.with_name(f"{output.stem}.{number}{output.suffix}")
            try:
                os.link(output, kept)
                return kept
            except FileExistsError:
                continue
            except OSError as error:  # a file system without links
                if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
                    raise
                import shutil  # rarely needed, and an import before the user's program

                with kept.open("xb") as copy, output.open("rb") as old:
                    shutil.copyfileobj(old, copy)
                return kept
    except OSError as error:
        raise ProfileError(f"Cannot keep {output}: {error.strerror}; choose another file with -o.") from None
    raise ProfileError(f"There are 10,000 older profiles next to {output}; delete some.")


def free_space_bytes(folder: Path) -> int:
    """What an ordinary user may still write there."""
    system = os.statvfs(folder)
    return system.f_bavail * system.f_frsize
