"""What kind of work an operator or a kernel does, as data: whole words, the operator before the kernel's name.

The order of the rules is the order of the rows. A kernel is classed by the innermost operator above it that has a
class; only where there is none does its own name decide, word by word, since names mislead (`volta_sgemm` runs
convolutions, `ncclDevComm` holds an `mm`).
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.columns import Rows, nearest
from leadline.analysis.timesplit import communication_frames
from leadline.profiles import Tree
from leadline.schema import FrameKind

CLASSES = (
    "communication", "copy", "attention", "convolution", "matrix product", "normalisation", "embedding", "optimizer",
    "recurrent", "softmax", "pooling", "random", "sort", "element-wise", "fused", "compilation", "other", "unknown",
)  # fmt: skip
COMPILATION = "compilation"
"""What a compiler runs while it compiles: no work of the program, and listed apart."""
_OPERATORS: Mapping[str, str] = {
    "communication": "c10d c10d_functional record_param_comms nccl gloo allreduce all_reduce",
    "copy": (
        "copy copy_ to _to_copy contiguous clone cat stack fill_ zero_ zeros ones zeros_like ones_like full pin_memory"
    ),
    "attention": (
        "flash_attn flash_attn_varlen varlen_attn _varlen_attn "
        "scaled_dot_product_attention flash_attention efficient_attention _flash_attention_forward "
        "_flash_attention_backward _efficient_attention_forward _efficient_attention_backward flex_attention"
    ),
    "convolution": "convolution conv1d conv2d conv3d convolution_backward cudnn_convolution mkldnn_convolution",
    "matrix product": "mm addmm bmm baddbmm matmul linear addmv mv dot _scaled_mm _grouped_mm einsum",
    "recurrent": "rnn lstm gru rnn_layer rnn_tanh rnn_relu lstm_cell gru_cell lstm_mps",
    "normalisation": (
        "layer_norm native_layer_norm batch_norm native_batch_norm group_norm native_group_norm rms_norm "
        "native_layer_norm_backward native_batch_norm_backward cudnn_batch_norm instance_norm"
    ),
    "embedding": (
        "embedding embedding_bag embedding_dense index_select index_add index_put index_put_impl gather scatter "
        "scatter_add"
    ),
    "optimizer": "_fused_adam_ _fused_adamw_ _fused_sgd_",
    "softmax": (
        "softmax _softmax log_softmax _log_softmax _softmax_backward_data nll_loss nll_loss_nd cross_entropy_loss"
    ),
    "pooling": (
        "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d"
    ),
    "random": "dropout native_dropout bernoulli_ normal_ uniform_ random_ randn rand randint randperm",
    "sort": "sort topk argsort multinomial unique unique2 cumsum cumprod bincount searchsorted nonzero",
    "other": (  # views, allocations, and what the engine does around operators
        "view reshape t transpose permute select slice split expand as_strided unsqueeze squeeze chunk empty "
        "empty_strided empty_like detach detach_ unbind narrow alias resolve_conj resolve_neg lift_fresh "
        "cudnn_is_acceptable"
    ),
    "element-wise": (
        "add add_ sub sub_ mul mul_ div div_ pow pow_ exp log sqrt rsqrt tanh sigmoid relu relu_ gelu silu neg abs sum "
        "mean where clamp clamp_min threshold_backward gelu_backward silu_backward addcmul_ addcdiv_ lerp_ sqrt_ max "
        "min cos sin masked_fill masked_fill_ eq ne gt lt ge le mse_loss tanh_backward sigmoid_backward item foreach "
        "hardtanh leaky_relu elu erf round floor logical_and logical_or bitwise_and binary_cross_entropy_with_logits "
        "var std norm triu tril"
    ),
}
_KERNELS: tuple[tuple[str, str], ...] = (
    ("communication", r"^nccl(dev)?kernel|^nccl|rccl"),
    ("copy", r"^mem(cpy|set)\b|catarraybatched"),
    ("fused", r"^triton_"),
    ("attention", r"flash_(fwd|bwd)|fmha|attention"),
    (
        "convolution",
        r"conv(?!ert)|fft2d|implicit_|winograd|nchwtonhwc|nhwctonchw|dgrad|wgrad|"
        r"^batched_transpose_|^subtensorop|naive_conv|igemm_|gridwise",
    ),
    ("matrix product", r"gemm|gemv|nvjet|cublas|\bcijk"),
    ("normalisation", r"norm|batchnorm|welford|cudnn::bn_|miopenbatch"),
    ("optimizer", r"adam|multi_tensor_apply"),
    ("embedding", r"embedding|bucketize_sparse|permute_2d|bounds_check_indices|linearize_index|linearize_cache"),
    ("softmax", r"softmax|nll_loss"),
    ("pooling", r"max_pool|avg_pool|adaptive_average|atomic_adaptive"),
    ("sort", r"devicescan|radixsort|reducebykey|devicemergesort|uniquebykey"),
    ("element-wise", r"elementwise|vectorized|reduce_kernel"),
)
_FIND_OPERATOR = {word: name for name, words in _OPERATORS.items() for word in words.split()}
_FUNCTIONAL = ("c10d::", "_c10d_functional::", "nccl:", "gloo:", "record_param_comms", "mpi:", "ucc:")
_AROUND = (
    "autograd::engine::", "torch::autograd::", "Torch-Compiled Region", "TorchDynamo Cache Lookup", "CompiledFunction",
    "## Call CompiledFxGraph", "Pregraph bytecode", "AOTDispatcher Runtime Wrapper",
)  # fmt: skip
"""What the engine and compiled code do around the work."""


@lru_cache(maxsize=65536)
def class_of_operator(name: str) -> str:
    """The class of an operator, empty for one that has none of its own (it may hold others)."""
    if name.startswith(_FUNCTIONAL):
        return "communication"
    if name.startswith("Optimizer.step#"):
        return "optimizer"
    if name.startswith(_AROUND):
        return "other"
    if name.startswith("fbgemm::"):  # what recommendation models look up, sort and send
        return "embedding"
    word = name.rsplit("::", 1)[-1].split(".")[0]
    found = _FIND_OPERATOR.get(word) or _FIND_OPERATOR.get(_plain(word), "")
    if not found and word.startswith("_foreach_"):
        return "element-wise"
    return found or ("attention" if word.startswith("_scaled_dot_product_") else "")


def _plain(word: str) -> str:
    """An operator's word without the library that does it, and without backward, in place, or its output given."""
    word = re.sub(r"^_+", "", word)
    word = re.sub(r"^(cudnn|miopen|mkldnn|native|thnn|slow|fused|mps)_", "", word)
    ends = r"_backward(_data|_input|_weight|_reduce|_elemt)?|_forward|_out|_for_cpu|_with_indices|_+"
    return re.sub(rf"({ends})+$", "", word)


@lru_cache(maxsize=65536)
def class_of_kernel(name: str) -> str:
    """The class that a kernel's name tells, `unknown` where it tells none."""
    plain = name.lower().removeprefix("void ")
    for found, pattern in _KERNELS:
        if found == "convolution" and plain.startswith("fbgemm"):
            continue
        if found == "matrix product" and "fbgemm" in plain:
            continue
        if re.search(pattern, plain):
            return found
    return "unknown"


def classes_of_nodes(tree: Tree) -> Rows:
    """Per node a row of CLASSES, by the innermost operator on its path that has a class; work in an optimizer's step
    that would be element-wise or a copy is the optimizer's (but for its closure, which is the program's own work), and
    all that compiling runs is compilation. -1 where no operator tells."""
    kinds, parent = tree.kinds, tree.parent
    frames = len(tree.frames["kind"])
    operators = tree.frames["kind"] == int(FrameKind.OPERATOR)
    regions = (tree.frames["kind"] == int(FrameKind.REGION)) | (tree.frames["kind"] == int(FrameKind.COLLECTIVE))
    own = np.full(frames, -1, np.int64)
    made_by_compiler = generated_frames(tree)
    optimizing = np.zeros(frames, np.bool_)
    for frame in np.flatnonzero(operators | regions | (tree.frames["kind"] == int(FrameKind.PHASE))).tolist():
        name = tree.text("name", frame)
        if tree.frames["kind"][frame] == int(FrameKind.PHASE):
            optimizing[frame] = name == "optimizer"
        elif made_by_compiler[frame]:
            own[frame] = CLASSES.index(class_of_generated(tree.text("detail", frame)))
        elif found := class_of_operator(name):
            optimizing[frame] = name.startswith("Optimizer.step#")
            own[frame] = CLASSES.index(found) if operators[frame] or found == "communication" else -1
    own[communication_frames(tree)] = CLASSES.index("communication")  # also waiting for a collective
    compiling = nearest(tree.shape, tree.frame_rows(FrameKind.PHASE, "compile")[tree.frame_of]) >= 0
    made = own[tree.frame_of]
    inside = optimizing[tree.frame_of]
    borders = (kinds == int(FrameKind.THREAD)) | (kinds == int(FrameKind.PROCESS))
    borders |= tree.frame_rows(FrameKind.PHASE, "closure")[tree.frame_of]
    made_list, inside_list = made.tolist(), inside.tolist()
    update, other = CLASSES.index("optimizer"), CLASSES.index("other")
    weak = {CLASSES.index("element-wise"), CLASSES.index("copy"), other, -1}
    for row, above in enumerate(np.asarray(parent).tolist()):
        if above < 0 or borders[row]:
            continue
        inside_list[row] = inside_list[row] or inside_list[above]
        if made_list[row] < 0 or (made_list[row] == other and made_list[above] >= 0):
            made_list[row] = made_list[above]
        if inside_list[row] and made_list[row] in weak:
            made_list[row] = update
    return np.where(compiling, CLASSES.index(COMPILATION), np.array(made_list, np.int64))


def generated_frames(tree: Tree) -> NDArray[np.bool_]:
    """Per frame whether it is a kernel that torch.compile made for the CPU, which is a region that says of what."""
    regions = np.flatnonzero(tree.frames["kind"] == int(FrameKind.REGION)).tolist()
    found = np.zeros(len(tree.frames["kind"]), np.bool_)
    found[[frame for frame in regions if tree.text("detail", frame).startswith('{"operators": [')]] = True
    return found


def class_of_generated(detail: str) -> str:
    """Of what it computes where it was made from a template (`Work` in capture/providers/kernel_origin.py)."""
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        for work in json.loads(detail).get("work") or ():
            return class_of_operator(str(work["operator"])) or "fused"
    return "fused"
