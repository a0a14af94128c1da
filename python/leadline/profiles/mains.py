"""Which thread of a process is the one that it began with."""

from __future__ import annotations

from leadline.profiles.tables import Tables


def main_threads(tables: Tables) -> dict[int, int]:
    """By row of a thread: of how many processes it is the main thread. Of a process that the table does not tell of (as
    in files of releases before it), it is the thread whose number is the process's."""
    table, threads = tables["main_threads"], tables["threads"]
    process, tid = threads["process"].tolist(), threads["tid"].tolist()
    found: dict[int, int] = dict(zip(table["thread"].tolist(), table["count"].tolist(), strict=True))
    told = {process[row] for row in found}
    pids = tables["processes"]["pid"].tolist()
    for row, (owner, number) in enumerate(zip(process, tid, strict=True)):
        if owner not in told and number == pids[owner] and number:
            found[row] = 1
    return found
