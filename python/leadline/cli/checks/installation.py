"""Is leadline itself whole: the native part, and the line in site-packages that starts it in child processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from leadline.cli.checks import FAILED, OK, Finding

TITLE = "installation"
_REINSTALL = f"{sys.executable} -m pip install --force-reinstall leadline"


def check() -> list[Finding]:
    """See `leadline.cli.checks`."""
    from leadline.capture.errors import ProfileError
    from leadline.capture.native import load_native

    try:
        native = load_native()
    except ProfileError as error:
        return [Finding("native", FAILED, str(error), _REINSTALL)]
    path = getattr(native, "__file__", "")
    return [Finding("native", OK, f"loaded from {path}"), _autostart()]


def _autostart() -> Finding:
    """Whether a Python process that finds LEADLINE in its environment measures itself."""
    from leadline.capture.config import OUTPUT_VARIABLE, VARIABLES

    with tempfile.TemporaryDirectory(prefix="leadline-doctor-") as folder:
        output = Path(folder) / "probe.leadline"
        environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        environment[OUTPUT_VARIABLE] = str(output)
        done = subprocess.run(
            [sys.executable, "-c", "pass"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if output.exists():
            return Finding("autostart", OK, "processes with LEADLINE in their environment measure themselves")
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    reason = said[-1] if said else "leadline.pth is not in this Python's site-packages"
    return Finding(
        "autostart", FAILED, f"a process with LEADLINE in its environment was not measured: {reason}", _REINSTALL
    )
