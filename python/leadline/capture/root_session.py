"""A session that this process begins and ends as one of its roots. Whom a supervisor measures loads nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leadline.capture.claim import claim, leave
from leadline.capture.config import Options
from leadline.capture.messages import say
from leadline.capture.native import load_native
from leadline.capture.records import StartedBy
from leadline.capture.session import Session


def start_session(output: Path, argv: Sequence[str], options: Options, started_by: StartedBy) -> Session:
    """Make a part directory, or join that of this process's job, and start measuring as a root of the session; raises
    ProfileError."""
    load_native()  # before anything appears on disk
    claimed = claim(output, argv, options, started_by)
    for sentence in claimed.sentences:
        say(sentence)
    session = Session(claimed.part, options, owner=True, inner=started_by is StartedBy.PROGRAM)
    try:
        session.start()
    except BaseException:  # nothing has been measured: it goes on where others have joined it, else it is taken away
        if leave(claimed.part, None):
            claimed.part.remove()
        raise
    return session
