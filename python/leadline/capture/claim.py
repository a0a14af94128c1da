"""Beginning and leaving a session: one of many processes makes it, the others join, the last one makes the file.

Promises: a session appears whole, by the rename of a folder that holds its `session.json` already; killed between any
two steps, a process leaves nothing that stops or changes the next; what another session has left, finished or not, is
never written to and never deleted. Two sessions never share a name: the later one takes NAME-1.

What makes it safe is the rename, which every file system does in one step. The lock around it serves those who find a
dead session: without it (file systems that have none) two of them may both try to move it aside, and the one that
moved a living session puts it back.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from leadline._dataclass import dataclass
from leadline._package import PART_FORMAT, SEGMENT_SUFFIX, is_session_id, session_folder
from leadline.capture.config import Options
from leadline.capture.errors import ProfileError
from leadline.capture.identity import Life, ProcessIdentity, new_session_id
from leadline.capture.job import job_key
from leadline.capture.output import absolute, check_output, free_names, part_path
from leadline.capture.part import TEMPORARY_PREFIX, PartDirectory, temporary_path
from leadline.capture.records import SessionRecord, StartedBy

LOCK_FILE = ".leadline.lock"
_LOCK_WAIT_S = 5.0
"""Longer than any honest holder needs; one that was stopped by a debugger must not stop a training run."""
_SILENT_S = 120.0
"""A process that cannot be seen is given up when it has written nothing for so long, and for ten flush intervals."""
_FORGOTTEN_S = 86_400.0
_TRIES = 100


@dataclass(frozen=True)
class Claim:
    """What `claim` has got."""

    part: PartDirectory
    joined: bool
    """Another process of the same job had begun the session."""
    sentences: tuple[str, ...]
    """What the user should know: a name that was not free, an unfinished measurement that was moved."""


def claim(output: Path, argv: Sequence[str], options: Options, started_by: StartedBy) -> Claim:
    """A session for this process, which becomes one of its roots: a new one, or the one that its job has already.

    Raises ProfileError when the file could not be written, as far as that can be known now.
    """
    output = absolute(output)
    check_output(output)
    sentences: list[str] = []
    wanted = output
    with folder_lock(output.parent):
        clear_leftovers(output.parent)
        for _ in range(_TRIES):
            found = _find(output)
            if found is not None and found.lives():
                if started_by is StartedBy.ENVIRONMENT and (part := found.join()) is not None:
                    return Claim(part, True, tuple(sentences))
                output = next(free_names(wanted))
                sentences = [f"{found} is writing {wanted}, so this measurement goes to {output}.", *sentences[1:]]
                continue
            if found is not None and not found.empty:
                aside = found.move_aside()
                if aside is not None:
                    sentences.append(
                        f"an unfinished measurement was moved to {aside}; `leadline recover {aside}` makes its file."
                    )
                continue
            made = _make(output, argv, options, started_by)
            if made is not None:
                return Claim(made, False, tuple(sentences))
    raise ProfileError(f"Cannot write {wanted}: other measurements begin there all the time; choose another file.")


def leave(part: PartDirectory, exit_status: dict[str, object] | None) -> bool:
    """This root has ended. True when it was the last, and so has to make the file; nobody can join any more then."""
    me = ProcessIdentity.here()
    with contextlib.suppress(OSError), folder_lock(part.directory.parent):
        found = _Found(part)
        if any(found.is_alive(root) for root in part.roots() if root != me):
            part.root(me).unlink(missing_ok=True)
            return False
        part.end_session(exit_status)
    return True


@dataclass(frozen=True)
class _Found:
    """A part directory that has the wanted name. Its session id is empty when it holds no session of this format."""

    part: PartDirectory

    def __str__(self) -> str:
        session = self.part.session()
        where = f" on {session.hostname}" if session is not None and session.hostname != os.uname().nodename else ""
        return f"another measurement{where}"

    @property
    def empty(self) -> bool:
        """Whether it holds nothing, so that a new part directory may take its place."""
        try:
            return not any(self.part.directory.iterdir())
        except FileNotFoundError:
            return True

    def lives(self) -> bool:
        """Whether one of its roots runs, or may run where it cannot be seen."""
        try:
            return bool(self.part.session_id) and any(self.is_alive(root) for root in self.part.roots())
        except FileNotFoundError:
            return False  # it has just made its file

    def is_alive(self, root: ProcessIdentity) -> bool:
        life = root.life()
        return life is Life.ALIVE or (life is Life.UNKNOWN and self._silence_s(root) < self._patience_s())

    def _silence_s(self, root: ProcessIdentity) -> float:
        """How long a root has written nothing, by the clock of the file system, which all machines share."""
        folder = self.part.folder
        segments = folder.glob(f"{root.pid}-*-{root.machine}.{root.namespace}{SEGMENT_SUFFIX}")
        written = [path.stat().st_mtime for path in (self.part.root(root), *segments)]
        return _file_system_time(self.part.directory.parent) - max(written)

    def _patience_s(self) -> float:
        session = self.part.session()
        return max(_SILENT_S, 10 * session.flush_interval_s if session is not None else 0)

    def join(self) -> PartDirectory | None:
        """Become a root of this session, where it is this process's own job's."""
        session = self.part.session()
        if session is None or session.started_by != StartedBy.ENVIRONMENT.value or session.ended_at_ns is not None:
            return None
        here = ProcessIdentity.here()
        same_machine = any(root.machine == here.machine for root in self.part.roots())
        if session.job != job_key() or not (session.job or same_machine):
            return None
        mark = self.part.root(here)
        try:
            mark.touch()
            again = self.part.session()  # it may have ended meanwhile, where there is no lock
        except OSError:
            return None
        if again is None or again.ended_at_ns is not None:
            mark.unlink(missing_ok=True)
            return None
        return self.part

    def move_aside(self) -> Path | None:
        """Make the name free; returns where the folder is now, or None when somebody else was faster."""
        aside = part_path(next(free_names(self.part.output)))
        try:
            self.part.directory.rename(aside)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ProfileError(
                f"Cannot move the unfinished {self.part.directory} aside: {error.strerror}; choose another file."
            ) from None
        moved = _look(aside, self.part.output)
        if moved is not None and moved.part.session_id != self.part.session_id:
            with contextlib.suppress(OSError):  # it lives: back to its place
                aside.rename(self.part.directory)
            return None
        return aside


def _find(output: Path) -> _Found | None:
    try:
        return _look(part_path(output), output)
    except NotADirectoryError:
        raise ProfileError(f"Cannot write {output}: {part_path(output)} is in the way; choose another file.") from None
    except OSError as error:
        raise ProfileError(f"Cannot read {part_path(output)}: {error.strerror}; choose another file.") from None


def _look(directory: Path, output: Path) -> _Found | None:
    try:
        folder = session_folder(directory)
    except FileNotFoundError:
        return None
    return _Found(PartDirectory(directory, folder.name if is_session_id(folder.name) else "", output))


def _make(output: Path, argv: Sequence[str], options: Options, started_by: StartedBy) -> PartDirectory | None:
    """A new part directory with this process as its root; None when another process has made one meanwhile."""
    session_id = new_session_id()
    temporary = temporary_path(output.parent, session_id)
    part = PartDirectory(temporary, session_id, output)
    record = SessionRecord(
        format=PART_FORMAT,
        id=session_id,
        output=str(output),
        argv=list(argv),
        started_at_ns=time.time_ns(),
        asked=options.asked(),
        started_by=started_by.value,
        job=job_key() if started_by is StartedBy.ENVIRONMENT else "",
        hostname=os.uname().nodename,
        flush_interval_s=options.flush_interval_s,
    )
    try:
        # what a program does is its owner's affair
        temporary.mkdir(mode=0o700)
        part.folder.mkdir(mode=0o700, parents=True)
        part.write_session(record)
        part.root(ProcessIdentity.here()).touch()
        temporary.rename(part_path(output))
    except OSError as error:
        import shutil

        shutil.rmtree(temporary, ignore_errors=True)
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return None
        raise ProfileError(f"Cannot write to {output.parent}: {error.strerror}; choose another file.") from None
    return PartDirectory(part_path(output), session_id, output)


def clear_leftovers(folder: Path) -> None:
    """Delete what processes that were killed while they began or ended a session have left under no name."""
    try:
        names = [path.name for path in folder.iterdir() if path.name.startswith(TEMPORARY_PREFIX)]
    except OSError:
        return  # a folder may be writable and not readable
    for name in names:
        identity = ProcessIdentity.parse(name.removeprefix(TEMPORARY_PREFIX).partition("-")[0])
        if identity is None:
            continue
        life = identity.life()
        with contextlib.suppress(OSError):
            old = _file_system_time(folder) - (folder / name).stat().st_mtime > _FORGOTTEN_S
            if life is Life.GONE or (life is Life.UNKNOWN and old):
                _delete(folder / name)


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Keep others in this folder from claiming and leaving, on file systems that have locks. Ends with the process."""
    path = folder / LOCK_FILE
    descriptor = _lock(path)
    try:
        yield
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                path.unlink()
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # a forked child may have the descriptor too
            os.close(descriptor)


def _lock(path: Path) -> int | None:
    """A descriptor that holds the lock; None where there are no locks, or somebody holds it for ever."""
    deadline = time.monotonic() + _LOCK_WAIT_S
    while time.monotonic() < deadline:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, path):
                return descriptor
        except BlockingIOError:
            time.sleep(0.002)
        except OSError:
            os.close(descriptor)
            return None
        os.close(descriptor)  # held by another, or deleted by its last holder
    return None


def _delete(path: Path) -> None:
    if path.is_dir():
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _file_system_time(folder: Path) -> float:
    """The time that the file system gives to a new file now."""
    probe = folder / f"{TEMPORARY_PREFIX}{ProcessIdentity.here()}-clock"
    try:
        probe.touch()
        return probe.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)
