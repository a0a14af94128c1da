"""Builds the extension for the tests of this folder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def built() -> Path:
    """build/leadline.vsix of the sources as they are; skips where its tools are not installed."""
    if shutil.which("node") is None or not (ROOT / "ui" / "node_modules").exists():
        pytest.skip("Building the extension needs the program node and `npm ci` in ui.")
    done = subprocess.run(["node", "vscode/build.mjs"], cwd=ROOT / "ui", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ROOT / "build" / "leadline.vsix"
