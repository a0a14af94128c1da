"""Triton's interpreter on the CPU: counts of accesses equal the formula. `make test-triton` downloads Triton."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from tests.eventtools.conftest import Ran, Runner

PROGRAM = Path(__file__).with_name("triton_program.py")
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None,
    reason="Triton is not installed here; `make test-triton` downloads it and runs this.",
)
TOOLS = """
class Rows(Tool):
    page = option(bytes, "1024", "")
    events = {"launch": ["kernel"], "touched": ["launch", "object", "first", "end", "bytes", "pages", "reads", "writes"],
              "access": ["launch", "object", "instruction", "count", "distinct", "write"]}
    def start(self): self.kept = {"touched": [], "access": []}
    def launch(self, b): pass
    def keep(self, b):
        for row in range(len(b)):
            one = {name: int(b[name][row]) for name in b.columns() if "@" not in name}
            one["kernel"] = self.names[int(self.launches.kernel[one["launch"]])]
            one["at"] = self.names[one["instruction"]] if "instruction" in one else ""
            one["line"] = self.places.line(one["place"])
            self.kept[b.event.name].append(one)
    touched = access = keep
    def finish(self, out):
        for name, rows in self.kept.items(): out.table(name, rows)
"""


def line(marker: str) -> str:
    lines = PROGRAM.read_text().splitlines()
    return f"program.py:{1 + next(at for at, text in enumerate(lines) if text.endswith(f'# the {marker}'))}"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    pytest.importorskip("torch", reason="these tests measure real PyTorch; install torch==2.13.0 to run them")
    if importlib.metadata.version("triton").startswith("3.0."):
        pytest.skip(
            "Triton 3.0's interpreter computes another matrix product than it should, with Leadline or without."
        )
    arguments = ("--tool", "divergence", "--tool", "redundant_load", "--backend", "triton-interpreter")
    return Runner(tmp_path_factory.mktemp("triton"))(PROGRAM.read_text(), *arguments, tools=TOOLS)


def access(ran: Ran, marker: str) -> list[dict[str, Any]]:
    return [row for row in ran.table("Rows", "access") if row["at"] == line(marker)]


def test_accesses_of_a_matrix_product_are_those_of_the_formula(ran: Ran) -> None:
    assert ran.code == 0, ran.err
    assert ran.found("Rows")["lost"] == {}
    (a,), (b,), (c,) = (access(ran, f"line of {name}") for name in "abc")
    assert (a["count"], a["distinct"], a["write"]) == (2 * 128 * 96, 4 * 128 * 96, 0)  # by two columns of programs
    assert (b["count"], b["distinct"], b["write"]) == (4 * 96 * 64, 4 * 96 * 64, 0)  # by four rows of them
    assert (c["count"], c["distinct"], c["write"]) == (128 * 64, 4 * 128 * 64, 1)
    assert {row["line"] for row in (a, b, c)} == {line("launch")}
    sizes = {row["bytes"]: row for row in ran.table("Rows", "touched") if row["kernel"] == "matmul"}
    assert set(sizes) == {4 * 128 * 96, 4 * 96 * 64, 4 * 128 * 64}
    assert all(row["pages"] == size // 1024 and row["end"] == size for size, row in sizes.items())


def test_masked_lanes_touch_nothing_and_show_as_such(ran: Ran) -> None:
    (x,) = access(ran, "line of x")
    assert (x["count"], x["distinct"]) == (20 * 500, 4 * 20 * 500)
    lanes = {row["instruction"]: row for row in ran.table("divergence")}
    assert lanes[line("line of x")]["lanes"] == pytest.approx(100 * 500 / 512)
    assert lanes[line("line of x")]["split warps"] == pytest.approx(100 / 16)  # 500 = 15 * 32 + 20
    assert lanes[line("line of a")]["lanes"] == 100


def test_atomics_read_and_write(ran: Ran) -> None:
    rows = access(ran, "line of counts")
    assert sorted((row["write"], row["count"], row["distinct"]) for row in rows) == [(0, 1000, 32), (1, 1000, 32)]


def test_redundant_loads_have_the_kernels_line(ran: Ran) -> None:
    rows = {row["instruction"]: row for row in ran.table("redundant_load")}
    assert rows[line("line of a")]["each byte"] == "2 times"
    assert rows[line("line of b")]["each byte"] == "4 times"
    assert rows[line("line of x")]["again"] == 0
