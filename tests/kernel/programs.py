"""Programs that wait for a known reason for a known time, and what starts them with fewer rights."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from leadline.profiles import Profile, open_profile

WAITS = """
import os, subprocess, sys, threading, time
import leadline
cpu = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})
def release(lock):
    time.sleep(0.05)
    lock.release()
with leadline.region("sleeps"):
    time.sleep(0.05)
lock = threading.Lock()
lock.acquire()
waker = threading.Thread(target=release, args=(lock,), name="the_waker")
with leadline.region("locks"):
    waker.start()
    lock.acquire()
waker.join()
hog = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"])
with leadline.region("shares"):
    end = time.process_time() + 0.15
    while time.process_time() < end:
        pass
hog.kill()
hog.wait()
"""

# prctl(PR_SET_NO_NEW_PRIVS), then a filter of five instructions: perf_event_open (298 on x86-64) fails with EPERM
NO_PERF = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 298), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *one) for one in code))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Filter(len(code), ctypes.addressof(program)))) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""
_MOUNTED = Path("/sys/kernel/tracing/instances").is_dir()
"""By whoever traced here before; root may read it then without any right."""
_WITHOUT = ("unshare", "--mount", "sh", "-c", 'umount /sys/kernel/tracing; exec "$0" "$@"')
NO_RIGHTS = (*(_WITHOUT if _MOUNTED else ()), "setpriv", "--bounding-set=-all", "--inh-caps=-all")


def recorded(folder: Path, program: str, level: str, *before: str, seconds: str = "20") -> tuple[Profile, str]:
    """The profile of a program run with `--kernel`, and what was said on stderr."""
    script = folder / "program.py"
    script.write_text(program, encoding="utf-8")
    output = folder / "program.leadline"
    command = [
        *before,
        sys.executable,
        "-m",
        "leadline",
        "run",
        "--trace",
        f"seconds={seconds},wait=0",
        "--kernel",
        level,
    ]
    done = subprocess.run(
        [*command, "-q", "-o", str(output), str(script)], capture_output=True, text=True, timeout=120, check=False, cwd=folder
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return open_profile(output), done.stderr


def stretch(profile: Profile, region: str) -> tuple[int, int, int]:
    """(thread id, begin, end) of a region, on the clock of the kernel's events."""
    events = profile.events
    tree = profile.tree
    rows = [
        row
        for row, node in enumerate(events["node"].tolist())
        if tree.text("name", int(tree.frame_of[node])) == region and events["kind"][row] == 1
    ]
    assert len(rows) == 1, region
    begin = int(events["start_ns"][rows[0]])
    thread = profile.threads[int(events["thread"][rows[0]])]
    return thread.tid, begin, begin + int(events["duration_ns"][rows[0]])


def about(profile: Profile) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(profile.meta["kernel"]))
    return found
