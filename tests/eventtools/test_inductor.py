"""Real accesses of kernels that torch.compile makes for the CPU, against what NumPy and arithmetic say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.eventtools.conftest import Ran, Runner

pytest.importorskip("torch", reason="these tests measure real PyTorch; install torch==2.13.0 to run them")
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++ on the CPU")

TOOLS = """
class Rows(Tool):
    page = option(bytes, "4096", "")
    events = {"launch": ["kernel"], "touched": ["launch", "object", "first", "end", "bytes", "pages", "reads", "writes"],
              "access": ["launch", "object", "instruction", "count", "distinct", "write"]}
    def start(self): self.kept = {"touched": [], "access": []}
    def launch(self, b): pass
    def keep(self, b):
        for row in range(len(b)):
            one = {name: int(b[name][row]) for name in b.columns() if "@" not in name}
            one["kernel"] = self.names[int(self.launches.kernel[one["launch"]])]
            one["size"] = int(self.objects.bytes[one["object"]])
            one["line"] = self.places.line(one["place"])
            self.kept[b.event.name].append(one)
    touched = access = keep
    def finish(self, out):
        for name, rows in self.kept.items(): out.table(name, rows)
"""
PROGRAM = """
import os
import numpy as np
import torch
torch.manual_seed(0)

def pointwise(a, b):
    return torch.relu(a * 2 + b)  # line of pointwise

def gather_and_rows(table, index, x):  # one kernel: the C++ compiler is most of this test
    return table[index].sin(), torch.softmax(x, dim=-1)

n = 100_003  # no multiple of a vector
a, b = torch.randn(n), torch.randn(n)
table, index = torch.randn(50_000, 64), torch.randint(0, 50_000, (700,))
x = torch.randn(130, 1001)
with torch.no_grad():
    for function, arguments in ((pointwise, (a, b)), (gather_and_rows, (table, index, x))):
        compiled = torch.compile(function)
        for _ in range(2):
            results = compiled(*arguments)
        torch.testing.assert_close(results, function(*arguments), atol=1e-5, rtol=1e-5)
pages = np.unique((index.numpy()[:, None] * 256 + np.arange(0, 256, 4)).reshape(-1) // 4096)
print("PAGES", len(pages), len(set(index.tolist())))
own = os.path.join(os.path.dirname(__file__), "own")
print("KEPT APART" if os.environ["TORCHINDUCTOR_CACHE_DIR"] != own and not os.listdir(own) else os.listdir(own))
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("inductor")
    (folder / "own").mkdir()
    arguments = ("--tool", "redundant_load", "--backend", "inductor-cpu")
    env = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "own"), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    return Runner(folder)(PROGRAM, *arguments, tools=TOOLS, env=env)


def of(ran: Ran, table: str, kernel: str, size: int) -> list[dict[str, int]]:
    return [row for row in ran.table("Rows", table) if kernel in row["kernel"] and row["size"] == size]


def test_every_element_of_a_pointwise_kernel_is_read_and_written_once(ran: Ran) -> None:
    assert ran.code == 0, ran.err
    assert ran.found("Rows")["lost"] == {}
    size = 4 * 100_003
    touched = of(ran, "touched", "relu", size)
    assert len(touched) == 2 * 3
    for row in touched:
        assert (row["first"], row["end"], row["bytes"]) == (0, size, size)
        assert row["pages"] == -(-size // 4096)
        assert {row["reads"], row["writes"]} == {100_003, 0}
    assert sorted(row["reads"] for row in touched) == [0, 0, *[100_003] * 4]
    line = 1 + PROGRAM.splitlines().index("    return torch.relu(a * 2 + b)  # line of pointwise")
    assert {row["line"] for row in touched} == {f"program.py:{line}"}


def test_a_gather_touches_the_pages_that_numpy_names(ran: Ran) -> None:
    pages, distinct = map(int, ran.out.split("PAGES")[1].split()[:2])
    rows = of(ran, "touched", "index", 50_000 * 64 * 4)
    assert len(rows) == 2
    for row in rows:
        assert (row["pages"], row["bytes"]) == (pages, distinct * 256)
        assert row["reads"] == 700 * 64


def test_a_softmax_reads_its_rows_again(ran: Ran) -> None:
    size = 130 * 1001 * 4
    reads = [row for row in of(ran, "access", "softmax", size) if not row["write"] and row["distinct"] == size]
    assert reads
    assert max(row["count"] for row in reads) >= 2 * 130 * 1001  # for the largest, and for the sum
    assert {row["count"] % (130 * 1001) for row in reads} == {0}


def test_loads_of_what_was_loaded_before_are_named(ran: Ran) -> None:
    line = 1 + PROGRAM.splitlines().index("    return table[index].sin(), torch.softmax(x, dim=-1)")
    rows = [row for row in ran.table("redundant_load") if row["tensor"].startswith("input float32[130, 1001]")]
    row = max(rows, key=lambda row: row["again"])  # before torch 2.5 its results are inputs of the kernel, too
    assert (row["instruction"], row["launches"], row["each byte"]) == (f"program.py:{line}", 2, "2 times")
    assert row["again"] == 50


def test_kernels_that_count_lie_apart_from_others(ran: Ran) -> None:
    assert "KEPT APART" in ran.out


def test_what_a_backend_does_not_give_is_refused_with_what_would(tmp_path: Path) -> None:
    refused = Runner(tmp_path)("print('started')", "--tool", "redundant_load")
    assert refused.code == 2
    assert "started" not in refused.out
    assert "--backend inductor-cpu" in refused.err and "--backend triton-interpreter" in refused.err


def test_a_compiler_that_cannot_is_said_and_the_program_runs_on(tmp_path: Path) -> None:
    ran = Runner(tmp_path)(
        "print('ran')", "--tool", "redundant_load", "--backend", "inductor-cpu", env={"CXX": "/bin/false"}
    )
    assert ran.code == 0
    assert "ran" in ran.out
    assert "this C++ compiler cannot count accesses" in ran.err
