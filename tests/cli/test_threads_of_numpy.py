"""Verbs that read start no thread: NumPy's library of linear algebra would start one for each core."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.report.drawings import training

from leadline.profiles import write_profile


@pytest.mark.parametrize("verb", ["report", "analyze", "why"])
def test_a_verb_that_reads_has_one_thread_and_leaves_the_environment(tmp_path: Path, verb: str) -> None:
    file = tmp_path / "x.leadline"
    write_profile(file, training())
    code = (
        "import os, sys; before = dict(os.environ)\n"
        f"from leadline.cli.main import main; main([{verb!r}, {str(file)!r}])\n"
        "assert dict(os.environ) == before and 'numpy' in sys.modules\n"
        "print('threads', len(os.listdir('/proc/self/task')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "threads 1"
