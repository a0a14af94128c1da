"""torch.compile on the CPU, for real: generated kernels carry their operators and lines, fresh and from Inductor's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.losses import lost

from leadline.capture.providers.torch.compile_phases import PhaseStack, phase_of
from leadline.capture.providers.torch.kernel_origin import (
    Origin,
    Source,
    innermost_source,
    operators_of_name,
    origin_of_generated,
)
from leadline.profiles import Profile, open_profile

PROGRAM = """
import sys
import leadline
with leadline.profile(sys.argv[1], quiet=True):
    import torch

    def model(x, y):
        shifted = torch.relu(x) + y
        return torch.softmax(shifted, -1).sum(0)

    compiled = torch.compile(model)
    x, y = torch.randn(64, 64), torch.randn(64, 64)
    expected = model(x, y)
    for _ in range(4):
        result = compiled(x, y)
    assert torch.allclose(result, expected, atol=1e-5)
# Afterwards the generated kernels still run, and nothing of the profiler is left in the compiler.
assert torch.allclose(compiled(x, y), expected, atol=1e-5)
from torch._inductor.codecache import PyCodeCache
assert PyCodeCache.load_by_key_path.__func__.__module__ == "torch._inductor.codecache"
"""


def compile_and_run(tmp_path: Path, name: str, program: str = PROGRAM) -> Profile:
    pytest.importorskip("torch", reason="torch is not installed here")
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        pytest.skip("Inductor's CPU backend needs a C++ compiler and none was found.")
    script = tmp_path / "compiled.py"
    script.write_text(program)
    output = tmp_path / f"{name}.leadline"
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(script), str(output)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return open_profile(output)


TWO_GRAPHS = """
import sys
import torch
import leadline

def first(x, y):
    return torch.relu(x) + y  # of the first

def second(x, y):
    return torch.relu(x) + y  # of the second

with leadline.profile(sys.argv[1], quiet=True):
    for function, size in ((first, 64), (second, 48)):
        compiled = torch.compile(function, dynamic=False)
        for _ in range(2):
            compiled(torch.randn(size, size), torch.randn(size, size))
"""


def test_kernels_of_one_name_in_two_graphs_keep_their_own_lines(tmp_path: Path) -> None:
    profile = compile_and_run(tmp_path, "two", TWO_GRAPHS)
    kernels = [node for node in profile.tree.find(kind="region") if node.name.startswith("cpp_fused")]
    assert len({node.name for node in kernels}) == 1
    codes = sorted({tuple(source["code"] for source in node.detail["sources"]) for node in kernels})
    assert [["of the first" in code, "of the second" in code] for (code,) in codes] == [[True, False], [False, True]]


def check_kernels(profile: Profile) -> None:
    kernels = [node for node in profile.tree.find(kind="region") if node.name.startswith("cpp_fused")]
    assert sum(node.exclusive("call_time").count for node in kernels) == 4
    operators = {operator for node in kernels for operator in node.detail["operators"]}
    assert {"aten.relu", "aten.add"} <= operators or {"aten.relu", "aten.add", "aten.sum"} <= operators
    lines = {(Path(source["file"]).name, source["code"]) for node in kernels for source in node.detail["sources"]}
    assert any(name == "compiled.py" and "softmax" in code for name, code in lines)


def test_generated_kernels_carry_operators_and_lines(tmp_path: Path) -> None:
    fresh = compile_and_run(tmp_path, "fresh")
    check_kernels(fresh)
    lines = {
        source["code"]
        for node in fresh.tree.find(kind="region")
        for source in node.detail.get("sources", [])
    }  # fmt: skip
    assert any("torch.relu(x) + y" in code for code in lines)
    phases = list(fresh.tree.find(kind="phase"))
    assert {"compile", "dynamo", "inductor"} <= {node.name for node in phases}
    assert sum(node.exclusive("call_time").sum for node in phases if node.name == "compile") > 10_000_000
    assert all("compile" in [step.name for step in node.path()] for node in phases if node.name == "inductor")
    available = fresh.meta["processes"][0]["available"]["torch.compile"]
    assert available["ok"] is True and available["kernels"] >= 1
    # torch 2.4 kills its compile workers, so these cannot say that they stopped
    assert [loss for loss in lost(fresh) if loss.kind.name != "PROCESS_INCOMPLETE"] == []

    cached = compile_and_run(tmp_path, "cached")
    check_kernels(cached)


def test_the_program_s_own_line_is_the_innermost_frame() -> None:
    trace = (
        '  File "train.py", line 9, in <module>\n    main()\n  File "model.py", line 5, in forward\n    return a + b\n'
    )
    assert innermost_source(trace) == Source("model.py", 5, "forward", "return a + b")
    assert innermost_source("nothing") is None


def test_cached_code_is_explained_by_its_comment_and_line_map() -> None:
    text = [
        "# Topologically Sorted Source Nodes: [relu, add], Original ATen: [aten.relu, aten.add]",
        "stream0 = get_raw_stream(0)",
        "triton_poi_fused_add_relu_0.run(buf0, 64, stream=stream0)",
    ]
    trace = '  File "model.py", line 5, in forward\n    return relu(a) + b\n'
    origin = origin_of_generated("triton_poi_fused_add_relu_0", text, [(1, trace)])
    assert origin == Origin(("aten.relu", "aten.add"), (Source("model.py", 5, "forward", "return relu(a) + b"),))
    assert origin_of_generated("cpp_fused_mul_3", ["cpp_fused_mul_3(a)"], []).operators == ("aten.mul",)
    assert operators_of_name("strange") == []


def test_an_origin_of_many_graphs_keeps_each_entry_once() -> None:
    a = Origin(("aten.add",), (Source("a.py", 1, "f", "x"),))
    b = Origin(("aten.add", "aten.mul"), (Source("b.py", 2, "g", "y"),))
    assert a.joined(b).operators == ("aten.add", "aten.mul")
    assert len(a.joined(b).joined(a).sources) == 2
    assert Origin().detail() == ""


class Phases:
    """Stands for the native module: writes down which phases begin and end."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def phase_begin(self, name: str) -> int:
        self.log.append(f"+{name}")
        return len(self.log)

    def phase_end(self, token: int) -> None:
        self.log.append(f"-{self.log[token - 1][1:]}")


def test_compile_events_become_nested_phases_even_when_one_never_ends() -> None:
    native = Phases()
    stack = PhaseStack(native)  # type: ignore[arg-type]
    stack.begin("dynamo")
    stack.begin("entire_frame_compile")
    stack.begin("compile_fx.<locals>.fw_compiler_base")
    stack.begin("GraphLowering.run")
    stack.begin("CachingAutotuner.benchmark_all_configs")
    stack.end("CachingAutotuner.benchmark_all_configs")
    stack.end("unknown")
    stack.end("dynamo")  # an exception ended the others
    assert native.log == [
        "+compile", "+dynamo", "+inductor", "+autotune", "-autotune", "-inductor", "-dynamo", "-compile",
    ]  # fmt: skip
    assert phase_of("something new") == ""
