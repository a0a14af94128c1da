"""Starts one program in a process of its own under one tool; the checks and the cost table are made of such runs.

With LEADLINE_BENCH_FAKES set (a folder with the fake vendor libraries) the programs of fake_programs.py run in place of
the real ones: everything around the GPU is rehearsed on a machine without one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

FAKES_VARIABLE = "LEADLINE_BENCH_FAKES"


@dataclass(frozen=True)
class Run:
    """What a program left: the tool's file, and the facts that it printed last."""

    output: Path
    facts: dict[str, Any]


def rehearsing() -> bool:
    """Whether the GPU is a fake one."""
    return bool(os.environ.get(FAKES_VARIABLE))


def programs() -> str:
    """The module that holds the programs."""
    return "fake_programs" if rehearsing() else "gpu_programs"


def run(
    work: Path,
    program: str,
    tool: str,
    name: str = "",
    timeout_s: float = 80,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Run:
    """Run `program` under `tool` (none, leadline, torch); raises RuntimeError when it failed, with its last words.

    No new session: whoever started us can end all of it as one process group.
    """
    suffix = {"leadline": "leadline", "torch": "json"}.get(tool, "none")
    output = work / f"{name or program}-{tool}.{suffix}"
    command = [sys.executable, "-m", programs(), program, tool, str(output)]
    try:
        done = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=timeout_s
        )
    except subprocess.TimeoutExpired as error:
        said = error.stderr.decode("utf-8", "replace") if isinstance(error.stderr, bytes) else str(error.stderr or "")
        raise RuntimeError(f"{program} under {tool} did not end within {timeout_s:.0f} s:\n{said[-3000:]}") from None
    if done.returncode != 0:
        last = f"{done.stdout[-1500:]}{done.stderr[-4000:]}"
        raise RuntimeError(f"{program} under {tool} ended with status {done.returncode}:\n{last}")
    return Run(output, last_object(done.stdout))


def last_object(printed: str) -> dict[str, Any]:
    """The JSON object on the last line, or nothing."""
    try:
        found = json.loads(printed.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {}
    return found if isinstance(found, dict) else {}
