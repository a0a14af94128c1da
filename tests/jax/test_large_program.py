"""A compiled program whose text has 100 MB."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from tests.jax.conftest import PROGRAMS, Ran


def test_a_program_of_100_megabytes_is_counted_and_stands_on_its_lines(run: Callable[..., Ran]) -> None:
    plain = subprocess.run(
        [sys.executable, str(PROGRAMS / "large_constant.py")], capture_output=True, text=True, timeout=200, check=True
    )
    ran = run("large_constant.py")
    mean, megabytes = ran.output.split()
    expected, without = plain.stdout.split()
    assert mean == expected == "4.5"
    assert ran.runs("jit(shifted)") == 5
    [add] = [row for row in ran.rows("add") if "jit(shifted)" in ran.path(row)]
    assert "shifted" in ran.path(add) and ran.calls[add] == 5
    assert int(megabytes) < int(without) + 300, "its text is held a few times at most, and not for long"
