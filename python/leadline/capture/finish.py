"""From the part directory to the one file, when a program or a session has ended.

Promise: the part directory is removed only after the file has its final name; otherwise the sentence says where the
parts are and how to get the file from them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from leadline._dataclass import dataclass
from leadline._package import MARKS, PackageError, Part, pack_single, read_part
from leadline.capture.config import VARIABLES
from leadline.capture.errors import ProfileError
from leadline.capture.identity import Life, ProcessIdentity
from leadline.capture.output import free_names, may_replace
from leadline.capture.part import PartDirectory

_MERGE = """
import sys
if sys.path[:1] == [""]:
    del sys.path[0]  # a numpy.py in the program's folder is not NumPy; PYTHONSAFEPATH begins with Python 3.11
from leadline.profiles.finish import main
sys.exit(main())
"""


@dataclass(frozen=True)
class Finished:
    """How it went."""

    path: Path | None
    """The file, or None when there is none."""
    sentence: str
    """What went wrong or is missing, for a person; empty when all went well."""


NOTHING_NEW = 3


def finish(part: PartDirectory, rest: Path | None = None) -> Finished:
    """Make the file and remove the part directory. Raises nothing for causes in the outside world.

    `rest`: the session has rolled its files (rolling.py), and this is the name for what came after the last.
    """
    output = part.output if rest is None else rest
    if not part.exists:
        return Finished(None, f"The profile was not written: {part.directory} was removed.")
    try:
        content = read_part(part.directory)
        if not content.processes:
            rolled = (part.folder / MARKS).exists()  # all have ended, and are in files that were made
            part.remove()
            if rolled:
                return Finished(None, "")
            return Finished(None, "Nothing was measured: the program started no Python that has leadline installed.")
        if not any(process.segment for process in content.processes):
            reasons = [str(process.record.get("not_measured", "")) for process in content.processes]
            part.remove()
            reason = next(filter(None, reasons), "No process lived long enough to write a segment.")
            return Finished(None, f"Nothing was measured. {reason}")
        if not may_replace(output):
            other = next(free_names(output))
            return Finished(
                None,
                f"Will not replace {output}: it is no longer a profile. What was measured is in {part.directory}; "
                f"`leadline recover {part.directory} -o {other}` makes the file.",
            )
        if content.single and rest is None:
            pack_single(content, output)
        elif not _merge(part, output, _still_running(content)):
            part.remove()
            return Finished(None, "")
    except (PackageError, ProfileError, OSError, MemoryError) as error:
        return Finished(None, f"{_sentence(error)} {_kept(part)}")
    part.remove()
    return Finished(output, _not_written(content))


def _still_running(content: Part) -> list[str]:
    """Stems of the processes that have not stopped and live; those of other machines count as ended."""
    found = []
    for process in content.processes:
        identity = ProcessIdentity.in_record(process.record)
        if not process.complete and identity is not None and identity.life() is Life.ALIVE:
            found.append(process.stem)
    return found


def _merge(part: PartDirectory, output: Path, running: list[str]) -> bool:
    """In a process of its own: NumPy stays out of the profiled one, and its failure costs only the file. False where
    files of this session hold all of it already."""
    import subprocess

    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    command = [sys.executable, "-c", _MERGE, str(part.directory), str(output), *running]
    result = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if result.returncode == NOTHING_NEW:
        return False
    if result.returncode != 0 or not output.exists():
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit code {result.returncode}"
        raise PackageError(f"The processes could not be merged into {output}: {reason}")
    return True


def _not_written(content: Part) -> str:
    """The first complaint about a segment that could not be written; what came after the one before is missing."""
    sentences = (str(process.record.get("not_written") or "") for process in content.processes)
    sentence = next(filter(None, sentences), "")
    return f"The end of a process is missing. {sentence}" if sentence else ""


def _kept(part: PartDirectory) -> str:
    return f"What was measured is in {part.directory}; `leadline recover {part.directory}` makes the file."


def _sentence(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    return text if text.endswith(".") else f"{text}."
