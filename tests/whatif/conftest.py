"""Lets the tests of this folder import the machine and its programs, and finds the reference traces."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of reference traces."""
    if not TRACES.is_dir():
        pytest.skip("the reference traces are not beside the repository (../shared/traces)")
    return TRACES
