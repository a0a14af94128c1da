"""What the tests of this folder share."""

from __future__ import annotations

from pathlib import Path

import pytest

import leadline


@pytest.fixture(scope="session")
def real():
    """A small training run that was measured."""
    return leadline.open(Path(__file__).parents[1] / "compat" / "v1-torch.leadline")
