"""What a program does already is no advice: one predicate for each technique that a finding may recommend.

A sentence of advice that names only techniques in use is left out; one that names others too stays, with a note. What
a finding itself rules out (who is seen to collect garbage has not switched it off) needs none: tests/analysis/
test_already.py lists these rules with the reason, and fails on any name of an interface that nothing guards.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from leadline._dataclass import dataclass, replace
from leadline.analysis.case import Case
from leadline.analysis.columns import Mask, Rows
from leadline.analysis.findings import Finding
from leadline.hardware.precision import precision_of
from leadline.schema import FrameKind
from leadline.steps.model import STEP_CALLS

NOTHING_NEW = "The usual fix is in use already"
"""How advice of a finding begins that has none to give."""


@dataclass(frozen=True)
class Technique:
    """`words`: what advice calls it, a regular expression; `used`: whether a program does it, at these rows."""

    name: str
    words: str
    used: Callable[[Case, Rows], bool]


def fitting(case: Case, one: Finding) -> Finding:
    """The finding without advice that the program follows already."""
    rows = np.array(one.paths, np.int64)
    used = [
        technique for technique in TECHNIQUES if re.search(technique.words, one.remedy) and technique.used(case, rows)
    ]
    if not used:
        return one
    kept = []
    for sentence in re.split(r"(?<=[.;]) ", one.remedy):
        named = [technique for technique in TECHNIQUES if re.search(technique.words, sentence)]
        has = [technique.name for technique in named if technique in used]
        if has and len(has) == len(named):
            continue
        kept.append(f"{sentence[:-1]} ({' and '.join(has)}: in use already){sentence[-1:]}" if has else sentence)
    text = " ".join(kept).rstrip(";")
    if not text:
        names = ", ".join(technique.name for technique in used)
        return replace(one, remedy=f"{NOTHING_NEW} ({names}): inspect the paths one by one.")
    text = text[0].upper() + text[1:] if one.remedy[0].isupper() and not re.match(r"\w+[.(=]", text) else text
    return replace(one, remedy=text if text.endswith((".", ")")) else text + ".")


def _at(case: Case, rows: Rows, mask: Mask) -> bool:
    """Whether something is at these rows, below them, or on their lines."""
    if not mask.any() or not rows.size:
        return False
    lines = case.user_line[rows]
    here = case.below(case.mask(rows)) | np.isin(case.user_line, lines[lines >= 0])
    return bool((mask & here).any()) or bool(case.below(mask)[rows].any())


def _operator(*names: str) -> Callable[[Case, Rows], bool]:
    """An operator of these names at the rows."""
    return lambda case, rows: _at(case, rows, case.operators(*names))


def _in_loop(files: str) -> Callable[[Case, Rows], bool]:
    """Code of these files ran in the loop."""
    return lambda case, rows: bool((case.in_files(files) & case.loop.inside & (case.calls > 0)).any())


def _kernel(pattern: str) -> Callable[[Case, Rows], bool]:
    """A kernel of such a name at the rows."""
    return lambda case, rows: _at(case, rows, case.matching(FrameKind.KERNEL, pattern))


def _compiled(case: Case, rows: Rows) -> bool:
    compiled = case.matching(FrameKind.OPERATOR, r"^(Torch-Compiled Region|CompiledFunction|## Call CompiledFxGraph)")
    compiled = compiled | case.matching(FrameKind.KERNEL, r"^triton_(poi|red|per|tem|mm)_")
    # a program that compiles nothing imports torch._inductor, too: torch's optimizers do
    runs = case.in_files(r"torch/_inductor/|torchinductor_") & ~case.in_files(r"importlib\._bootstrap")
    return _at(case, rows, compiled | runs)


def _pinned(case: Case, rows: Rows) -> bool:
    return _at(case, rows, case.matching(FrameKind.COPY, r"Pinned|pinned"))


def _products_in(*precisions: str) -> Callable[[Case, Rows], bool]:
    """All kernels of products at the rows multiply in one of these."""

    def used(case: Case, rows: Rows) -> bool:
        kernels = case.matching(FrameKind.KERNEL, r"gemm|xmma|cutlass|nvjet") & case.below(case.mask(rows))
        found = [precision_of(case.name(int(row))) for row in np.flatnonzero(kernels).tolist()]
        return bool(found) and all(one in precisions for one in found)

    return used


def _channels_last(case: Case, rows: Rows) -> bool:
    """Kernels that work in NHWC and no conversions: around tensors in NCHW a library converts for each call."""
    converting = case.matching(FrameKind.KERNEL, r"(?i)nchwtonhwc|nhwctonchw")
    return _at(case, rows, case.matching(FrameKind.KERNEL, r"(?i)nhwc") & ~converting) and not _at(
        case, rows, converting
    )


def _a_loop(case: Case, rows: Rows) -> bool:
    return _at(case, rows, case.matching(FrameKind.OPERATOR, r"^(while|scan)\b"))


def _steps_told(case: Case, rows: Rows) -> bool:
    return case.known_loop is not None and case.known_loop.of.rests_on == STEP_CALLS


TECHNIQUES = (
    Technique("pinned memory", r"pin_memory", _pinned),
    Technique("torch.compile", r"torch\.compile\b", _compiled),
    Technique("autocast", r"torch\.autocast|\bautocast\b", _products_in("bf16", "fp16", "fp8")),
    Technique("tensor cores", r"set_float32_matmul_precision", _products_in("tf32", "bf16", "fp16", "fp8")),
    Technique(
        "scaled_dot_product_attention",
        r"scaled_dot_product_attention|attn_implementation",
        _operator("aten::scaled_dot_product_attention"),
    ),
    Technique(
        "the fast path of nn.MultiheadAttention",
        r"need_weights=False|nn\.MultiheadAttention",
        _operator("aten::_native_multi_head_attention"),
    ),
    Technique("F.layer_norm", r"F\.layer_norm", _operator("aten::layer_norm", "aten::native_layer_norm")),
    Technique("F.rms_norm", r"F\.rms_norm", _operator("aten::rms_norm", "aten::_fused_rms_norm")),
    Technique("F.gelu", r"F\.gelu", _operator("aten::gelu")),
    Technique("F.cross_entropy", r"F\.cross_entropy", _operator("aten::cross_entropy_loss")),
    Technique(
        "nn.LSTM", r"nn\.(LSTM|GRU|RNN)\b", _operator("aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu")
    ),
    Technique("nn.Embedding", r"F\.embedding|nn\.Embedding(?!\()|functional\.embedding", _operator("aten::embedding")),
    Technique("channels_last", r"channels_last", _channels_last),
    Technique("a compiled loop", r"lax\.scan|tf\.while_loop", _a_loop),
    Technique("torch.linalg.solve", r"linalg\.solve", _operator("aten::linalg_solve", "aten::linalg_solve_ex")),
    Technique(
        "batched gradients", r"is_grads_batched|func\.(jacrev|vmap|grad)|autograd\.grad", _in_loop(r"torch/_functorch/")
    ),
    Technique("torch.stack", r"torch\.stack", _operator("aten::stack")),
    Technique("tensor.sum()", r"tensor\.sum", _operator("aten::sum")),
    Technique("torch.cdist", r"torch\.cdist", _operator("aten::cdist", "aten::_cdist_forward")),
    Technique(
        "a fused optimizer", r"fused=True", _operator("aten::_fused_adam_", "aten::_fused_adamw_", "aten::_fused_sgd_")
    ),
    Technique("DistributedDataParallel", r"DistributedDataParallel\b", _in_loop(r"torch/nn/parallel/distributed\.py$")),
    Technique("leadline.step()", r"leadline\.step\(\)", _steps_told),
)
"""In the order in which they are looked for."""
