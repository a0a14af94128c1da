"""Tools in C: the example of the repository, and what a tool may do wrong."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from leadline.cli.main import main
from leadline.tools.c_tool import NO_C_EVENTS, include_folder, load
from leadline.tools.errors import ToolError
from leadline.tools.events import EVENTS

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
DRAWN = """
{"object": "weights", "bytes": 4096, "category": "parameter", "shape": "float32[1024]"}
{"event": "launch", "kernel": "gemm", "place": "train.py:10"}
{"event": "launch", "kernel": "norm", "place": "train.py:11"}
{"event": "launch", "kernel": "gemm", "place": "train.py:10"}
{"event": "touched", "launch": 2, "object": "weights", "bytes": 4096, "end": 4096, "reads": 1024, "place": "train.py:10"}
"""


def built(source: Path, tmp_path: Path, *flags: str, compiler: str = "cc") -> Path:
    library = tmp_path / f"{source.stem}.so"
    command = [compiler, "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", *flags]
    command += [f"-I{include_folder()}", str(source), "-o", str(library)]
    subprocess.run(command, check=True, timeout=120)
    return library


def run(library: Path, tmp_path: Path, *arguments: str) -> int:
    file = tmp_path / "drawn.jsonl"
    file.write_text(DRAWN)
    return main(["tools", str(library), "--events", str(file), *arguments])


def test_the_example_counts_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = built(ROOT / "examples/tools_in_c/kernels.c", tmp_path, "-std=c11")
    assert run(library, tmp_path) == 0
    shown = capsys.readouterr().out
    assert re.search(r"gemm\s+2\s", shown) and re.search(r"norm\s+1\s", shown)
    assert "Every launch was counted." in shown
    assert run(library, tmp_path, "--tool-option", "kernels.least=2") == 0
    assert "norm" not in capsys.readouterr().out
    assert main(["tools", str(library)]) == 0
    described = capsys.readouterr().out
    assert "Counts kernels by name." in described and "kernels.least=1" in described


TEXTS = r"""
#include <leadline/tool.h>
static void touched(leadline_run* run, const leadline_batch* batch) {
  char text[64], cut[5];
  const int64_t* object = leadline_column(batch, "object");
  leadline_text(run, LEADLINE_OBJECT, object[0], text, sizeof text);
  leadline_say(run, "object", text);
  if (leadline_text(run, LEADLINE_LAUNCH, leadline_column(batch, "launch")[0], cut, sizeof cut) == 4) leadline_say(run, "kernel", cut);
  leadline_text(run, LEADLINE_PLACE, leadline_column(batch, "place")[0], text, sizeof text);
  leadline_say(run, "place", text);
  if (leadline_column(batch, "no such") == 0 && run->option(run, "none") == 0) leadline_say(run, "absent", "is absent");
  leadline_table(run, "sizes", "object=object size=bytes");
  int64_t row[] = {object[0], run->object_bytes(run, object[0])};
  leadline_row(run, row, ROW);
}
LEADLINE_TOOL(texts, .touched = touched)
"""


def test_texts_sizes_and_a_row_that_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "texts.c"
    source.write_text(TEXTS)
    assert run(built(source, tmp_path, "-DROW=2"), tmp_path) == 0
    shown = capsys.readouterr().out
    for word in ("parameter float32[1024]", "gemm", "train.py:10", "is absent", "4.00 KiB"):
        assert word in shown
    other = tmp_path / "other.c"
    other.write_text(TEXTS)
    assert run(built(other, tmp_path, "-DROW=1"), tmp_path) == 1
    assert "a row of 1 values came for a table of 2 columns" in " ".join(capsys.readouterr().out.split())


def test_libraries_that_are_no_tool_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.c"
    empty.write_text("int x;\n")
    with pytest.raises(ToolError, match="has no tool"):
        load(str(built(empty, tmp_path)))
    old = tmp_path / "old.c"
    old.write_text("#include <leadline/tool.h>\nLEADLINE_TOOL(old, .version = 0)\n")
    with pytest.raises(ToolError, match="build it again"):
        load(str(built(old, tmp_path, "-Wno-override-init")))
    text = tmp_path / "text.so"
    text.write_text("not a library")
    with pytest.raises(ToolError, match="cannot be loaded"):
        load(str(text))


def test_the_header_has_a_function_for_every_event() -> None:
    header = (include_folder() / "leadline/tool.h").read_text()
    members = re.search(r"leadline_batch_function (launch,[^;]+);", header)
    assert members is not None
    names = [name.strip().rstrip("_") for name in members[1].split(",")]
    assert names == [event for event in EVENTS if event not in NO_C_EVENTS]
