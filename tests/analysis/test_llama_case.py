"""The Llama case of DeepContext (section 6.4, Table 3): RMSNorm converts to float and back, and its conversion kernels
stand still for constants and for arithmetic. Told again as a recorded profile, drawn with the frames that transformers'
LlamaRMSNorm has and the stalls that the paper names."""

from __future__ import annotations

import pytest

from leadline.analysis.analyze import analyze
from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.report.kernel_source import kernel_heat
from leadline.report.kernel_source_text import render_text

MS = 1_000_000
NORM = "/site-packages/transformers/models/llama/modeling_llama.py"
KERNEL = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda, float, c10::Half>"
STALLS = {"imc_miss": (310, 300), "math_pipe_throttle": (260, 220), "wait": (120, 60), "long_scoreboard": (110, 90),
          "selected": (200, 0)}  # fmt: skip
TEXTS = {"imc_miss": "ULDC.64 UR4, c[0x0][0x118]", "math_pipe_throttle": "HADD2.F32 R5, -RZ, R4.H0_H0",
         "wait": "IMAD.WIDE R2, R0, R3, c[0x0][0x170]", "long_scoreboard": "HADD2.F32 R6, -RZ, R4.H1_H1",
         "selected": "STG.E.64 [R2.64], R6"}  # fmt: skip


@pytest.fixture(scope="module")
def llama() -> Profile:
    samples = [
        f"              instruction {TEXTS[stall]} | instruction_samples@0:7={count} latency_samples@0:7={lost}"
        f' address={at * 16} detail={{"stall":"{stall}"}}'
        for at, (stall, (count, lost)) in enumerate(STALLS.items(), 1)
    ]
    lines = [
        "process llama.py | pid=5",
        "  thread main | tid=5",
        "    python generate @ /home/ada/llama.py:40",
        "      module model.layers.0.input_layernorm [LlamaRMSNorm]",
        f"        python forward @ {NORM}:73",
        f"          operator aten::to | time={2 * MS}/10 call_time={2 * MS}/10",
        f"            kernel {KERNEL.replace(' ', chr(0xA0))} | gpu_time@0:7={40 * MS}/640",
        *samples,
        "      module model.layers.0.mlp [LlamaMLP]",
        f"        operator aten::linear | time={9 * MS}/10 call_time={9 * MS}/10",
        f"          kernel gemm | gpu_time@0:7={60 * MS}/10",
        "    python generate @ /home/ada/llama.py:41",
        "      phase optimizer | time=10/10 call_time=10/10",
    ]
    return build("\n".join(lines))


def test_the_conversion_of_the_norm_is_named_with_what_it_waits_for(llama: Profile) -> None:
    (stall,) = [one for one in analyze(llama) if one.rule == "stall"]
    assert "waits for a constant that its cache did not hold" in stall.title
    assert any("imc_miss" in line and "math_pipe_throttle" in line for line in stall.evidence)
    assert "fuse it with its neighbours" in stall.remedy
    assert (stall.lines[0].file.rpartition("/")[2], stall.lines[0].line) == ("llama.py", 40)


def test_its_instructions_say_where(llama: Profile) -> None:
    (kernel,) = kernel_heat(llama)
    assert [(one.text.split()[0], one.reasons[0].group) for one in kernel.instructions[:2]] == [
        ("ULDC.64", "fetch"),
        ("HADD2.F32", "pipe"),
    ]
    text = render_text([kernel], 120, 5)
    assert "waits for a constant" in text and "HADD2.F32" in text
