"""Imported by each program of the attack suite: what the program has of descriptors and threads when it begins and when
it ends, as lines of a file beside its working directory. It holds what it calls, since programs replace that."""

import atexit
import fcntl
import os
import re
import threading
import time
from pathlib import Path

_SEEN = f"{Path.cwd()}.seen"
_CALLS = (
    os.open,
    os.close,
    os.write,
    os.listdir,
    os.readlink,
    fcntl.fcntl,
    os.getpid,
    threading.enumerate,
    time.monotonic,
)
_OWN, _FILES = os.getpid(), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_PATH = Path
_LEADLINES = "leadline"  # as the names of its threads begin


def tell(when: str) -> None:
    """One line of what is to be as it is bare, and one of how many descriptors there are."""
    open_, close, write, listdir, readlink, fcntl_, getpid, enumerate_, monotonic = _CALLS
    try:
        names = sorted(one.name for one in enumerate_())
        until = monotonic() + 2
        while True:  # a thread that was joined may be there for a moment
            threads = 0
            for task in listdir("/proc/self/task"):
                try:
                    threads += not _PATH(f"/proc/self/task/{task}/comm").read_text().startswith(_LEADLINES)
                except OSError:  # it has ended
                    continue
            if threads <= len(names) or monotonic() > until:
                break
        descriptors = 0
        inherited = []
        for number in listdir("/proc/self/fd"):
            try:
                passed_on = not fcntl_(int(number), fcntl.F_GETFD) & fcntl.FD_CLOEXEC
                descriptors += 1
                if passed_on:
                    inherited.append(re.sub(r"\d+", "N", readlink(f"/proc/self/fd/{number}")))
            except OSError:  # that of the list itself
                continue
        who = "program" if getpid() == _OWN else "child"
        file = open_(_SEEN, _FILES, 0o666)
        line = f"{who} {when} with {names}, {threads} threads of the system, and passes on {sorted(inherited)}\n"
        write(file, f"{line}{descriptors} descriptors of {threads} threads\n".encode())
        close(file)
    except Exception:  # the program has taken from itself what this needs, bare as well
        return


if not Path(_SEEN).exists():  # else it is a worker that imports the program, and that ends whenever its pool says so
    tell("begins")
    atexit.register(tell, "ends")
