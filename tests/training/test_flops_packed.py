"""Operations of sequences packed into one, of kernels that torch.compile makes, and of what compiling itself runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import leadline
from leadline.analysis.flops import below_compilation, flop_columns, flops_of
from leadline.report.training import summarize
from leadline.report.training.markdown import render

torch = pytest.importorskip("torch", reason="its operators are counted")


def run_program(folder: Path, text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program of its own process, which is given folder/profiles; the process with what it printed."""
    program = folder / "program.py"
    program.write_text(text)
    command = [sys.executable, str(program), str(folder / "profiles"), *arguments]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    done = subprocess.run(command, env=kept | environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    return done


PACKED = """
import sys, torch, leadline
from torch.utils.flop_counter import FlopCounterMode

# stand-ins for the kernels that torch has on GPUs only: the dispatcher sees torch's own operators with their arguments
library = torch.library.Library("aten", "IMPL", "CPU")

def forward(q, k, v, begin_q, begin_k, longest_q, longest_k, *rest, **named):
    empty = torch.empty(0)
    return torch.empty_like(q), empty, empty, empty, empty

def backward(gradient, q, k, v, *rest, **named):
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)

library.impl("_flash_attention_forward", forward)
library.impl("_flash_attention_backward", backward)

def step(lengths):
    q = torch.randn(sum(lengths), 4, 16)
    begins = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=torch.int32)
    longest = max(lengths)
    of = (begins, begins, longest, longest, 0.0, False)
    out = torch.ops.aten._flash_attention_forward(q, q, q, *of, False)[0]
    torch.ops.aten._flash_attention_backward(out, q, q, q, out, torch.empty(0), *of, torch.empty(0), torch.empty(0))

lengths = [int(word) for word in sys.argv[2:]]
with FlopCounterMode(display=False) as counter:
    step(lengths)
profiler = leadline.build_profiler(enable=True, start_step=0, end_step=2, shapes=True, trace_dir=sys.argv[1])
profiler.start(0)
for number in range(2):
    step(lengths)
    profiler.step(number)
profiler.stop()
print(counter.get_total_flops())
"""


@pytest.mark.parametrize("lengths", [[8, 8, 8], [3, 9, 4, 8], [1, 1, 30], [17]])
def test_packed_sequences_lie_within_bounds_that_hold_torchs_count(lengths: list[int], tmp_path: Path) -> None:
    done = run_program(tmp_path, PACKED, *map(str, lengths))
    truth = float(done.stdout.split()[-1])
    summary = summarize(next((tmp_path / "profiles").glob("*.leadline")))
    found = summary.efficiency
    assert found is not None
    assert found.uncounted == ()
    assert abs(found.flops - truth) <= found.unsure
    alike = len(set(lengths)) == 1
    assert (found.flops == truth and found.unsure == 0) if alike else found.unsure > 0
    assert ("lengths of packed sequences" in render(summary)) == (not alike)
    assert {rate.name for rate in found.classes} == {"attention"}


def test_bounds_by_hand() -> None:
    shapes = [[20, 2, 8], [20, 2, 8], [20, 2, 8], [4], [4]]
    names = "aten::_flash_attention_forward", "torch_attn::_varlen_attn", "flash_attn::_flash_attn_varlen_forward"
    pair = 2 * 2 * (8 + 8)
    for name in names:
        detail = {"shapes": shapes, "arguments": [None, None, None, None, None, 10, 10]}
        assert flops_of(name, detail) == (pair * (100 + 2 * 25), pair * 200)
        assert flops_of(name, {"shapes": shapes}) == (pair * 400 / 3, pair * 400), "torch tells no arguments"
    crossed = {"shapes": [[20, 2, 8], [6, 2, 8], [6, 2, 8], [4], [4]], "arguments": [*[None] * 5, 10, 2]}
    assert flops_of(names[0], crossed) == (0, pair * 40), "which queries meet which keys is not known"
    gradients = {"shapes": [[20, 2, 8], *shapes[:3], [20, 2, 8], [2, 20], [4], [4]], "arguments": [*[None] * 8, 20, 20]}
    assert flops_of("aten::_flash_attention_backward", gradients) == (2.5 * pair * 400, 2.5 * pair * 400)


COMPILED = """
import sys, torch, leadline
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.flop_counter import mm_flop, sdpa_flop_count

def layer(q, k, v, weight):
    return torch.relu(flex_attention(q, k, v).transpose(1, 2).reshape(-1, 64) @ weight)

tensors = [torch.randn(2, 4, 128, 16) for _ in range(3)] + [torch.randn(64, 96)]
with torch.no_grad():
    compiled = torch.compile(layer)
    profiler = leadline.build_profiler(enable=True, start_step=2, end_step=4, shapes=True, trace_dir=sys.argv[1])
    profiler.start(0)
    for number in range(5):
        compiled(*tensors)
        profiler.step(number)
profiler.stop()
heads = tensors[0].shape  # torch's counter itself does not run over flex attention; these are its formulas
print(sdpa_flop_count(heads, heads, heads) + mm_flop((256, 64), (64, 96)))
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Torch's count of a step, and the profile."""
    folder = tmp_path_factory.mktemp("compiled")
    pytest.importorskip("torch.nn.attention.flex_attention", reason="no flex attention before torch 2.5")
    done = run_program(folder, COMPILED, TORCHINDUCTOR_CACHE_DIR=str(folder / "cache"))
    return float(done.stdout.split()[-1]), next((folder / "profiles").glob("*.leadline"))


def test_a_kernel_that_torch_compile_made_of_attention_counts_as_torch_counts(compiled) -> None:
    truth, path = compiled
    found = summarize(path).efficiency
    assert found is not None
    assert (found.flops, found.unsure, found.scope) == (truth, 0, "recorded steps")
    assert {rate.name: rate.flops for rate in found.classes} == {
        "attention": 5 * 2 * 2 * 2 * 4 * 128 * 128 * 16,
        "matrix product": 5 * 2 * 256 * 64 * 96,
    }


def test_what_compiling_runs_is_no_work_of_the_program(compiled) -> None:
    _, path = compiled
    tree = leadline.open(str(path)).tree
    columns, inside = flop_columns(tree), below_compilation(tree)
    assert inside.any()
    assert not columns.per_call[inside].any()
    summary = summarize(path)
    shares = {share.name: share.time_ns for share in summary.shares}
    assert shares["compilation"] > shares["attention"] > 0
    assert shares["fused"] > 0
    assert any("flex_attention" in hot.name for hot in summary.hot)
    assert sum(hot.time_ns for hot in summary.hot) <= sum(shares.values()) - shares["compilation"]
