"""`leadline run --roll 10min --keep 24h`: a file for every ten minutes of a program that goes on.

The processes know nothing of it. Their segments are whole and cumulative; at each mark the supervisor keeps a link to
the last one of each, and a process of its own writes what lies between two marks (`leadline.profiles.roll`). Promises:
a file appears whole under its name, or not at all; whoever is killed between any two steps loses nothing and counts
nothing twice, since a mark says which file it ends in, and `leadline recover` looks whether that is there. The
process that writes it may outlive everybody else: until it has ended a lock is held on the mark's `file`, for which
`recover` waits.

`NAME.leadline.part/ID/marks/NUMBER/` holds the segments of a mark and `file`, which names the file that ends in it and
the processes that went on.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from leadline._dataclass import dataclass
from leadline._output import TEMPORARY_ENDING
from leadline._package import (
    EVENTS_SUFFIX,
    FLIGHT_SUFFIX,
    MARK_FILE,
    MARK_MADE,
    MARKS,
    SEGMENT_SUFFIX,
    SESSION_FILE,
    PackageError,
    ProcessPart,
    read_part,
    write_json,
)
from leadline.capture.config import SUFFIX, VARIABLES
from leadline.capture.durations import is_duration, seconds
from leadline.capture.errors import ProfileError
from leadline.capture.finish import NOTHING_NEW, Finished, finish
from leadline.capture.identity import Life, ProcessIdentity
from leadline.capture.part import PartDirectory

_STAMP = r"\d{8}T\d{6}Z(?:-\d+)?"
_ROLL = """
import os, sys
if sys.path[:1] == [""]:
    del sys.path[0]  # as in finish.py
os.nice(5)
from leadline.profiles.roll import main
sys.exit(main())
"""
LOOK_S = 0.5
"""How often the supervisor looks at the clock."""


@dataclass(frozen=True)
class Keep:
    """Which files stay. 0: no limit."""

    age_s: float = 0
    files: int = 0

    @classmethod
    def parse(cls, text: str) -> Keep:
        """From `24h`, `100` (files) or `24h,100`; raises ProfileError."""
        age, files = 0.0, 0
        for one in filter(None, text.split(",")):
            if is_duration(one):
                age = seconds(one, "the age")
            elif one.isdecimal() and int(one) > 0:
                files = int(one)
            else:
                raise ProfileError(f"Cannot read --keep {text!r}; write an age, a number of files, or both: 24h,100.")
        return cls(age, files)


class Rolling:
    """The marks of a session that this supervisor has begun. Nothing here raises because of the outside world."""

    def __init__(self, part: PartDirectory, every_s: float, keep: Keep, tell: Callable[[str], None]) -> None:
        self._part = part
        self._every_s = every_s
        self._keep = keep
        self._tell = tell
        self._said: set[str] = set()
        self._number = 0
        self._from_s = self._began_s = time.time()
        self._due_s = time.monotonic() + every_s
        self._maker: subprocess.Popen[bytes] | None = None
        self._makes: Path | None = None
        self._written_s: dict[Path, float] = {}  # by a clock that nobody sets
        self.written: list[Path] = []
        """Files of this session that were made so far; older ones of them may have been removed again."""

    def beat(self) -> None:
        """Look at the clock: finish what is being made, or begin the next file."""
        if self._maker is not None:
            if self._maker.poll() is None:
                return  # a mark that is due waits for it
            self._made()
        if time.monotonic() >= self._due_s:
            self._due_s += self._every_s * max(1, int((time.monotonic() - self._due_s) // self._every_s) + 1)
            self._begin()

    def finish(self) -> Finished:
        """The program has ended: wait for the file that is being made, and make that of what came after it."""
        if self._maker is not None:
            self._maker.wait()
            self._made()
        finished = finish(self._part, self._name())
        last = finished.path or (self.written[-1] if self.written else None)
        if finished.path is not None:
            self._note(finished.path)
        self.remove_old(last)
        return Finished(last, finished.sentence)

    def sentence(self) -> str:
        """How many files there are, and what to do with them; empty for one."""
        if len(self.written) < 2:
            return ""
        pattern = self._part.output.with_name(f"{self._part.output.stem}_*{SUFFIX}")
        return f"{len(self.written)} files were made; `leadline merge '{pattern}' -o FILE` adds up those that are kept."

    def remove_old(self, newest: Path | None = None) -> None:
        """Keep to `Keep`; `newest` stays whatever its age."""
        folder, stem = self._part.output.parent, self._part.output.stem
        ours = re.compile(re.escape(stem) + "_" + _STAMP + re.escape(SUFFIX))
        left = re.compile(r"\." + re.escape(stem) + "_" + _STAMP + re.escape(SUFFIX) + TEMPORARY_ENDING)
        try:
            names = [path for path in folder.iterdir() if path.name.startswith((f"{stem}_", f".{stem}_"))]
        except OSError:
            return
        for path in names:
            if self._maker is None and left.fullmatch(path.name):  # of one that was killed
                path.unlink(missing_ok=True)
        files = sorted(
            (found for path in names if ours.fullmatch(path.name) and (found := self._age(path))),
        )
        for place, (age_s, _, path) in enumerate(files):
            old = self._keep.age_s and age_s > self._keep.age_s
            if path != newest and (old or (self._keep.files and place >= self._keep.files)):
                with contextlib.suppress(OSError):
                    path.unlink()

    # ---------------------------------------------------------------- inside

    def _note(self, path: Path) -> None:
        self.written.append(path)
        self._written_s[path] = time.monotonic()

    def _age(self, path: Path) -> tuple[float, str, Path] | None:
        """How long ago a file was made; files of sessions before are older than all of this one's, even where the clock
        was set back."""
        mine_s = self._written_s.get(path)
        if mine_s is not None:
            return time.monotonic() - mine_s, path.name, path
        longest_s = time.monotonic() - min(self._written_s.values(), default=time.monotonic())
        try:
            return max(time.time() - path.stat().st_mtime, longest_s), path.name, path
        except OSError:
            return None

    def _begin(self) -> None:
        number, makes = self._number + 1, self._name()
        try:
            mark, held = self._take(number, makes)
        except (OSError, PackageError) as error:
            self._complain(
                f"No file could be begun: {getattr(error, 'strerror', error)}; the next one will hold this time, too."
            )
            return
        began_s = time.time()
        environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        command = [sys.executable, "-c", _ROLL, str(self._part.directory), str(mark)]
        try:
            self._maker = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                start_new_session=True, pass_fds=held,
            )  # fmt: skip
        except OSError as error:
            shutil.rmtree(mark, ignore_errors=True)
            self._complain(f"{makes.name} could not be made: {error.strerror}; the next file will hold this time, too.")
            return
        finally:
            for descriptor in held:
                os.close(descriptor)  # the maker has its own, and with it the lock
        self._number, self._makes, self._began_s = number, makes, began_s

    def _made(self) -> None:
        maker, makes = self._maker, self._makes
        if maker is None or makes is None:
            return
        said = maker.stderr.read().decode("utf-8", "replace").strip().splitlines() if maker.stderr else []
        self._maker = None
        mark = self._marks / str(self._number)
        if maker.returncode == NOTHING_NEW:  # no process has written since: the next file holds this time, too
            shutil.rmtree(mark, ignore_errors=True)
            self._number -= 1
            return
        if maker.returncode != 0 or not makes.exists():
            shutil.rmtree(mark, ignore_errors=True)
            self._number -= 1
            reason = said[-1] if said else f"exit code {maker.returncode}"
            self._complain(f"{makes.name} was not made ({reason}); the next file will hold this time, too.")
            return
        with contextlib.suppress(OSError):
            (mark / MARK_MADE).touch()
        self._note(makes)
        self._from_s = self._began_s
        shutil.rmtree(self._marks / str(self._number - 1), ignore_errors=True)
        self._forget_ended(mark)
        self.remove_old(makes)

    def _take(self, number: int, makes: Path) -> tuple[Path, list[int]]:
        """Links to what every process has written last: its events first, then its segment (docs/file-format.md); and
        the descriptor that holds the mark's lock, from before anybody sees the mark."""
        mark, temporary = self._marks / str(number), self._marks / f".{number}"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        names = [path.name for path in self._part.folder.iterdir()]
        for suffix in (EVENTS_SUFFIX, SEGMENT_SUFFIX, FLIGHT_SUFFIX, ".json"):
            for name in names:
                if name.endswith(suffix):
                    with contextlib.suppress(FileNotFoundError):  # its process has just ended with it
                        _link(self._part.folder / name, temporary / name)
        going_on = [process.stem for process in read_part(temporary).processes if not _ended(process)]
        write_json(temporary / MARK_FILE, {"file": str(makes), "going_on": going_on})
        held = _locked(temporary / MARK_FILE)
        try:
            shutil.rmtree(mark, ignore_errors=True)
            temporary.rename(mark)
        except OSError:
            for descriptor in held:
                os.close(descriptor)
            raise
        return mark, held

    def _forget_ended(self, mark: Path) -> None:
        """A process that has ended, and is in a file, needs no place any more: loaders fork new ones for weeks."""
        with contextlib.suppress(Exception):
            for process in read_part(mark).processes:
                segment = self._part.segment(process.stem)
                if process.segment is None or not _ended(process):
                    continue
                if segment.exists() and not segment.samefile(process.segment):
                    continue  # it has written since
                for suffix in (SEGMENT_SUFFIX, EVENTS_SUFFIX, FLIGHT_SUFFIX, ".json"):
                    (self._part.folder / f"{process.stem}{suffix}").unlink(missing_ok=True)

    @property
    def _marks(self) -> Path:
        return self._part.folder / MARKS

    def _name(self) -> Path:
        """NAME_START.leadline, START being the second (UTC) in which its time begins."""
        output = self._part.output
        started = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._from_s))
        for number in range(1000):
            path = output.with_name(f"{output.stem}_{started}{f'-{number}' if number else ''}{SUFFIX}")
            if not path.exists():
                break
        return path

    def _complain(self, sentence: str) -> None:
        """Once for each kind of trouble: a full disk lasts."""
        kind = sentence.partition("(")[2] or sentence
        if kind not in self._said:
            self._said.add(kind)
            self._tell(sentence)


def _ended(process: ProcessPart) -> bool:
    """As far as can be seen from here; one on another machine goes on."""
    identity = ProcessIdentity.in_record(process.record)
    return identity is not None and identity.life() is Life.GONE


def _link(source: Path, target: Path) -> None:
    """A segment is replaced by a rename, so a link keeps what it is now."""
    if source.name == SESSION_FILE:
        shutil.copyfile(source, target)
        return
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        shutil.copyfile(source, target)


def _locked(path: Path) -> list[int]:
    """A descriptor that holds the file's lock; none on a file system that has no locks."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return []
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        os.close(descriptor)
        return []
    return [descriptor]
