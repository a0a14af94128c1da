"""Compiled kernels by what they did, and what they leave to libraries by what operators declare, in one run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.eventtools.conftest import Runner

pytest.importorskip("torch", reason="these tests measure real PyTorch; install torch==2.13.0 to run them")
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++ on the CPU")

TOOLS = """
class Rows(Tool):
    events = {"launch": ["kernel"], "touched": ["launch", "object", "bytes"]}
    def start(self): self.kept = {}
    def launch(self, b): pass
    def touched(self, b):
        for row in range(len(b)):
            kernel = self.names[int(self.launches.kernel[int(b["launch"][row])])]
            key = (kernel, int(self.objects.bytes[int(b["object"][row])]), self.places.line(int(b["place"][row])))
            times, bytes = self.kept.get(key, (0, 0))
            self.kept[key] = (times + 1, bytes + int(b["bytes"][row]))
    def finish(self, out):
        rows = [(*key, *found) for key, found in self.kept.items()]
        out.table("touched", [dict(zip(("kernel", "size", "line", "times", "bytes"), row)) for row in rows])
"""
PROGRAM = """
import torch
def layer(x, weight):
    return torch.relu(x @ weight + 1)  # compiled
x, weight = torch.randn(301, 64), torch.randn(64, 129)
with torch.no_grad():
    compiled = torch.compile(layer)
    for _ in range(3):
        found = compiled(x, weight)
    for _ in range(2):
        torch.sin(found)  # eager
"""


def test_each_piece_of_work_is_seen_by_one_of_them(tmp_path: Path) -> None:
    arguments = ("--tool", "hotness", "--backend", "inductor-cpu+declared")
    env = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "own"), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    ran = Runner(tmp_path)(PROGRAM, *arguments, tools=TOOLS, env=env)
    assert ran.code == 0, ran.err
    of_x, of_weight, of_found = 301 * 64 * 4, 64 * 129 * 4, 301 * 129 * 4
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for row in ran.table("Rows", "touched"):
        kernel = "compiled" if row["kernel"].startswith("cpp_fused") else row["kernel"]
        found.setdefault(kernel, {})[row["size"]] = (row["times"], row["bytes"])
    assert found == {
        "aten::randn": {of_x: (1, of_x), of_weight: (1, of_weight)},
        "aten::mm": {size: (3, 3 * size) for size in (of_x, of_weight, of_found)},
        "compiled": {of_found: (3, 3 * of_found)},  # in place: the addition and the maximum are one kernel
        "aten::sin": {of_found: (4, 4 * of_found)},  # what it reads and what it writes, twice
    }
