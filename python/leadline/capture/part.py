"""The folder `NAME.leadline.part/` from the writing side: what the processes of one session leave in it.

Everything lies in `NAME.leadline.part/ID/`, where ID is the session's random id. So whoever outlives a session finds no
place to write any more, even when another one has the same name by then, and no check can come too late.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass, replace
from leadline._package import SEGMENT_SUFFIX, SESSION_FILE, is_session_id, read_session, write_json
from leadline.capture.identity import ProcessIdentity
from leadline.capture.records import ProcessRecord, SessionRecord

ROOT_SUFFIX = ".root"
TEMPORARY_PREFIX = ".leadline-"
"""Part directories before they have their name and after they have lost it: PREFIX IDENTITY-ID."""


@dataclass(frozen=True)
class PartDirectory:
    """Where a session's processes leave their segments, and the file that becomes of them."""

    directory: Path
    session_id: str
    output: Path

    @classmethod
    def join(cls, folder: Path, output: Path) -> PartDirectory | None:
        """The part directory of the session that keeps its files in `folder`; None when that has ended."""
        if not is_session_id(folder.name) or not folder.is_dir():
            return None
        return cls(folder.parent, folder.name, output)

    @property
    def folder(self) -> Path:
        """Where this session's files are, and no other's."""
        return self.directory / self.session_id

    @property
    def exists(self) -> bool:
        """False once the file has been made: whoever is still running has nobody to report to."""
        return self.folder.is_dir()

    def segment(self, stem: str) -> Path:
        """Where the process `stem` writes its segment."""
        return self.folder / f"{stem}{SEGMENT_SUFFIX}"

    def window(self, identity: ProcessIdentity) -> Path:
        """Where a process shows its children when its trace window is open."""
        return self.folder / f"{identity}.window"

    def write_record(self, stem: str, record: ProcessRecord) -> None:
        """Replace the side file of a process; raises OSError."""
        write_json(self.folder / f"{stem}.json", record.to_json())

    def claim(self, what: str) -> bool:
        """True for exactly one process in the session, and for whatever programs it becomes by exec."""
        path = self.folder / f"{what}.claimed"
        me = str(ProcessIdentity.here())
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            try:
                return path.read_text(encoding="ascii") == me
            except (OSError, UnicodeDecodeError):
                return False
        except OSError:
            return False
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(me)
        return True

    # ---------------------------------------------------------------- roots: whoever is last of them makes the file

    def root(self, identity: ProcessIdentity) -> Path:
        """Says that a process is among those of which the last makes the file."""
        return self.folder / f"{identity}{ROOT_SUFFIX}"

    def is_root(self) -> bool:
        """Whether this process is one. Another program that it became by exec is one still."""
        return self.root(ProcessIdentity.here()).exists()

    def roots(self) -> list[ProcessIdentity]:
        """All that have not left; raises OSError."""
        names = [path.name for path in self.folder.iterdir() if path.name.endswith(ROOT_SUFFIX)]
        parsed = [ProcessIdentity.parse(name.removesuffix(ROOT_SUFFIX)) for name in names]
        return [identity for identity in parsed if identity is not None]

    def beat(self) -> None:
        """Show whoever cannot see this process (on other machines, in other containers) that it lives."""
        try:
            os.utime(self.root(ProcessIdentity.here()))
        except OSError:
            return  # the folder is gone: the end of the session will say so

    # ---------------------------------------------------------------- the session as a whole

    def session(self) -> SessionRecord | None:
        """`session.json`; None where it is missing or damaged."""
        return SessionRecord.from_json(read_session(self.directory))

    def write_session(self, record: SessionRecord) -> None:
        """Replace `session.json`; raises OSError."""
        write_json(self.folder / SESSION_FILE, record.to_json())

    def note_observed(self, observed: list[dict[str, Any]], growth: list[dict[str, Any]]) -> None:
        """Note in `session.json` what was seen of the program's processes from outside. Raises OSError."""
        record = self.session()
        if record is not None and (observed or growth):
            self.write_session(replace(record, observed=observed, growth=growth))

    def end_session(self, exit_status: dict[str, Any] | None) -> None:
        """Note in `session.json` when the program ended and how; from now on nobody can join. Raises OSError."""
        record = self.session()
        if record is not None:
            self.write_session(replace(record, ended_at_ns=time.time_ns(), exit=exit_status))

    def remove(self) -> None:
        """Delete the directory: it loses its name at once, whatever may disturb the rest."""
        import shutil

        if not self.exists:
            return
        temporary = temporary_path(self.directory.parent, self.session_id)
        try:
            self.directory.rename(temporary)
        except OSError:
            temporary = self.directory
        shutil.rmtree(temporary, ignore_errors=True)


def temporary_path(folder: Path, session_id: str) -> Path:
    """A name for a part directory of this process that nobody takes for a session."""
    return folder / f"{TEMPORARY_PREFIX}{ProcessIdentity.here()}-{session_id}"
