"""Event tools over kernels of the fake AMD GPU: each launch once, with its name, time and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.amd import fake_gpu
from tests.eventtools.conftest import rows_of

from leadline.profiles import open_profile
from leadline.report.tools import tool_results


def found(output: Path) -> dict[str, Any]:
    (result,) = tool_results(open_profile(output), "kernel_frequency")
    return dict(result.found)


def kernels(output: Path) -> dict[str, tuple[int, int, dict[str, Any]]]:
    """Launches, time and first line by kernel."""
    return {row["kernel"]: (row["launches"], row["time"], row["first from"]) for row in rows_of(found(output))}


def test_a_tool_counts_the_kernels_of_a_gpu(tmp_path: Path, fakes: Path) -> None:
    output = tmp_path / "out.leadline"
    status, said = fake_gpu.run_program(output, fakes, "--tool", "kernel_frequency", "--backend", "kernels")
    assert status == 0, said
    counted = kernels(output)
    assert {name: (launches, time) for name, (launches, time, _) in counted.items()} == {
        "gemm(float*)": (3, 150_000),
        "relu": (3, 30_000),
    }
    for _, _, place in counted.values():
        assert any(frame.startswith("forward (fake_program.py:") for frame in place["path"]), place


def test_a_tool_knows_kernel_and_line_of_a_launch_by_its_number(tmp_path: Path, fakes: Path) -> None:
    (tmp_path / "mine.py").write_text(
        """
from leadline.tools import Tool
class Named(Tool):
    events = {"launch": ["launch", "blocks", "threads"]}
    seen = 0
    def start(self): self.shapes = []
    def launch(self, b):
        self.seen += len(b)
        self.shapes += zip(b["blocks"].tolist(), b["threads"].tolist())
    def finish(self, out):
        rows = [
            {"launch": one, "blocks": self.shapes[one][0], "threads": self.shapes[one][1], "kernel": self.names[self.launches.kernel[one]], "from": out.path(int(self.launches.place[one]))}
            for one in range(self.seen)
        ]
        out.table("launches", rows)
"""
    )
    output = tmp_path / "out.leadline"
    asked = ("--tool", str(tmp_path / "mine.py"), "--backend", "kernels")
    status, said = fake_gpu.run_program(output, fakes, *asked)
    assert status == 0, said
    (result,) = tool_results(open_profile(output), "Named")
    rows = rows_of(result.found)
    assert [row["launch"] for row in rows] == list(range(6))
    assert sorted(row["kernel"] for row in rows) == ["gemm(float*)"] * 3 + ["relu"] * 3
    assert all("hipLaunchKernel" in row["from"]["path"] for row in rows)
    for kernel in open_profile(output).tree.find(kind="kernel"):
        grid, block = kernel.exclusive("grid_blocks"), kernel.exclusive("block_threads")
        shapes = {(row["blocks"], row["threads"]) for row in rows if row["kernel"] == kernel.name}
        assert shapes == {(grid.sum // grid.count, block.sum // block.count)} and (0, 0) not in shapes


@pytest.mark.parametrize(
    ("asked", "expected", "left_out"),
    [
        (("--kernel-name", "gemm"), {"gemm(float*)": 3}, 3),
        (("--launch-range", "2:"), {"gemm(float*)": 2, "relu": 2}, 2),
    ],
)
def test_only_the_launches_that_were_asked_for(
    tmp_path: Path, fakes: Path, asked: tuple[str, ...], expected: dict[str, int], left_out: int
) -> None:
    output = tmp_path / "out.leadline"
    status, said = fake_gpu.run_program(output, fakes, "--tool", "kernel_frequency", "--backend", "kernels", *asked)
    assert status == 0, said
    assert {name: launches for name, (launches, _, _) in kernels(output).items()} == expected
    assert found(output)["launches_left_out"] == left_out


def test_a_program_without_a_gpu_says_that_there_was_no_kernel(tmp_path: Path, fakes: Path) -> None:
    program = tmp_path / "none.py"
    program.write_text("sum(range(1000))\n")
    output = tmp_path / "out.leadline"
    asked = ("--tool", "kernel_frequency", "--backend", "kernels")
    status, said = fake_gpu.run_program(output, fakes, *asked, program=program)
    assert status == 0 and "no kernel of a GPU was reported" in said
    status, said = fake_gpu.run_program(output, fakes, *asked[:3], "kernels+declared", program=program)
    assert status == 2 and "sees every launch itself" in said
