"""Opening profiles and writing results for the verbs: every failure becomes one `CommandError` sentence."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from leadline._output import OutputError, check_output, harmless
from leadline.cli.errors import CommandError
from leadline.units import size

if TYPE_CHECKING:
    from leadline.convert.sinks import Sink
    from leadline.profiles import Profile


A_FILE = "a profile or a trace (default: the newest .leadline file here)"
_PAGE = "<!doctype html>"
"""How every page begins."""
_SLOW_BYTES = 1 << 20
"""Of a trace that takes noticeably long to read."""


def open_profile(path: str) -> Profile:
    """See `leadline.opening.open_any`; raises CommandError (exit code 2) when it cannot be read."""
    from leadline.opening import open_any
    from leadline.profiles import ProfileFileError

    _say_reading(path)
    try:
        return open_any(path)
    except ProfileFileError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {error.strerror or error}; check the path.") from error


_THREADS = "OPENBLAS_NUM_THREADS"


def load_numpy() -> None:
    """Without a thread for each core of the machine, which only products of matrices use: no verb that reads has any.
    The environment is then as it was."""
    if "numpy" in sys.modules:
        return
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        if before is None:
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = before


def _say_reading(path: str) -> None:
    """A trace of another profiler takes seconds: who waits at a terminal is told at once for what."""
    if not sys.stderr.isatty() or path.endswith(".leadline"):
        return
    try:
        bytes_there = Path(path).stat().st_size
    except (OSError, ValueError):
        return
    if bytes_there >= _SLOW_BYTES:
        print(f"leadline: reading {harmless(path)}, {size(bytes_there)} ...", file=sys.stderr, flush=True)


def add_output(parser: argparse.ArgumentParser, what: str, *, required: bool = False, metavar: str = "OUT") -> None:
    """`-o` and `--force`, the same for every verb that writes a file."""
    parser.add_argument("-o", "--output", metavar=metavar, required=required, help=what)
    parser.add_argument("--force", action="store_true", help=f"replace {metavar} even if Leadline did not write it")


def add_newest(parser: argparse.ArgumentParser) -> None:
    """FILE of a verb that reads one profile; without it the newest one of the working directory."""
    parser.add_argument("file", metavar="FILE", nargs="?", help=A_FILE)
    parser.set_defaults(newest=True)


def no_file(command: str, text: str, what: str) -> None:
    """Raises CommandError where a file stands in the place of what is asked of it."""
    if Path(text).suffix and Path(text).is_file():
        raise CommandError(f"{command} needs {what} after the file: leadline {command} {text} '{what}'.")


def newest_profile() -> str:
    """The `.leadline` file of the working directory that was written last, said on stderr; raises CommandError."""
    found = [one for one in Path().glob("*.leadline") if one.is_file() and one.stat().st_size]
    if not found:
        raise CommandError(
            "No FILE was given and this folder has no .leadline file; make one with `leadline run SCRIPT`."
        )
    name = str(max(found, key=lambda one: (one.stat().st_mtime_ns, one.name)))
    print(f"leadline: reading {harmless(name)}, the newest profile here", file=sys.stderr)
    return name


def runnable(words: list[str]) -> list[str]:
    """The words, a script and its arguments; raises CommandError where the script is a profile or a trace."""
    place = Path(words[0])
    if place.suffix not in (".py", ".pyw", "") and place.is_file():
        from leadline.opening.commands import Kind, command_for, kind_of

        if kind_of(words[0]) is Kind.MEASURED:
            raise CommandError(f"{place} is a measured file, not a program; read it with: {command_for(words[0])}.")
    return words


def add_source_root(parser: argparse.ArgumentParser) -> None:
    """`--source-root`, for verbs that show lines of source files."""
    parser.add_argument(
        "--source-root",
        action="append",
        metavar="FOLDER",
        help="also show source files below FOLDER that the profile has no hash of (default: this folder)",
    )


def use_source_roots(arguments: argparse.Namespace) -> None:
    """Let whatever reads sources in this process know `--source-root`. Raises CommandError."""
    asked: list[str] | None = getattr(arguments, "source_root", None)
    if not asked:
        return
    for folder in asked:
        if not Path(folder).is_dir():
            raise CommandError(f"--source-root {folder} is not a folder; give the folder of your sources.")
    from leadline.sources import ROOT_VARIABLE

    os.environ[ROOT_VARIABLE] = os.pathsep.join([*(str(Path(folder).resolve()) for folder in asked), str(Path.cwd())])


def check_inputs(arguments: argparse.Namespace) -> None:
    """Refuse an output that is one of the files named on the command line, before any work. Raises CommandError."""
    output = getattr(arguments, "output", None)
    if output is None or output == "-":
        return
    read: list[str] = []
    for name, value in vars(arguments).items():
        if name not in ("output", "program"):  # what a program reads is its own affair
            read += [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
    try:
        check_output(Path(output), read, folder_is_fine=True)  # a format may be a folder of files; sinks look at that
    except OutputError as error:
        raise CommandError(str(error)) from None


def write_file(profile: Profile, output: str, *, force: bool = False) -> None:
    """Make the profile `output`. Raises CommandError."""
    from leadline.profiles import ProfileFileError, write_profile

    if output == "-":
        raise CommandError("A profile cannot be written to standard output; name a file with -o NAME.leadline.")
    try:
        write_profile(output, profile, force=force)
    except ProfileFileError as error:
        raise CommandError(str(error)) from error


def write_result(data: str | bytes, output: str | None, *, force: bool = False) -> None:
    """Write `data` to the file `output`, or to stdout where `output` is None or "-"; raises CommandError when it
    cannot. See `sink_for`. A file takes all of a text, a terminal what its encoding has.
    """
    if isinstance(data, str) and data[: len(_PAGE)].lower() == _PAGE:
        data = data.encode("utf-8", "backslashreplace")  # which the page says of itself
    if isinstance(data, str) and output in (None, "-"):
        from leadline.report.encoding import encodable

        sys.stdout.write(encodable(harmless(data, colours=sys.stdout.isatty()), sys.stdout))
        return
    with sink_for(output, force=force) as sink:
        sink.write(data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data)


@contextlib.contextmanager
def sink_for(output: str | None, *, folder: bool = False, force: bool = False) -> Iterator[Sink]:
    """Where a result goes: the file or `folder` called `output`, or stdout where it is None or "-".

    It is written beside its final name and renamed, so that a full disk never leaves half a result under that name.
    Raises CommandError when it cannot be written.
    """
    from leadline.convert.sinks import FileSink, FolderSink, StreamSink

    if output is None or output == "-":
        with StreamSink(sys.stdout.buffer) as sink:
            yield sink
        return
    try:
        with FolderSink(Path(output)) if folder else FileSink(Path(output), force=force) as sink:
            yield sink
    except OutputError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(f"Cannot write {output}: {reason}; choose another place with -o.") from error


def port(text: str) -> int:
    """The type of an option that takes a port."""
    value = int(text) if text.isdigit() else -1
    if not 0 <= value < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; give 0 to 65535")
    return value
