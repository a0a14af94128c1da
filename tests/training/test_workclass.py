"""Classes of operators and kernels: each row is a name that a table of substrings gets wrong, or a plain one."""

import numpy as np
import pytest

from leadline.analysis.overlap import wall_split
from leadline.analysis.workclass import CLASSES, class_of_kernel, class_of_operator, classes_of_nodes
from leadline.profiles.build import build


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
        ("mylib::commander", ""),  # holds "mm" too
        ("aten::add.Tensor", "element-wise"),
    ],
)
def test_operators(name: str, expected: str) -> None:
    assert class_of_operator(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", "communication"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("void multi_tensor_apply_kernel<AdamFunctor<float>, adamMode_t>", "optimizer"),
        ("void fft2d_c2r_32x32<float>", "convolution"),
        ("nchwToNhwcKernel", "convolution"),
        ("triton_poi_fused_add_0", "fused"),
        ("void fbgemm_gpu::permute_2D_data_kernel<>", "unknown"),
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
