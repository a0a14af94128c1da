"""Classes of operators and kernels: each row is a name that a table of substrings gets wrong, or a plain one."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.analysis.overlap import wall_split
from leadline.analysis.workclass import classes_of_nodes
from leadline.profiles import Tree
from leadline.profiles.build import build
from leadline.work.kernels import class_of_kernel
from leadline.work.operators import CLASSES, class_of_operator


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::mm", "matrix product"),
        ("record_param_comms", "communication"),  # holds "mm"
        ("c10d::allreduce_", "communication"),
        ("gloo:all_reduce", "communication"),
        ("nccl:all_gather", "communication"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", "attention"),
        ("aten::convolution_backward", "convolution"),
        ("aten::_foreach_addcdiv_", "element-wise"),
        ("Optimizer.step#AdamW.step", "optimizer"),
        ("aten::view", "other"),
        ("autograd::engine::evaluate_function: MmBackward0", "other"),
        ("aten::cudnn_batch_norm_backward", "normalisation"),
        ("aten::max_pool2d_with_indices_backward", "pooling"),
        ("aten::_softmax_backward_data", "softmax"),
        ("fbgemm::permute_2D_sparse_data", "embedding"),
        ("mylib::commander", ""),  # holds "mm" too
        ("aten::add.Tensor", "element-wise"),
    ],
)
def test_operators(name: str, expected: str) -> None:
    assert class_of_operator(name) == expected


_WORK = {
    "convolution": r"(slow_|thnn_)?conv(_transpose|_dilated|_depthwise)?[123]d(_relu|_dynamic)?(_forward|_backward)?$",
    "matrix product": r"(add|b|baddb|int_|scaled_|grouped_|foreach_)?mm_?$|matmul$|(mkldnn_)?linear(_relu|_dynamic)*$",
    "recurrent": r"(lstm|gru|rnn_tanh|rnn_relu)(_cell)?$|thnn_fused_(lstm|gru)_cell(_backward)?$",
    "decomposition": r"linalg_(svd|eig|qr|cholesky|inv|solve|lu_factor|lstsq|det|slogdet|pinv|matrix_exp)",
    "random": r"(rand|randn|randint|randperm|bernoulli|normal|uniform|exponential|poisson)(_like)?_?$|\w*dropout_?$",
}
"""What names of PyTorch say of themselves."""


@pytest.mark.parametrize("expected", _WORK)
def test_every_operator_of_torch_that_says_what_it_computes(expected: str) -> None:
    names = {one.name for one in torch._C._jit_get_all_schemas() if one.name.startswith(("aten::", "quantized::"))}
    mine = {name for name in names if re.match(_WORK[expected], name.partition("::")[2].lstrip("_"))}
    assert len(mine) > 5
    assert {name: found for name in sorted(mine) if (found := class_of_operator(name)) != expected} == {}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", "communication"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("void multi_tensor_apply_kernel<AdamFunctor<float>, adamMode_t>", "optimizer"),
        ("void fft2d_c2r_32x32<float>", "convolution"),
        ("nchwToNhwcKernel", "convolution"),
        ("triton_poi_fused_add_0", "fused"),
        ("void fbgemm_gpu::permute_2D_data_kernel<>", "embedding"),  # holds "gemm"
        ("void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512>", "normalisation"),
        ("SubTensorOpWithCastTensor1d", "convolution"),
        ("nvjet_hsh_192x192_64x3", "matrix product"),
        ("Memcpy HtoD (Pageable -> Device)", "copy"),
        ("spin_kernel", "unknown"),
    ],
)
def test_kernels_without_an_operator(name: str, expected: str) -> None:
    assert class_of_kernel(name) == expected


def test_the_innermost_operator_with_a_class_wins_over_the_kernels_name() -> None:
    profile = build("""
        python train @ train.py:3
          operator aten::conv2d
            operator aten::convolution
              operator aten::view
                kernel volta_sgemm_128x64_nn | gpu_time@0:7=10
          phase optimizer
            operator aten::add_
              kernel vectorized_elementwise | gpu_time@0:7=5
    """)
    tree = profile.tree
    found = {tree.node(row).name: CLASSES[number] for row, number in enumerate(classes_of_nodes(tree)) if number >= 0}
    assert found["volta_sgemm_128x64_nn"] == "convolution"
    assert found["vectorized_elementwise"] == "optimizer"


# (row, milliseconds) of a published summary: KempnerForge, benchmarks/profiling/13b_24gpu_profiling.md, H200
PUBLISHED = {
    "record_param_comms": 24818.6,
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<": 19265.3,
    "nccl:_all_gather_base": 15875.2,
    "aten::mm": 7684.6,
    "nccl:all_gather_into_tensor_coalesced": 3389.8,
    "nvjet_tst_320x128_64x3_1x2_h_bz_coopB_TNT": 3239.3,
    "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernel": 2953.4,
    "nccl:_reduce_scatter_base": 2953.4,
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKerne": 2532.3,
    "nccl:reduce_scatter_tensor_coalesced": 2532.3,
    "nvjet_tst_320x128_64x3_1x2_h_bz_coopB_NNT": 1934.6,
    "aten::cat": 1760.2,
    "aten::mul": 1473.2,
    "nvjet_tst_192x192_64x3_1x2_h_bz_coopB_NTN": 1149.4,
    "void at::native::(anonymous namespace)::CatArrayBatchedCo": 1100.6,
    "aten::copy_": 841.3,
    "nvjet_tst_192x192_64x3_2x1_v_bz_coopB_NTN": 567.0,
    "void at::native::elementwise_kernel<128, 4, at::native::g": 565.0,
    "aten::_cudnn_attention_backward": 521.1,
}
PUBLISHED_TOTALS = {"matrix product": 41_043, "communication": 49_637, "other": 13_740 + 115}


def test_what_a_closure_runs_is_not_the_optimizers() -> None:
    """As in Lightning, whose optimizers call the whole training step."""
    profile = build(
        """
process python train.py
  thread MainThread
    phase optimizer
      operator Optimizer.step#AdamW.step | time=1/1
        operator aten::lerp_ | time=2/1
        phase closure
          operator aten::relu | time=4/1
          operator aten::copy_ | time=8/1
          operator aten::mystery | time=16/1
          phase backward
            operator aten::threshold_backward | time=32/1
"""
    )
    tree = profile.tree
    found = {node.name: int(classes_of_nodes(tree)[node.row]) for node in tree.find(kind="operator")}
    expected = {"aten::lerp_": "optimizer", "aten::relu": "element-wise", "aten::copy_": "copy"}
    expected |= {"aten::threshold_backward": "element-wise", "Optimizer.step#AdamW.step": "optimizer"}
    assert {name: CLASSES[row] for name, row in found.items() if row >= 0} == expected
    assert found["aten::mystery"] == -1


def test_a_published_table_counted_once() -> None:
    kernels: dict[str, float] = {}
    operators: dict[str, float] = {}
    for name, milliseconds in PUBLISHED.items():
        is_operator = name.startswith(("aten::", "nccl:", "record_param_comms"))
        group = operators if is_operator else kernels
        found = class_of_operator(name) if is_operator else class_of_kernel(name)
        group[found] = group.get(found, 0.0) + milliseconds
    assert {name: round(sum_ms) for name, sum_ms in kernels.items()} == {
        "communication": 24_751, "matrix product": 6_890, "copy": 1_101, "element-wise": 565,
    }  # fmt: skip
    collectives = operators["communication"] - PUBLISHED["record_param_comms"]
    assert collectives == pytest.approx(kernels["communication"], rel=1e-4), "its operators are the same time again"
    assert PUBLISHED["record_param_comms"] == pytest.approx(kernels["communication"], rel=0.003), "and a third time"
    # each other row is there as an operator and as its kernels
    once = {
        "matrix product": (PUBLISHED_TOTALS["matrix product"] - PUBLISHED["record_param_comms"]) / 2,
        "communication": kernels["communication"],
        "other": PUBLISHED_TOTALS["other"] / 2,
    }
    assert {name: round(value / 1000, 1) for name, value in once.items()} == {
        "matrix product": 8.1, "communication": 24.8, "other": 6.9,
    }  # fmt: skip
    share = {name: round(100 * value / sum(once.values()), 1) for name, value in once.items()}
    assert share == {"matrix product": 20.4, "communication": 62.2, "other": 17.4}
    assert once["matrix product"] >= max(operators["matrix product"], kernels["matrix product"])


def test_parts_of_wall_time_equal_a_count_of_every_instant() -> None:
    random = np.random.default_rng(5)
    for _ in range(50):
        parts = []
        for _ in range(4):
            begin = random.integers(0, 100, 6)
            parts.append(np.stack([begin, begin + random.integers(0, 30, 6)], axis=1))
        split = wall_split(*parts)
        inside, compute, talk, copy = (
            np.array([any(low <= at < high for low, high in part) for at in range(150)]) for part in parts
        )
        assert split.window_ns == inside.sum()
        assert split.compute_ns == (inside & compute).sum()
        assert split.overlapped_ns == (inside & compute & talk).sum()
        assert split.exposed_communication_ns == (inside & talk & ~compute).sum()
        assert split.exposed_copy_ns == (inside & copy & ~talk & ~compute).sum()
        assert split.idle_ns == (inside & ~compute & ~talk & ~copy).sum()
        parts_ns = (split.compute_ns, split.exposed_communication_ns, split.exposed_copy_ns, split.idle_ns)
        assert sum(parts_ns) == split.window_ns


def test_triangles_are_elements_chosen_one_by_one() -> None:
    assert {class_of_operator(f"aten::{name}") for name in ("triu", "tril", "triu_", "tril_")} == {"element-wise"}


def _by_a_walk(tree: Tree) -> list[int]:
    """The classes of the few kinds of frames below, node by node from the root down."""
    classes, inside = [], []
    other, update = CLASSES.index("other"), CLASSES.index("optimizer")
    for row, above in enumerate(tree.parent.tolist()):
        node = tree.node(row)
        own = class_of_operator(node.name) if node.kind == "operator" else ""
        found = CLASSES.index(own) if own else -1
        optimizing = node.name in ("optimizer", "Optimizer.step#SGD.step")
        if above >= 0 and node.kind not in ("process", "thread") and node.name != "closure":
            optimizing = optimizing or inside[above]
            if found < 0 or (found == other and classes[above] >= 0):
                found = classes[above]
            if optimizing and found in (-1, other, CLASSES.index("element-wise"), CLASSES.index("copy")):
                found = update
        classes.append(found)
        inside.append(optimizing)
    return classes


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6)), min_size=1, max_size=40))
def test_classes_of_whole_columns_are_those_of_a_walk(drawn: list[tuple[int, int]]) -> None:
    frames = (
        "operator aten::view",
        "operator aten::mm",
        "operator aten::add",
        "operator unheard::of",
        "phase optimizer",
        "operator Optimizer.step#SGD.step",
        "phase closure",
        "python f @ f.py:1",
        "operator aten::copy_",
        "phase forward",
    )
    depth, lines = 0, []
    for number, (kind, level) in enumerate(drawn):
        depth = min(level, depth + 1) if number else 0
        lines.append("  " * depth + frames[kind])
    tree = build("\n".join(lines)).tree
    assert classes_of_nodes(tree).tolist() == _by_a_walk(tree)
