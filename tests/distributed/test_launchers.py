"""Ranks that no launcher has put into the environment: Dask's workers, and what the program says itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import leadline
from leadline.distributed.merge import merge_files

EXAMPLES = Path(__file__).parents[2] / "examples" / "launchers"


def test_what_the_program_says_is_the_rank_where_no_launcher_does(tmp_path: Path, monkeypatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for rank in range(3):
        profiler = leadline.build_profiler(enable=True, trace_dir=str(tmp_path), rank=rank)
        assert profiler is not None
        profiler.start(0)
        profiler.step(0)
        assert [one.rank for one in leadline.open(profiler.stop()).processes] == [rank]
    merged = merge_files([str(tmp_path)])
    assert (merged.ranks, merged.left_out, merged.missing) == (3, (), ())


@pytest.mark.slow
def test_ranks_on_a_dask_cluster(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    pytest.importorskip("torch", reason="torch is not installed here")
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    command = [sys.executable, str(EXAMPLES / "dask_ranks.py"), str(tmp_path / "profiles")]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=240, capture_output=True)
    merged = merge_files([str(tmp_path / "profiles")])
    assert (merged.ranks, merged.left_out, merged.missing) == (2, (), ())
    assert merged.plan.world_size == 2, "as torch.distributed says"
