"""Processes of the same Python that a process started and that an attach to it does not measure: a server's engine."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
MOST_NAMED = 4


def started_by(pid: int) -> list[tuple[int, str]]:
    """Children and theirs, (pid, title), oldest first; helpers of multiprocessing are none."""
    parents: dict[int, int] = {}
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            parents[int(one.name)] = int(one.joinpath("stat").read_text().rpartition(")")[2].split()[1])
    found = []
    for child in sorted(parents):
        above = child
        while above in parents and above != pid:
            above = parents[above]
        if above == pid and child != pid and _same_python(child, pid) and (title := _title(child)):
            found.append((child, title))
    return found


def sentence(pid: int) -> str:
    """What to attach to beside it; empty where it has started nothing of the kind."""
    others = started_by(pid)
    if not others:
        return ""
    named = ", ".join(f"{child} ({title})" for child, title in others[:MOST_NAMED])
    more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    what = "processes that it started are" if len(others) > 1 else "a process that it started is"
    return f"{what} not measured: {named}{more}; attach to the one that does the work"


def _same_python(child: int, pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{child}/exe").readlink() == Path(f"/proc/{pid}/exe").readlink()
    return False


def _title(pid: int) -> str:
    """The command's first words; empty for a helper of multiprocessing."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        if any(name in words for name in _HELPERS):
            return ""
        return words if len(words) <= 60 else f"{words[:59]}…"
    return ""
