"""Values with units, GPU tables, kernel names, work from shapes."""

from __future__ import annotations

import json
import math
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.hardware.gpus import find_gpu, known_gpus
from leadline.hardware.precision import precision_of
from leadline.hardware.roofline import convolution_output, convolution_work, roofline_ns, work_of
from leadline.whatif.draws import technique
from leadline.whatif.layerwork import bytes_of
from leadline.whatif.units import Unit, UnitError, parse
from leadline.work.kernels import KernelClass, classify


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("25GB/s", Unit.BANDWIDTH, 25e9),
        ("200Gb/s", Unit.BANDWIDTH, 25e9),
        ("100Gbps", Unit.BANDWIDTH, 12.5e9),
        ("5us", Unit.TIME, 5e3),
        ("5 µs", Unit.TIME, 5e3),
        ("1.5ms", Unit.TIME, 1.5e6),
        ("25MiB", Unit.SIZE, 25 * 1024**2),
        ("25MB", Unit.SIZE, 25e6),
        ("16", Unit.COUNT, 16),
        ("inf", Unit.COUNT, math.inf),
        ("2x", Unit.FACTOR, 2),
        ("1%", Unit.FACTOR, 0.01),
        ("1e-3", Unit.FACTOR, 0.001),
    ],
)
def test_values_as_users_write_them(text, unit, value):
    assert parse(text, unit, "p") == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "unit"),
    [("25", Unit.BANDWIDTH), ("25GB", Unit.BANDWIDTH), ("5", Unit.TIME), ("1.5", Unit.COUNT), ("-2", Unit.FACTOR),
     ("x", Unit.SIZE), ("", Unit.COUNT), ("nan", Unit.FACTOR)],
)  # fmt: skip
def test_values_that_make_no_sense_are_one_sentence(text, unit):
    with pytest.raises(UnitError, match=r"^bandwidth=.*\.$"):
        parse(text, unit, "bandwidth")


@given(st.text(max_size=20), st.sampled_from(list(Unit)))
def test_any_text_is_a_value_or_a_sentence(text, unit):
    try:
        value = parse(text, unit, "p")
    except UnitError:
        return
    assert isinstance(value, str) == (unit is Unit.TEXT)


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti"),
        ("Tesla V100-SXM2-32GB", "V100 SXM2"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("NVIDIA A100-PG509-200", "A100 SXM 40GB"),
        ("AMD Instinct MI300X", "MI300X"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA L4", "L4"),
    ],
)
def test_devices_as_traces_name_them(device, name):
    found = find_gpu(device)
    assert found is not None
    assert found.name == name


def test_unknown_device():
    assert find_gpu("GeForce 256") is None
    assert find_gpu("") is None


def test_every_number_has_a_source_and_makes_sense():
    for gpu in known_gpus():
        assert gpu.source, gpu.name
        rates = gpu.peak_tflops
        assert rates["fp32"] > 0
        assert rates["fp16"] >= rates["fp32"], gpu.name
        assert gpu.memory_gb_s > gpu.pcie_gb_s, gpu.name
    text = resources.files("leadline.whatif").joinpath("factors").joinpath("techniques.json").read_text("utf-8")
    for entry in json.loads(text)["factors"]:
        assert entry["least"] <= entry["expected"] <= entry["most"], entry["name"]
        assert len(entry["source"]) > 20, entry["name"]
        assert technique(entry["name"], larger_is_faster=False).expected == entry["expected"]


@pytest.mark.parametrize(
    ("name", "kind", "precision"),
    [
        ("sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x256x32", "convolution", "tf32"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_ffma", "matmul", "fp32"),
        ("cutlass_cudnn_train::Kernel<cutlass_tensorop_s1688wgrad_optimized_tf32_256x64>", "convolution", "tf32"),
        ("volta_sgemm_128x64_nn", "matmul", "fp32"),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "matmul", "fp16"),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_nn", "matmul", "bf16"),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", "matmul", "bf16"),
        ("Cijk_Ailk_Bljk_BBS_BH_MT128x128x32", "matmul", "bf16"),
        ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false>", "data movement", None),
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 64, 4, bf16>>", "attention", "bf16"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "collective", None),
        ("Memcpy HtoD (Pinned -> Device)", "copy", None),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>", "elementwise", None),
        ("void at::native::batch_norm_backward_kernel<float>", "normalisation", None),
        ("multi_tensor_apply_kernel", "optimizer", None),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", "reduction", None),
        ("triton_poi_fused_add_relu_0", "elementwise", None),
    ],
)
def test_kernel_names_of_all_generations(name, kind, precision):
    assert classify(name) is KernelClass(kind)
    if precision is not None:
        assert precision_of(name) == precision


@pytest.mark.parametrize("form", ["e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz"])  # "fnuz": MI300's
def test_every_form_of_fp8_is_fp8_and_one_byte(form):
    assert precision_of("Cijk_Alik_Bljk_MT256x256x64", [f"c10::Float8_{form}"]) == "fp8"
    assert bytes_of([16, 32], f"c10::Float8_{form}") == 512


def test_record_param_comms_is_no_matrix_product():
    """ "mm" is a part of "comms"; other profilers have counted communication as matrix work for that."""
    assert classify("record_param_comms") is not KernelClass.MATMUL


def test_work_from_shapes():
    work = work_of("aten::mm", [[128, 64], [64, 32]])
    assert work is not None
    assert work.flops == 2 * 128 * 64 * 32
    assert work.elements == 128 * 64 + 64 * 32 + 128 * 32
    assert work_of("aten::addmm", [[32], [128, 64], [64, 32], [], []]) == work
    assert work_of("aten::linear", [[4, 32, 64], [32, 64], [32]]) == work
    batched = work_of("aten::bmm", [[8, 128, 64], [8, 64, 32]])
    assert batched is not None
    assert batched.flops == 8 * work.flops
    assert work_of("aten::mm", [[128]]) is None
    assert work_of("aten::relu", [[128]]) is None


def test_convolution_from_shapes():
    output = convolution_output([512, 3, 224, 224], [64, 3, 3, 3], [1, 1], [1, 1], [1, 1])
    assert output == [512, 64, 224, 224]
    assert convolution_output([1, 3, 224, 224], [64, 3, 7, 7], [2], [3], [1]) == [1, 64, 112, 112]
    work = convolution_work([512, 3, 224, 224], [64, 3, 3, 3], output)
    assert work.flops == 2 * 512 * 64 * 224 * 224 * 27


def test_roofline_is_bound_by_the_slower_side():
    gpu = find_gpu("NVIDIA H100 80GB HBM3")
    assert gpu is not None
    square, vector = work_of("mm", [[8192, 8192], [8192, 8192]]), work_of("mm", [[1, 8192], [8192, 8192]])
    assert square is not None and vector is not None
    assert roofline_ns(square, "bf16", gpu) == pytest.approx(2 * 8192**3 / 989.4e12 * 1e9)
    assert roofline_ns(vector, "bf16", gpu) == pytest.approx((8192 + 8192**2 + 8192) * 2 / 3350e9 * 1e9)
    turing = find_gpu("RTX 2080 Ti")
    assert turing is not None
    assert roofline_ns(square, "bf16", turing) is None
