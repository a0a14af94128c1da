"""What kind of work an operator does: whole words of PyTorch's and JAX's names."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from functools import lru_cache

CLASSES = (
    "communication", "copy", "attention", "convolution", "matrix product", "normalisation", "embedding", "optimizer",
    "recurrent", "transform", "decomposition", "softmax", "pooling", "random", "sort", "element-wise", "fused",
    "compilation", "other", "unknown",
)  # fmt: skip
COMPILATION = "compilation"
"""What a compiler runs while it compiles: no work of the program, and listed apart."""
_OPERATORS: Mapping[str, str] = {
    "communication": "c10d c10d_functional record_param_comms nccl gloo allreduce all_reduce",
    "copy": (
        "copy copy_ to _to_copy contiguous clone cat stack fill_ zero_ zeros ones zeros_like ones_like full pin_memory "
        "concatenate convert_element_type broadcast_in_dim iota"
    ),
    "attention": (
        "flash_attn flash_attn_varlen varlen_attn _varlen_attn "
        "scaled_dot_product_attention flash_attention efficient_attention _flash_attention_forward "
        "_flash_attention_backward _efficient_attention_forward _efficient_attention_backward flex_attention "
        "multi_head_attention triton_multi_head_attention attention triton_scaled_dot_attention"
    ),
    "convolution": (
        "convolution conv1d conv2d conv3d convolution_backward cudnn_convolution mkldnn_convolution "
        "conv_general_dilated conv_transpose1d conv_transpose2d conv_transpose3d conv_dilated2d conv_dilated3d "
        "conv_depthwise2d conv_depthwise3d depthwise_convolution nnpack_spatial_convolution conv_tbc conv1d_relu "
        "conv2d_relu conv3d_relu conv2d_add conv2d_add_relu conv1d_dynamic conv2d_dynamic convolution_relu "
        "convolution_add_relu convolution_transpose convolution_double convolution_pointwise convolution_overrideable "
        "convolution_transpose_pointwise qconv_pointwise qconv1d_pointwise qconv2d_pointwise qconv3d_pointwise "
        "conv3d_dynamic conv_transpose1d_dynamic conv_transpose2d_dynamic conv_transpose3d_dynamic"
    ),
    "matrix product": (
        "mm addmm bmm baddbmm matmul linear addmv mv dot _scaled_mm _grouped_mm einsum dot_general addmm_activation "
        "addbmm inner vdot chain_matmul linalg_matmul linalg_multi_dot linalg_matrix_power linalg_vecdot matrix_power "
        "_foreach_mm tensordot bilinear trilinear int_mm weight_int8pack_mm weight_int4pack_mm dyn_quant_matmul_4bit "
        "weight_int4pack_mm_with_scales_and_zeros mixed_dtypes_linear linear_pointwise mkl_linear qlinear_pointwise "
        "linear_relu linear_relu_dynamic linear_relu_dynamic_fp16 linear_dynamic linear_dynamic_fp16 "
        "linear_dynamic_fp16_unpacked_weight linear_leaky_relu linear_tanh scaled_mm_v2 scaled_grouped_mm "
        "scaled_grouped_mm_v2 int4mm_packed_weight_cpu wrapped_quantized_linear_prepacked fbgemm_linear_fp16_weight "
        "fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation "
        "linear_with_input_q_dq_qweight_dq_output_fp32 linear_with_input_q_dq_qweight_dq_relu_output_fp32 sparse_mm "
        "sparse_mm_reduce_impl sparse_addmm sparse_sampled_addmm sparse_sparse_matmul hspmm sspaddmm smm "
        "cslt_sparse_mm sparse_semi_structured_mm sparse_semi_structured_addmm sparse_semi_structured_linear"
    ),
    "recurrent": (
        "rnn lstm gru rnn_layer rnn_tanh rnn_relu lstm_cell gru_cell lstm_mps rnn_tanh_cell rnn_relu_cell "
        "fused_lstm_cell fused_gru_cell fused_lstm_cell_backward_impl differentiable_lstm_cell "
        "differentiable_gru_cell quantized_lstm quantized_gru quantized_lstm_cell quantized_gru_cell "
        "quantized_rnn_relu_cell quantized_rnn_tanh_cell quantized_lstm_cell_dynamic quantized_gru_cell_dynamic "
        "quantized_rnn_relu_cell_dynamic quantized_rnn_tanh_cell_dynamic"
    ),
    "decomposition": (
        "linalg_svd linalg_svdvals svd linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh eig eigh schur linalg_qr "
        "qr geqrf orgqr ormqr linalg_householder_product householder_product linalg_cholesky linalg_cholesky_ex "
        "cholesky cholesky_inverse cholesky_solve cholesky_solve_helper linalg_inv linalg_inv_ex inverse linalg_pinv "
        "pinverse linalg_solve linalg_solve_ex linalg_solve_triangular triangular_solve tridiagonal_solve linalg_lu "
        "linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve lu lu_with_info lu_solve linalg_ldl_factor "
        "linalg_ldl_factor_ex linalg_ldl_solve linalg_lstsq linalg_det det logdet slogdet linalg_slogdet "
        "linalg_matrix_exp matrix_exp linalg_matrix_rank linalg_cond linalg_tensorinv linalg_tensorsolve spsolve"
    ),
    "transform": (
        "_fft_r2c _fft_c2r _fft_c2c fft_fft fft_ifft fft_rfft fft_irfft fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 "
        "fft_fftn fft_ifftn fft_rfftn fft_irfftn fft_hfft fft_ihfft stft istft fft"
    ),
    "normalisation": (
        "layer_norm native_layer_norm batch_norm native_batch_norm group_norm native_group_norm rms_norm "
        "native_layer_norm_backward native_batch_norm_backward cudnn_batch_norm instance_norm"
    ),
    "embedding": (
        "embedding embedding_bag embedding_dense index_select index_add index_put index_put_impl gather scatter "
        "scatter_add scatter-add dynamic_slice dynamic_update_slice"
    ),
    "optimizer": "_fused_adam_ _fused_adamw_ _fused_sgd_ _fused_adagrad_ _fused_adam _fused_adamw _fused_sgd",
    "softmax": (
        "softmax _softmax log_softmax _log_softmax _softmax_backward_data nll_loss nll_loss_nd cross_entropy_loss"
    ),
    "pooling": (
        "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d"
    ),
    "random": (
        "dropout native_dropout feature_dropout alpha_dropout feature_alpha_dropout bernoulli normal uniform random "
        "randn rand randint randperm randn_like rand_like randint_like exponential geometric cauchy log_normal poisson "
        "binomial standard_gamma sample_dirichlet rrelu_with_noise philox_normal philox_uniform random_bits "
        "random_gamma threefry2x32"
    ),
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
        "var std norm triu tril sum_ prod argmax argmin reduce_sum reduce_max reduce_min reduce_prod select_n logistic "
        "integer_pow cumlogsumexp logsumexp"
    ),
}
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


def class_of_generated(detail: str) -> str:
    """Of what it computes where it was made from a template (`Work` in capture/providers/torch/kernel_origin.py)."""
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        for work in json.loads(detail).get("work") or ():
            return class_of_operator(str(work["operator"])) or "fused"
    return "fused"
