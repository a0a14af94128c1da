"""The machine's limits, as far as they change what can be measured."""

from __future__ import annotations

import os
import platform
import resource
import sys
from pathlib import Path

from leadline.cli.checks import FAILED, LIMITED, OK, Finding

TITLE = "system"
_TESTED_MACHINES = ("x86_64", "aarch64")
_PERF_LIMIT = Path("/proc/sys/kernel/perf_event_paranoid")
_USER_SAMPLING = 2
"""Highest perf_event_paranoid that lets users sample their own processes (kernel: admin-guide/sysctl/kernel.rst)."""


def check() -> list[Finding]:
    """See `leadline.cli.checks`."""
    return [_platform(), _perf(), *_memory(), *_file_size()]


def _platform() -> Finding:
    text = f"{platform.system()} {platform.release()} on {platform.machine()}, {os.cpu_count()} CPUs"
    if sys.platform != "linux":
        return Finding("platform", FAILED, f"{text}: only Linux is supported", "measure on Linux")
    if platform.machine() not in _TESTED_MACHINES:
        return Finding("platform", LIMITED, f"{text}: not tested on this kind of processor")
    return Finding("platform", OK, text)


def _perf() -> Finding:
    """Nothing that leadline measures today needs perf; tools that sample besides it do."""
    try:
        level = int(_PERF_LIMIT.read_text())
    except (OSError, ValueError):
        return Finding("perf events", LIMITED, "the kernel has none; leadline does not need them")
    if level > _USER_SAMPLING:
        return Finding("perf events", LIMITED, f"closed to users (level {level}); leadline does not need them")
    return Finding("perf events", OK, f"open to users (level {level}); leadline does not need them")


def _memory() -> list[Finding]:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return []
    text = f"the address space of a process is limited to {soft >> 20:,} MiB"
    return [Finding("memory", LIMITED, text, "ulimit -v unlimited")]


def _file_size() -> list[Finding]:
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if soft == resource.RLIM_INFINITY:
        return []
    text = f"files may grow to {soft >> 20:,} MiB only, which a profile of a large program can pass"
    return [Finding("file size", LIMITED, text, "ulimit -f unlimited")]
