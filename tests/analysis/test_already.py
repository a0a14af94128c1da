"""No finding recommends what its own profile shows in use, and no advice is without a guard."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import leadline.analysis.rules as rules
from leadline.analysis.already import NOTHING_NEW, TECHNIQUES, fitting
from leadline.analysis.case import Case
from leadline.analysis.findings import Finding, Gain, Severity
from leadline.profiles.build import build
from leadline.schema import FrameKind

NAMES = re.compile(
    r"[A-Za-z_]\w*(?:\.\w+)+|\b[a-z]\w*=(?:True|False|\w+)|\b[a-z_]+\([^)]*\)|\b[a-z]+(?:_[a-z0-9]+)+\b|\b[A-Z_]{6,}=?\w*"
)
"""Interfaces, as advice names them."""
WHAT_WAS_SEEN = {
    "cache_preemption": "requests were seen put back for want of cache",
    "growing_queue": "the queue was seen to grow from third to third",
    "prefill_stalls": "decode steps were seen waiting for long prefills",
    "one_python_thread": "one thread was seen busy with Python while the engine served",
    "tokenising": "tokenising was seen to hold one thread",
    "sampler_synchronisation": "waits for the device were seen in the sampler",
    "graph_padding": "graphs were seen larger than their batches",
    "scheduler_gap": "the engine was seen idle between its steps",
    "allocator": "fragments, calls of empty_cache and histories that hold graphs were seen",
    "block_shape": "the shape of the user's own kernel was measured",
    "blocked": "a wait in another program was seen on the line",
    "captured_constants": "the compiled program was seen to hold them",
    "communication": "asks which wrapper exchanges (tests/steps/test_advice.py)",
    "logging_in_loop": "tensors were seen printed or logged in every step",
    "what_is_logged": "its part: tensors were seen printed or logged in every step",
    "module_hooks": "the hook was seen in every step, and its source changes nothing",
    "sorted_for_few": "a whole sort was seen, and the source reads a few of its values",
    "data_loading": "workers, their starts and what the loop waited for were seen",
    "debug_modes": "the mode was seen switched on",
    "deterministic_backward": "the slow path was seen",
    "donation": "the compiled program says what it donates",
    "double_precision": "the compiled program was seen to compute in 64 bits",
    "garbage_collection": "collections were seen in steps",
    "gradients_in_vain": "gradients were seen that nobody used",
    "graph_breaks": "breaks were counted by the compiler",
    "grows": "a path was seen to take longer with every step",
    "host_callbacks": "callbacks into Python were seen in compiled programs",
    "host_copies": "copies from the host were seen in each step",
    "interpreter_lock": "the loop was seen waiting for the interpreter that the other thread held",
    "library_lines": "the class was seen to take it on several lines, with the operators of its constructor",
    "jaxwaits": "waits of the host for the device were seen in each step",
    "last_logits": "the model was seen called without it, and scores of all positions computed",
    "layout_conversion": "conversions of the layout were seen",
    "matmul_shape": "the precision was read from names of kernels, double from parameters",
    "occupancy": "the shape of the user's own kernel was measured",
    "op_by_op": "programs of single operations were seen",
    "pageable_copies": "copies from pageable memory were seen",
    "pairs_reduced": "all pairs were seen written out",
    "partly_used": "results were seen of which a part is used",
    "prefix_again": "the same model was seen to be given sequences longer by one each time",
    "passes_again": "the same pass was seen more than once",
    "random_numbers": "random numbers were seen drawn in steps",
    "recompilation": "compilations were seen again, with what changed",
    "recorded_in_vain": "graphs were seen recorded and not used",
    "computed_again": "the same operators were seen to get the same values",
    "rows_one_by_one": "rows were seen taken one by one",
    "redundant_work": "the same inputs were seen to give the same results",
    "saving_in_loop": "the step was seen to wait for a file",
    "scratch_memory": "scratch memory was seen given back and taken again",
    "promoted": "an operator was seen that takes float32 and float64 tensors",
    "sparse_gradients": "dense gradients of embeddings were seen made",
    "slow_type": "a type without a fast path was seen",
    "synchronisation": "waits for values were seen on the line",
    "uncoalesced": "sectors of accesses were counted",
    "unrolled_loop": "the compiled program was seen to repeat itself",
    "unused_device": "the device was seen idle while the CPU computed",
    "unused_gradients": "gradients were seen of parameters that nobody updates",
    "weights_again": "the same weights were seen computed again",
    "made_weights": "weights were seen built from parameters alone",
    "broadcast_larger": "a tensor was seen many times as large as what it is made of",
    "product_order": "the shapes of both products were seen, and nothing that rules the other order out",
    "discarded_results": "weights of results were seen to be mostly zeros",
    "kept_results": "results of all steps were seen alive at once",
    "padding": "the padding of batches was counted",
}
"""Rules whose finding itself rules out that the program does what they recommend, and why."""
SEEN_THERE = {
    ("whole_arrays", "np.random.choice"): "said of a line that calls it with p",
    ("whole_arrays", "np.searchsorted"): "said of a line that draws with np.random.choice",
    ("hotspot", "register_full_backward_hook"): "said where such a hook takes the time",
    ("optimizer_loop", "torch._foreach_"): "not said where one of them runs in the optimizer's step",
    ("optimizer_loop", "torch.optim"): "said of optimizers that are none of them",
}
OF_LEADLINE = re.compile(r"leadline|cpu_sample|--|pattern|set_rule")


def advice() -> Iterator[tuple[str, str]]:
    """(rule, text) of every sentence in the rules' files that could be shown."""
    folder = Path(rules.__file__).parent
    for path in sorted(folder.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in documented else None
            if isinstance(text, str) and len(text) > 40 and " " in text:
                yield path.stem, text


def test_every_name_of_an_interface_in_advice_is_guarded() -> None:
    unguarded = [
        (rule, name)
        for rule, text in advice()
        for name in NAMES.findall(text)
        if rule not in WHAT_WAS_SEEN
        and not OF_LEADLINE.search(name)
        and (rule, name) not in SEEN_THERE
        and not any(re.search(one.words, name) for one in TECHNIQUES)
    ]
    assert not unguarded, "give it a predicate in analysis/already.py, or say in WHAT_WAS_SEEN what rules it out"


def test_every_rule_that_is_excused_exists() -> None:
    names = {path.stem for path in Path(rules.__file__).parent.glob("*.py")}
    assert set(WHAT_WAS_SEEN) <= names


LOOP = """
thread main | wall_ns=1000 cpu_ns=900
  python main @ /home/ada/train.py:9
    {above}python step @ /home/ada/train.py:12
      operator aten::mm | time=900/10 call_time=900/10
{inside}
    phase optimizer | time=10/10 call_time=10/10
  phase step | call_time=990/9
"""
USED = {
    "pinned memory": "        copy Memcpy HtoD (Pinned -> Device) | gpu_time@0:7=90/10",
    "torch.compile": "      operator Torch-Compiled Region | time=90/10 call_time=90/10",
    "autocast": "        kernel sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n | gpu_time@0:7=90/10",
    "tensor cores": "        kernel sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n | gpu_time@0:7=90/10",
    "scaled_dot_product_attention": "      operator aten::scaled_dot_product_attention | time=90/10 call_time=90/10",
    "the fast path of nn.MultiheadAttention": "      operator aten::_native_multi_head_attention | time=90/10 call_time=90/10",
    "F.layer_norm": "      operator aten::layer_norm | time=90/10 call_time=90/10",
    "F.rms_norm": "      operator aten::rms_norm | time=90/10 call_time=90/10",
    "F.gelu": "      operator aten::gelu | time=90/10 call_time=90/10",
    "F.cross_entropy": "      operator aten::cross_entropy_loss | time=90/10 call_time=90/10",
    "nn.LSTM": "      operator aten::lstm | time=90/10 call_time=90/10",
    "nn.Embedding": "      operator aten::embedding | time=90/10 call_time=90/10",
    "channels_last": "        kernel xmma_fprop_implicit_gemm_nhwckrsc_nhwc | gpu_time@0:7=90/10",
    "a compiled loop": "      operator while | time=90/10 call_time=90/10",
    "torch.linalg.solve": "      operator aten::linalg_solve | time=90/10 call_time=90/10",
    "batched gradients": "      python vmap_impl @ /v/torch/_functorch/vmap.py:9\n"
    "        operator aten::add | time=90/10 call_time=90/10",
    "torch.stack": "      operator aten::stack | time=90/10 call_time=90/10",
    "tensor.sum()": "      operator aten::sum | time=90/10 call_time=90/10",
    "torch.cdist": "      operator aten::cdist | time=90/10 call_time=90/10",
    "a fused optimizer": "      operator aten::_fused_adam_ | time=90/10 call_time=90/10",
    "DistributedDataParallel": "      python forward @ /v/torch/nn/parallel/distributed.py:9\n"
    "        operator aten::to | time=90/10 call_time=90/10",
    "leadline.step()": "",
}  # fmt: skip
SAID = {
    "the fast path of nn.MultiheadAttention": "need_weights=False",
    "a fused optimizer": "fused=True",
    "pinned memory": "pin_memory=True",
    "autocast": "torch.autocast",
    "tensor cores": "torch.set_float32_matmul_precision('high')",
    "a compiled loop": "lax.scan",
    "batched gradients": "is_grads_batched=True",
}
"""What advice calls it, where that is not its name."""


def finding(case: Case, remedy: str) -> Finding:
    rows = np.flatnonzero(case.named(FrameKind.OPERATOR, "aten::mm"))
    gain = Gain(0, 0, 0, "", "step", 100)
    return Finding("rule", Severity.INFO, "title", gain, tuple(rows.tolist()), (), (), remedy)


def case_of(inside: str) -> Case:
    return Case(build(LOOP.format(above="", inside=inside)))


@pytest.mark.parametrize("name", [one.name for one in TECHNIQUES if one.name != "leadline.step()"])
def test_what_is_in_use_is_not_recommended(name: str) -> None:
    word = SAID.get(name, name)
    without, used = case_of("      operator aten::add | time=90/10 call_time=90/10"), case_of(USED[name])
    remedy = f"Use {word}. Take a larger batch."
    assert fitting(without, finding(without, remedy)).remedy == remedy
    assert fitting(used, finding(used, remedy)).remedy == "Take a larger batch."
    alone = fitting(used, finding(used, f"Use {word}."))
    assert alone.remedy == f"{NOTHING_NEW} ({name}): inspect the paths one by one."


def test_an_import_of_the_compiler_compiles_nothing() -> None:
    """torch's optimizers import torch._inductor."""
    case = case_of(
        "      python _call @ <frozen importlib._bootstrap>:241\n"
        "        python <module> @ /v/torch/_inductor/__init__.py:9 | cpu_sample=90/10"
    )
    assert fitting(case, finding(case, "Use torch.compile.")).remedy == "Use torch.compile."


def test_a_sentence_that_names_another_way_stays_with_a_note() -> None:
    used = case_of(USED["F.gelu"])
    said = fitting(used, finding(used, "Use F.gelu, or torch.compile."))
    assert said.remedy == "Use F.gelu, or torch.compile (F.gelu: in use already)."
    assert replace(said, remedy="") == replace(finding(used, ""), remedy="")
