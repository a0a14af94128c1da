"""A real trace of an MI300X as a user reads it: every name right, and no word of another maker."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.analysis.analyze import analyze
from leadline.cli.main import main
from leadline.profiles import Profile, open_profile
from leadline.whatif.kernels import KernelTable
from leadline.whatif.load import load
from leadline.work.kernels import COMPUTE

TRACE = (
    Path(__file__).parents[2].parent / "shared" / "traces" / "tracelens" / "mi300_resnet_ddp_rank0of8_actckpt.json.gz"
)

OTHERS = re.compile(
    r"\b(NVIDIA|NVLink|nvlink|CUPTI|cuDNN|cuBLAS|[Mm]ultiprocessors?|SMs|[Ww]arps?|[Tt]ensor cores?|CUDA (graph|stream)s?)\b"
)


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not TRACE.is_file():
        pytest.skip("The shared traces are not beside this checkout.")
    path = tmp_path_factory.mktemp("mi300") / "mi300.leadline"
    command = [sys.executable, "-m", "leadline", "import", str(TRACE), "-o", str(path)]
    subprocess.run(command, check=True, capture_output=True, timeout=200)
    return path


def kernels(path: Path) -> dict[str, int]:
    opened: Profile = open_profile(path)
    return {node.name: node.exclusive("gpu_time").count for node in opened.tree.find(kind="kernel")}


def test_no_name_of_a_kernel_is_mangled_and_those_of_composable_kernel_say_their_types(profile: Path) -> None:
    names = kernels(profile)
    assert not [name for name in names if name.startswith("_Z")]
    assert any(re.match(r"void ck::.*kernel_batched_gemm_xdlops_bwd_weight<.*unsigned short", name) for name in names)


@pytest.mark.parametrize("verb", ["report", "analyze", "whatif", "summary", "info"])
def test_no_sentence_has_a_word_of_another_maker(
    profile: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # in a narrow table names of devices are cut
    assert main([verb, str(profile)]) == 0
    said = capsys.readouterr().out
    assert "MI300X" in said or verb in ("analyze", "whatif", "info")
    assert [found[0] for line in said.splitlines() if (found := OTHERS.search(line))] == []


def test_convolutions_with_a_matrix_instruction_of_half_the_rate_are_known(profile: Path) -> None:
    """MIOpen's wt64x16x4 is four products of 16x16x4, which an MI300 does at half of what 16x16x16 reaches."""
    found = analyze(open_profile(profile), ["matmul_shape"], {"matmul_shape.share": "0.01%"}, simulate=False)
    (one,) = (one for one in found if "an instruction that reaches 50 %" in one.title)
    assert "igemm" in one.evidence[0] and "16x16x4, 4 blocks in bf16: 1,024 operations" in one.evidence[1]


@pytest.mark.parametrize("file", [lambda profile: profile, lambda profile: TRACE], ids=["imported", "as it is"])
def test_the_precision_of_matrix_kernels_is_told_by_their_names(profile: Path, file: Callable[[Path], Path]) -> None:
    graph = load(file(profile))
    table = KernelTable(graph)
    heavy = table.all(*COMPUTE)
    known = table.precisions(heavy)
    assert set(known) == {"bf16"} and len(known) > 300
