"""Where all threads of a process stand, from outside: asked of everything that can tell, each within a limit.

In this order, cheapest first: the kernel's own words of every thread, Python's faulthandler by a signal (sitecustomize
of the carried folder registers it), pystack for native frames, Leadline's own `dump --native`, and a debugger.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

FOLDER_VARIABLE = "ROUND_STACKS"
"""Environment: the folder into which a process writes its Python stacks when it gets SIGNAL."""
SIGNAL = signal.SIGUSR2
_NOTHING = subprocess.DEVNULL
_MOST_TEXT = 60_000
_ALL_S = 25.0
_SIGNAL_S = 1.0


def processes(group: int) -> list[int]:
    """All of a process group, oldest first."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                words = (path / "stat").read_text().rpartition(") ")[2].split()
                if int(words[2]) == group and words[0] != "Z":
                    found.append(int(path.name))
    return sorted(found)


def said_by_kernel(pid: int) -> str:
    """State, system call and place in the kernel of each thread."""
    lines = []
    for task in sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda path: int(path.name)):
        words = []
        for name in ("comm", "wchan", "syscall"):
            with contextlib.suppress(OSError):
                words.append((task / name).read_text().strip())
        with contextlib.suppress(OSError):
            words.insert(1, (task / "stat").read_text().rpartition(") ")[2][:1])
        lines.append(f"thread {task.name}: {' | '.join(words)}")
    return "\n".join(lines)


def said_by_python(pid: int) -> str:
    """What faulthandler writes; nothing where the process did not register it."""
    folder = os.environ.get(FOLDER_VARIABLE)
    path = Path(folder or "", f"{pid}.txt")
    if not folder or not path.exists():
        return "no faulthandler in this process"
    os.kill(pid, SIGNAL)
    deadline = time.monotonic() + _SIGNAL_S
    while path.stat().st_size == 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    return path.read_text(errors="replace")


def said_by(command: list[str], limit_s: float) -> str:
    """Its output, or why there is none."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=limit_s, stdin=_NOTHING
        )
    except subprocess.TimeoutExpired as error:
        out = error.stdout.decode("utf-8", "replace") if isinstance(error.stdout, bytes) else str(error.stdout or "")
        return f"{out}\n(no more within {limit_s:.0f} s)"
    except OSError as error:
        return f"({error})"
    return done.stdout + (f"\n(status {done.returncode}) {done.stderr[-1500:]}" if done.returncode else "")


def debugger() -> str:
    return next((name for name in ("cuda-gdb", "gdb") if shutil.which(name)), "")


def stacks(group: int, thorough: bool, limit_s: float = 20) -> str:
    """Of every process of the group, the last that was started first; a debugger, which is slow to attach, where
    `thorough`. What takes too long in all leaves those who wait for a child with what is cheap."""
    parts = []
    until = time.monotonic() + _ALL_S
    for pid in reversed(processes(group)):
        name = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
        parts.append(f"=== process {pid}: {name}")
        with contextlib.suppress(OSError):  # it may end meanwhile
            parts += ["--- kernel", said_by_kernel(pid), "--- Python", said_by_python(pid)]
            if time.monotonic() > until:
                continue
            reader = [sys.executable, "-m", "pystack", "remote", str(pid), "--native-all"]
            parts += ["--- pystack", said_by(reader, limit_s)]
            if thorough:
                dump = [sys.executable, "-m", "leadline", "dump", "--native", "--all", str(pid)]
                parts += ["--- leadline dump --native", said_by(dump, 10)]
                if tool := debugger():
                    command = [tool, "-batch", "-nx", "-ex", "set pagination off", "-p", str(pid), "-ex",
                               "thread apply all bt 40"]  # fmt: skip
                    parts += [f"--- {tool}", said_by(command, limit_s)]
    return "\n".join(part if len(part) < _MOST_TEXT else part[:_MOST_TEXT] + "\n(cut)" for part in parts) + "\n"
