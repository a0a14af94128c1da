"""Rules about devices and ranks, on drawn profiles: each problem and what must not be taken for it."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import MS, named, names, training

from leadline.analysis.analyze import analyze
from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder

LINE = "python main @ /home/ada/train.py:43"


def copies(number, each_bytes, name="Memcpy HtoD (Pageable -> Device)", ns=1000):
    return (
        LINE,
        f"  operator aten::copy_ | time={number * 100}/{number} call_time={number * 100}/{number}",
        f"    copy {name} | gpu_time@0:7={number * ns}/{number} copy_bytes@0:7={number * each_bytes}/{number}",
    )


def test_many_small_copies_are_named_and_few_are_not():
    one = named(analyze(training(*copies(400, 64))), "small_copies")
    assert "40 copies a step of 64 B" in one.title
    assert one.lines[0].line == 43
    assert "small_copies" not in names(analyze(training(*copies(40, 64))))
    assert "small_copies" not in names(analyze(training(*copies(400, 1_000_000))))


def test_batches_from_pageable_memory_are_named_and_pinned_ones_are_not():
    slow = 1_000_000
    assert named(analyze(training(*copies(10, 1_000_000, ns=slow))), "pageable_copies").lines[0].line == 43
    pinned = copies(10, 1_000_000, "Memcpy HtoD (Pinned -> Device)", slow)
    assert "pageable_copies" not in names(analyze(training(*pinned)))
    assert "pageable_copies" not in names(analyze(training(*copies(10, 8, ns=slow))))


def test_small_kernels_of_one_line_are_one_finding():
    lines = (LINE, "  operator aten::add | time=400/400 call_time=400/400", "    kernel add | gpu_time@0:7=800000/400")
    one = named(analyze(training(*lines)), "kernel_fusion")
    assert "40 kernels a step of 2.00 µs" in one.title
    large = (
        LINE,
        "  operator aten::add | time=400/400 call_time=400/400",
        "    kernel add | gpu_time@0:7=80000000/400",
    )
    assert "kernel_fusion" not in names(analyze(training(*large)))


def with_kernel(operator, kernel, **detail):
    """Steps of one operator with one kernel; `detail` of the device."""
    profile = training(LINE, f"  operator {operator} | time=100/10 call_time=100/10", f"    kernel {kernel}")
    profile.devices[0].detail.update(detail)
    return profile


def test_blocks_for_warps_of_32_leave_half_of_a_wavefront_empty():
    """The case of instance norm that DeepContext's paper shows: the same launch is fine on one maker's device."""

    def norm(threads, **detail):
        shape = f"gpu_time@0:7=9000000/10 block_threads={threads * 10}/10"
        return analyze(with_kernel("aten::instance_norm", f"instance_norm | {shape}", **detail))

    one = named(norm(32, vendor="AMD", wavefront=64), "block_shape")
    assert one.title.startswith("Blocks of 32 threads leave 50 % of the wavefronts' lanes empty")
    assert one.lines[0].line == 43 and one.gain.high_ns == 450_000
    assert "chosen for warps of 32" in one.remedy
    assert "33 threads" in named(norm(33), "block_shape").title
    for threads, detail in (
        (32, {}),
        (32, {"vendor": "AMD", "wavefront": 32}),
        (256, {"vendor": "AMD", "wavefront": 64}),
    ):
        assert "block_shape" not in names(norm(threads, **detail))
    silent = norm(32, vendor="AMD").not_applicable
    assert "is unknown" in next(one.reason for one in silent if one.rule == "block_shape")


def test_a_kernel_with_fewer_blocks_than_compute_units_is_named_unless_it_is_short_or_the_device_unknown():
    def reduce(blocks, ms=9, **detail):
        grid = f"gpu_time@0:7={int(ms * 1e6)}/10 grid_blocks={blocks * 10}/10"
        return analyze(with_kernel("aten::sum", f"reduce | {grid}", **detail))

    amd = {"vendor": "AMD", "wavefront": 64, "multiprocessors": 304}
    one = named(reduce(76, **amd), "small_grid")
    assert one.title.startswith("76 blocks for 304 compute units") and one.severity.value == "info"
    assert "75 % of the compute units" in one.evidence[1]
    assert one.gain.high_ns == 675_000  # three quarters of 0.9 ms a step
    assert "small_grid" not in names(reduce(304, **amd))
    assert "small_grid" not in names(reduce(76, ms=0.1, **amd))
    for detail in ({}, {"multiprocessors": None}):
        silent = reduce(76, **detail).not_applicable
        assert "is unknown" in next(one.reason for one in silent if one.rule == "small_grid")


def test_remedies_use_the_words_of_the_devices_maker():
    lines = (LINE, "  operator aten::add | time=400/400 call_time=400/400", "    kernel add | gpu_time@0:7=800000/400")
    profile = training(*lines)
    assert "CUDA graph" in named(analyze(profile), "kernel_fusion").remedy
    profile.devices[0].detail["vendor"] = "AMD"
    assert "HIP graph" in named(analyze(profile), "kernel_fusion").remedy


def test_a_device_that_idles_behind_a_line_names_the_line():
    lines = (
        LINE,
        "  operator aten::stack | time=50000000/10 call_time=50000000/10 gpu_idle_time=40000000/10",
        "    kernel stack | gpu_time@0:7=1000000/10",
    )
    one = named(analyze(training(*lines)), "cpu_latency")
    assert one.lines[0].line == 43
    assert one.gain.high_ns == 4_000_000


def test_kernels_that_turn_layouts_are_named():
    lines = (
        LINE,
        "  operator aten::convolution | time=100/10 call_time=100/10",
        "    kernel void cudnn::nchwToNhwcKernel<float> | gpu_time@0:7=2000000/10",
        "    kernel conv | gpu_time@0:7=9000000/10",
    )
    assert "NCHW" in named(analyze(training(*lines)), "layout_conversion").title


def test_a_kernel_in_nhwc_beside_conversions_is_no_channels_last():
    """cuDNN computes in NHWC and converts tensors in NCHW before and after: channels_last is what is missing."""
    lines = (
        LINE,
        "  operator aten::convolution | time=100/10 call_time=100/10",
        "    kernel void cudnn::nchwToNhwcKernel<float> | gpu_time@0:7=2000000/10",
        "    kernel sm90_xmma_fprop_implicit_gemm_nhwckrsc_nhwc | gpu_time@0:7=9000000/10",
    )
    assert "channels_last" in named(analyze(training(*lines)), "layout_conversion").remedy


def test_sizes_that_are_no_multiples_of_eight():
    def product(shape, detail=True):
        told = f' detail={{"shapes":{shape}}}' if detail else ""
        return (
            LINE,
            f"  operator aten::mm | time=100/10 call_time=100/10{told}",
            "    kernel gemm | gpu_time@0:7=9000000/10",
        )

    assert "50257" in named(analyze(training(*product("[[512,768],[768,50257]]"))), "matmul_shape").title
    assert "matmul_shape" not in names(analyze(training(*product("[[512,768],[768,50264]]"))))
    silent = analyze(training(*product("", detail=False))).not_applicable
    assert next(one.reason for one in silent if one.rule == "matmul_shape").startswith("shapes were not recorded")


def test_products_of_a_few_rows_are_those_of_a_tiny_batch():
    def product(shape):
        return (LINE, f'  operator aten::linear | time=100/10 call_time=100/10 detail={{"shapes":{shape}}}', "    kernel gemm | gpu_time@0:7=9000000/10")  # fmt: skip

    found = named(analyze(training(*product("[[1,4,4096],[4096,4096],[4096]]"))), "matmul_shape")
    assert "at most 4 rows" in found.title and found.severity.value == "info"
    for healthy in ("[[8,128,4096],[4096,4096],[4096]]", "[[1,4,64],[64,64],[64]]", "[[4,64,64],[4,64,64]]"):
        assert "matmul_shape" not in names(analyze(training(*product(healthy))))


def exchanged(begin_us):
    """A step of 12 ms on a device: computing for 8, and communicating for 4 from `begin_us` on."""
    tree = """
process train.py | pid=5 rank=0
  thread main | tid=5
    python main @ /home/ada/train.py:43
      operator c10d::allreduce_ | time=1000/10 call_time=1000/10
        kernel ncclDevKernel_AllReduce #talk | gpu_time@0:8=40000000/10
    python main @ /home/ada/train.py:44
      operator aten::mm | time=1000/10 call_time=1000/10
        kernel gemm #work | gpu_time@0:7=80000000/10
    python main @ /home/ada/train.py:45
      phase optimizer | time=10/10 call_time=10/10
    phase step | call_time=108000000/9"""
    rows = [
        f"{step * 12_000_000 + start * 1000} {length * 1000} kernel {node} -1 0 {stream} {step}"
        for step in range(3)
        for start, length, node, stream in ((0, 8000, "work", 7), (begin_us, 4000, "talk", 8))
    ]
    return build(
        tree.lstrip("\n"), events="start_ns duration_ns kind node thread device stream step\n" + "\n".join(rows)
    )


def test_communication_that_computation_hides_is_not_blamed_and_the_rest_is():
    assert "communication" not in names(analyze(exchanged(3000)))
    found = named(analyze(exchanged(7000)), "communication")
    assert found.evidence[1].startswith("75 % of it is exposed in the trace window")
    assert found.gain.high_ns == 3_000_000


@pytest.mark.parametrize(("file", "fix"), [("nn/parallel/distributed.py", "bucket_cap_mb=50"), ("optim/sgd.py", "")])
def test_buckets_are_tried_only_where_the_program_has_them(file, fix):
    wraps = f"  python forward @ /usr/lib/python3.11/site-packages/torch/{file}:9"
    mm, talk = (f"operator {name} | time={90 * MS}/10 call_time={90 * MS}/10" for name in ("aten::mm", "c10d::send"))
    found = named(analyze(training(LINE, wraps, f"    {mm}", LINE, f"  {talk}")), "communication")
    assert found.fix == fix
    assert ("bucket_cap_mb" in found.measured_by) == bool(fix)


def test_memory_from_the_driver_in_every_step():
    lines = (LINE, "  operator aten::empty | time=100/10 call_time=100/10 alloc_bytes=10/10 device_alloc_bytes@0=80/10")
    assert "1 times a step" in named(analyze(training(*lines)), "allocator").title
    back = (
        "python main @ /home/ada/train.py:48",
        "  api cudaFree | time=10/10 call_time=10/10 device_free_bytes@0=80/10",
    )
    assert "given back to the driver at train.py:48" in named(analyze(training(*lines, *back)), "allocator").evidence[1]


def test_a_device_that_did_nothing():
    builder = ProfileBuilder()
    process = builder.process("train.py")
    builder.thread(process, "main")
    builder.device(process, 0, "H200", uuid="a")
    assert "unused_device" in names(analyze(builder.profile()))
    lines = (LINE, "  operator aten::mm | time=100/10 call_time=100/10", "    kernel gemm | gpu_time@0:7=9000000/10")
    assert "unused_device" not in names(analyze(training(*lines)))


@pytest.mark.parametrize(("slowest", "found"), [(80, True), (52, False)])
def test_a_rank_that_works_longer(slowest, found):
    def rank(number, work):
        return f"""
process train.py | pid={10 + number} rank={number}
  thread main | tid={10 + number}
    python main @ train.py:5
      operator aten::mm | time={work}000000/10 call_time={work}000000/10
    python main @ train.py:6
      operator c10d::allreduce_ | time={100 - work}000000/10 call_time={100 - work}000000/10
    python main @ train.py:7
      phase optimizer | time=10/10 call_time=10/10"""

    told = analyze(build("".join([rank(0, 50), rank(1, 50), rank(2, slowest)]).lstrip("\n")))
    assert ("imbalance" in names(told)) == found
    if found:
        assert "Rank 2" in named(told, "imbalance").title
    assert "communication" in names(analyze(build(rank(0, 50).lstrip("\n"))))


def sampled(*instructions):
    return (
        LINE,
        "  operator aten::_to_copy | time=100/10 call_time=100/10",
        "    kernel cast_kernel | gpu_time@0:7=9000000/10",
        *(f"      instruction {one}" for one in instructions),
    )


def test_a_kernel_that_stands_still_says_for_what():
    one = named(
        analyze(
            training(
                *sampled(
                    'I2F.F16 @ cast.cu:12 | instruction_samples@0:7=700 address=16 detail={"stall":"long_scoreboard"}',
                    'LDC | instruction_samples@0:7=100 address=32 detail={"stall":"imc_miss"}',
                    "STG | instruction_samples@0:7=200 address=48",
                )
            )
        ),
        "stall",
    )
    assert one.title == (
        "cast_kernel is stalled in 80 % of its samples: in 70 % it waits for data from global or local memory, or from a "
        "texture at cast.cu:12 (70 %)"
    )
    assert one.lines[0].line == 43
    assert "cast.cu:12 I2F.F16" in one.evidence[2]
    assert "at 0x20 LDC" in one.evidence[2]
    assert "neighbouring threads" in one.remedy
    assert one.gain.high_ns == int(0.8 * 900_000)


def test_stalls_that_are_usual_or_too_few_to_tell_are_not_named():
    usual = sampled(
        'LDG | instruction_samples@0:7=400 detail={"stall":"long_scoreboard"}', "FFMA | instruction_samples@0:7=600"
    )
    few = sampled('LDG | instruction_samples@0:7=20 detail={"stall":"long_scoreboard"}')
    assert "stall" not in names(analyze(training(*usual)))
    assert "stall" not in names(analyze(training(*few)))
    silent = {one.rule: one.reason for one in analyze(training()).not_applicable}
    assert silent["stall"] == "no instructions of kernels were sampled"


@pytest.mark.parametrize(
    ("kernel", "found"),
    [
        ("ampere_sgemm_128x64_tn", True),
        ("void cutlass::Kernel<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>", True),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8", True),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128", False),
        ("ampere_bf16_s16816gemm_bf16_128x128", False),
    ],
)
def test_products_of_32_bits_are_told_by_their_kernels(kernel, found):
    lines = (
        LINE,
        "  operator aten::mm | time=100/10 call_time=100/10",
        f"    kernel {kernel} | gpu_time@0:7=9000000/10",
    )
    assert ("matmul_shape" in names(analyze(training(*lines)))) == found


def test_workers_that_are_started_for_every_pass():
    def passes(number):
        children = "".join(
            f"\nprocess train.py | pid={20 + one} parent_pid=5 start_ns={100 * one} end_ns={100 * one + 50}\n  thread worker"
            for one in range(number)
        )
        return build(
            f"""
process train.py | pid=5
  thread main | tid=5
    python main @ train.py:5
      phase data loading | time=1000000/10 call_time=1000000/10 detail={{"loader":"_MultiProcessingDataLoaderIter"}}
    python main @ train.py:6
      operator aten::mm | time=100000000/10 call_time=100000000/10
    python main @ train.py:7
      phase optimizer | time=10/10 call_time=10/10{children}""".lstrip("\n")
        )

    assert "started 4 times, 1 at once" in named(analyze(passes(4)), "data_loading").title
    assert "data_loading" not in names(analyze(passes(2)))


def product(kernel, **detail):
    """A step of one product; `detail` of the device."""
    profile = with_kernel("aten::mm", f"{kernel} | gpu_time@0:7=9000000/10", **detail)
    return [one for one in analyze(profile) if one.rule == "matmul_shape"]


AMD = {"vendor": "AMD", "architecture": "gfx942"}
TENSILE = "Cijk_Ailk_Bljk_{types}_MT64x64x64{unit}_SN_1LDSB0_APM1"


@pytest.mark.parametrize("types", ["SB", "S_B_Bias_HA_S_SAV_UserArgs"])
def test_products_in_full_precision_are_known_by_tensiles_names_and_told_in_amds_words(types):
    (one,) = product(TENSILE.format(types=types, unit="_MI16x16x4x1"), **AMD)
    assert "full 32-bit precision" in one.title
    assert "MFMA" in one.remedy and "tensor cores" not in one.remedy


def test_products_that_leave_matrix_units_alone_are_named_where_the_device_has_them():
    plain, matrix = (TENSILE.format(types="HHS_BH", unit=unit) for unit in ("", "_MI16x16x16x1"))
    (one,) = product(plain, **AMD)
    assert "do not use the device's matrix units (MFMA)" in one.title
    assert product(matrix, **AMD) == []
    assert product(plain, vendor="AMD", architecture="gfx1030") == []  # has none


@pytest.mark.parametrize("types", ["BBS_BH", "HHS_BH_Bias_HAS_SAV_UserArgs", "F8F8S_BSS", "DB"])
def test_other_types_of_tensile_are_not_full_precision(types):
    assert product(TENSILE.format(types=types, unit="_MI16x16x16x1"), **AMD) == []


@pytest.mark.parametrize(
    ("dots", "matrix"),
    [
        (
            "void ck::kernel_gemm_dl_v1r3<ck::GridwiseGemmDl_km_kn_mn_v1r3",
            "void ck::kernel_gemm_xdl_cshuffle_v3<ck::Grid",
        ),
        (
            "void ck::tensor_operation::device::(anonymous namespace)::kernel_grouped_conv_fwd_dl_multiple_d<ck::Gridwise"
            "GemmDlMultipleD_km_kn_mn",
            "void ck::kernel_grouped_conv_multiple_d_wmma_cshuffle<ck::GridwiseGemmMultipleD_Wmma",
        ),
        (
            "gridwise_convolution_implicit_gemm_v4r4_nchw_kcyx_nkhw",
            "gridwise_convolution_implicit_gemm_v4r4_xdlops_nchw",
        ),
        ("naive_conv_ab_nonpacked_fwd_nchw_half_double_half", "igemm_fwd_gtcx3_nhwc_fp16_bx0_ex1_bt128x128x32"),
        ("igemm_v4r1_1x1_dynamic", "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1"),
    ],
)
def test_products_of_composable_kernel_and_miopen_that_miss_matrix_units(dots, matrix):
    (one,) = product(dots, **AMD)
    assert "do not use the device's matrix units (MFMA)" in one.title
    assert product(matrix, **AMD) == []


def test_products_with_an_instruction_of_half_the_rate_are_named():
    """MI16x16x16 is all that an MI300 can do, and half of what an MI355X can."""
    name = TENSILE.format(types="HHS_BH", unit="_MI16x16x16x1")
    assert product(name, **AMD) == []
    (one,) = product(name, vendor="AMD", architecture="gfx950")
    assert "an instruction that reaches 50 % of the matrix units' rate" in one.title
    assert "MFMA 16x16x16 in fp16: 2,048 operations a cycle" in one.evidence[1] and "4,096" in one.evidence[1]
    (one,) = product(TENSILE.format(types="HHS_BH", unit="_MI32x32x4x2"), **AMD)
    assert "32x32x4, 2 blocks" in one.evidence[1] and one.gain.high_ns > 0
