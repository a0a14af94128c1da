"""The file says what the program's sources were, so that a changed one is noticed even with its old time stamp."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import leadline
from leadline.analysis.sourcecode import Sources
from leadline.profiles.meta import source_hashes

PROGRAM = "import leadline\nwith leadline.profile('p.leadline'):\n    with leadline.region('work'):\n        pass\n"


def test_the_script_that_ran_is_in_the_file_by_its_hash(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    os.utime(script, (1, 1))
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, check=True, timeout=100)
    meta = leadline.open(tmp_path / "p.leadline").meta
    assert meta["processes"][0]["sources"] == {str(script): hashlib.sha256(PROGRAM.encode()).hexdigest()}
    told = Sources(str(tmp_path), 0, source_hashes(meta))
    assert told.of("train.py") is not None  # the tree may hold it as the user typed it
    script.write_text(PROGRAM.replace("work", "rest"))
    os.utime(script, (1, 1))
    told = Sources(str(tmp_path), 0, source_hashes(meta))
    assert told.of("train.py") is None
    assert told.changed == {"train.py"}


def test_a_script_written_while_it_ran_is_not_taken_for_what_ran(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    later = 4_000_000_000
    os.utime(tmp_path / "train.py", (later, later))
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, check=True, timeout=100)
    meta = leadline.open(tmp_path / "p.leadline").meta
    assert Sources(str(tmp_path), 0, source_hashes(meta)).of("train.py") is None
