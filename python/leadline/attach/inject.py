"""Has another process run a line of Python.

The main thread is held for a moment and given a pending call (`Py_AddPendingCall`), which the interpreter makes when
it next looks. A main thread that waits for a lock is woken for that; one that sleeps or waits for input gets a thread
of its own beside it, which runs the line. Where it may not be held, from 3.14 on, `sys.remote_exec`. That is second
because the main thread alone answers it, when it next runs Python: one that waits comes to it with the next signal,
and a Ctrl-C that arrives while it does is lost.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from leadline.attach.symbol import symbol_address
from leadline.attach.target import AttachError, Target
from leadline.attach.traced import TracedThread

_PAGE = 4096
_READ_WRITE, _PRIVATE_ANONYMOUS = 3, 0x22
_RTLD_NOW = 2
_PENDING_S = 1.0
_BUSY_S = 10.0


def run_python(target: Target, line: str, answered: Callable[[float], bool]) -> None:
    """`line` must do nothing when it is run twice. `answered(seconds)`: whether its effect shows within that time.

    Raises AttachError where the process refuses or does not come to it.
    """
    target.runtime()  # the same version of Python, or a sentence
    tracer = next((one.split()[1] for one in target.text("status").splitlines() if one.startswith("TracerPid:")), "0")
    if tracer != "0":
        raise AttachError(f"Process {target.pid} is held by a debugger already (process {tracer}).")
    remote_exec = getattr(sys, "remote_exec", None)
    try:
        if _by_pending_call(target, line, answered):
            return
    except (OSError, AttachError) as error:
        if remote_exec is None:
            if isinstance(error, OSError):
                raise AttachError(target.refusal(error)) from error
            raise
        if _by_file(target, line, remote_exec, answered):
            return
    raise AttachError(
        f"The main thread of process {target.pid} does not come back to Python, so nothing can be begun in it; "
        f"`leadline dump {target.pid}` shows where it is."
    )


def _by_file(
    target: Target, line: str, remote_exec: Callable[[int, str], None], answered: Callable[[float], bool]
) -> bool:
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as script:
        once = f"import os\nos.unlink({script.name!r})\n"
        script.write(once + line)
    file = Path(script.name)
    try:
        remote_exec(target.pid, script.name)
    except (OSError, RuntimeError) as error:
        file.unlink(missing_ok=True)
        sentence = target.refusal(error) if isinstance(error, OSError) else f"Process {target.pid}: {error}."
        raise AttachError(sentence) from error
    good = answered(_BUSY_S)
    if file.exists():
        # The main thread comes to it some time, maybe in an hour, and must not begin to measure then.
        file.write_text(once)
    return good


def _by_pending_call(target: Target, line: str, answered: Callable[[float], bool]) -> bool:
    add = _function(target, "Py_AddPendingCall")
    run = _function(target, "PyRun_SimpleString")
    with TracedThread(target.pid, target.pid) as thread:
        text = _text_in(target, thread, line)
        if thread.call(add, run, text) & 0xFFFFFFFF:
            raise AttachError(f"Process {target.pid} is too busy; try again.")
        thread.interrupt_lock()
    if answered(_PENDING_S):
        return True
    deadline = time.monotonic() + 3 * _PENDING_S
    while time.monotonic() < deadline:
        with TracedThread(target.pid, target.pid) as thread:
            if thread.waits_quietly:
                _in_thread_beside(target, thread, text)
                break
            thread.interrupt_lock()
        if answered(0.2):
            return True
    return answered(2 * _PENDING_S)


def _text_in(target: Target, thread: TracedThread, line: str) -> int:
    """Address of `line` in the process, in memory that stays."""
    data = line.encode() + b"\0"
    size = -(-len(data) // _PAGE) * _PAGE
    address = thread.call(_function(target, "mmap"), 0, size, _READ_WRITE, _PRIVATE_ANONYMOUS, 2**64 - 1, 0)
    if address >= 2**64 - _PAGE:
        raise AttachError(f"Process {target.pid} has no memory left.")
    thread.write(address, data)
    return address


def _in_thread_beside(target: Target, thread: TracedThread, text: int) -> None:
    """The native module is loaded into the process, and begins a thread that waits for the interpreter's lock."""
    from leadline import _native

    path = _text_in(target, thread, str(Path(str(_native.__file__)).resolve()))
    module = thread.call(_function(target, "dlopen"), path, _RTLD_NOW)
    if not module:
        raise AttachError(f"Process {target.pid} cannot load {_native.__file__} (another file system, or its rules).")
    name = _text_in(target, thread, "leadline_run_soon")
    function = thread.call(_function(target, "dlsym"), module, name)
    if function:
        thread.call(function, text)


def _function(target: Target, name: str) -> int:
    """Address of a function of the interpreter or of the C library. Raises AttachError where there is none."""
    seen: set[str] = set()
    for mapping in target.mappings:
        file = mapping.path.rpartition("/")[2]
        if mapping.path in seen or mapping.offset != 0:
            continue
        if not file.startswith(("libc.so", "libc-", "libdl", "libpython", "python", "ld-musl")):
            continue
        seen.add(mapping.path)
        address = symbol_address(target.file(mapping.path), name, mapping.begin)
        if address:
            return address
    raise AttachError(f"Process {target.pid} has no function {name}; its Python or C library is of an unknown kind.")
