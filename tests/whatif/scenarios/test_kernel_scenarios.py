"""Scenarios that change kernels: each with a step whose new time is known by hand."""

from __future__ import annotations

import pytest

from leadline.hardware.gpus import known_gpus
from leadline.hardware.roofline import work_of
from leadline.whatif.draws import Draw, technique
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.scenarios import find
from leadline.whatif.scenarios.optimizers import algorithm_of
from leadline.whatif.tables import HIDDEN

US = 1000


def expected(name: str, *, larger_is_faster: bool) -> float:
    return technique(name, larger_is_faster=larger_is_faster).expected


def test_amp_as_in_the_paper(step, ask):
    step.kernel("volta_sgemm_128x64_nn", 300)
    step.kernel("volta_scudnn_128x32_relu", 90)
    step.kernel("vectorized_elementwise_kernel", 40)
    found = ask(step.graph(), "amp", model="paper")
    assert found.predicted_ns == (300 / 3 + 90 / 3 + 40 / 2) * US
    assert found.applied_to == {"matrix kernels": 2, "other kernels": 1}
    assert found.slowest_ns == (300 / 1.5 + 90 / 1.5 + 40) * US


def test_amp_by_peak_rates(step, ask):
    """tf32 to bf16 doubles the peak of an H100; the optimizer keeps its time."""
    step.kernel("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n", 1640, Phase.BACKWARD)
    step.kernel("multi_tensor_apply_kernel", 500, Phase.OPTIMIZER)
    found = ask(step.graph(), "amp")
    kept = expected("matmul_low_precision", larger_is_faster=True)
    assert found.predicted_ns == pytest.approx(1640 * US / (2 * kept) + 500 * US, rel=1e-5)
    assert found.fastest_ns == pytest.approx(1640 * US / 2 + 500 * US, rel=1e-5)
    assert found.fastest_ns < found.predicted_ns < found.slowest_ns < 2140 * US


def test_amp_leaves_bandwidth_bound_matrices_at_half_the_bytes(step, ask):
    """A matrix-vector product is bound by memory: bf16 moves half the bytes, however fast the tensor cores are."""
    detail = {"Input Dims": [[1, 8192], [8192, 8192]], "Input type": ["float", "float"]}
    task = step.kernel("gemv_sgemm_ffma", 1000, detail=detail)
    graph = step.graph()
    names = graph.names
    graph.tasks.write("name")[graph.launchers_of(task).ids] = graph.name_id("aten::mm")
    assert "aten::mm" in names or "aten::mm" in graph.names
    found = ask(graph, "precision", target="bf16")
    kept = expected("matmul_low_precision", larger_is_faster=True)
    assert found.predicted_ns == pytest.approx(1000 * US / (2 * kept), rel=1e-3)


def test_amp_has_nothing_to_do_in_bf16(step, ask):
    step.kernel("nvjet_tst_128x256_bf16", 100)
    with pytest.raises(ValueError, match="already run in low precision"):
        ask(step.graph(), "amp")


def test_unknown_gpu_widens_and_warns(new_step, ask):
    step = new_step(device="Some GPU of 2031")
    step.kernel("sgemm_32x32", 100)
    found = ask(step.graph(), "precision", target="bf16")
    assert any("Some GPU of 2031 is not in the factor files" in warning for warning in found.warnings)
    # from no gain at all to what the GPU with the largest ratio could do
    largest = max(gpu.peak_tflops["bf16"] / gpu.peak_tflops["fp32"] for gpu in known_gpus() if gpu.peak_flops("bf16"))
    assert found.slowest_ns == 100 * US
    assert found.fastest_ns == pytest.approx(100 * US / largest, rel=1e-3)


def test_no_prediction_beats_the_roofline(step, ask):
    """A product that is measured at half its fp32 bound (its name misleads) is still not predicted below its bf16 bound."""
    flops, seconds = 2 * 4096 * 4096 * 410, 0.5 * 2 * 4096 * 4096 * 410 / 66.9e12
    detail = {"Input Dims": [[4096, 4096], [4096, 410]], "Input type": ["float", "float"]}
    task = step.kernel("sm80_xmma_gemm_f32f32_f32f32_ffma", seconds * 1e6, detail=detail)
    graph = step.graph()
    graph.tasks.write("name")[graph.launchers_of(task).ids] = graph.name_id("aten::mm")
    found = ask(graph, "precision", target="bf16")
    moved = 2 * (4096 * 4096 + 2 * 4096 * 410) / 3350e9
    assert found.fastest_ns == pytest.approx(max(flops / 989.4e12, moved) * 1e9, rel=1e-3)


def test_precision_tf32_on_h100(step, ask):
    step.kernel("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n", 700)
    step.kernel("vectorized_elementwise_kernel", 100)
    found = ask(step.graph(), "precision", target="tf32")
    kept = expected("matmul_low_precision", larger_is_faster=True)
    # without shapes nothing says that arithmetic limits the kernel, so it moves between nothing and all of the ratio
    assert found.predicted_ns == pytest.approx((700 / ((494.7 / 66.9) ** 0.5 * kept) + 100) * US, rel=1e-4)
    assert found.fastest_ns == pytest.approx((700 / (494.7 / 66.9) + 100) * US, rel=1e-4)
    assert found.slowest_ns == 800 * US


def test_precision_refuses_what_the_gpu_has_not(new_step, ask):
    step = new_step(device="Tesla V100-SXM2-32GB")
    step.kernel("volta_sgemm_128x64_nn", 100)
    with pytest.raises(ValueError, match="V100 SXM2 has no fp8 units"):
        ask(step.graph(), "precision", target="fp8")


def test_fused_optimizer(step, ask):
    """Adam moves 7 values instead of 18; the pessimistic end is the paper's sum of the removed kernels."""
    step.kernel("sgemm", 1000, Phase.BACKWARD)
    for name in ("lerp", "mul_", "addcmul_", "sqrt", "addcdiv_"):
        step.kernel(f"elementwise_kernel_{name}", 90, Phase.OPTIMIZER, operator=f"aten::{name}")
    found = ask(step.graph(), "fused_optimizer")
    assert found.predicted_ns == pytest.approx((1000 + 450 * 7 / 18) * US, rel=1e-6)
    assert found.slowest_ns == pytest.approx(1450 * US, rel=1e-6)
    assert found.applied_to == {"removed kernels": 5, "removed calls": 5}


def test_fused_optimizer_removes_launches(step, ask):
    """Forty launches of 20 us hide tiny kernels; one call remains."""
    step.kernel("sgemm", 10, Phase.BACKWARD, cpu_us=10)
    for _ in range(40):
        step.kernel("elementwise_kernel", 1, Phase.OPTIMIZER, cpu_us=20, operator="aten::addcdiv_")
    graph = step.graph()
    found = ask(graph, "fused_optimizer")
    call_us = expected("fused_optimizer_call_ns", larger_is_faster=False) / US
    assert found.predicted_ns == pytest.approx((10 + max(call_us, 5 + 40 * 5 / 12)) * US, rel=0.01)


def test_batchnorm_restructuring(step, ask):
    step.kernel("sm90_xmma_fprop", 200)
    step.kernel("cudnn::bn_fw_tr_1C11", 100)
    step.kernel("vectorized_elementwise_kernel_relu", 60)
    step.kernel("sm90_xmma_fprop", 200)
    step.kernel("vectorized_elementwise_kernel_relu", 30)  # not beside a batch norm: stays
    found = ask(step.graph(), "batchnorm_restructuring")
    assert found.predicted_ns == pytest.approx((200 + 50 + 200 + 30) * US, rel=1e-6)
    assert found.applied_to == {"batch norm kernels": 1, "activation kernels": 1}


def test_fuse_elementwise(step, ask):
    step.kernel("sgemm", 100)
    for us in (30, 50, 20):
        step.kernel("vectorized_elementwise_kernel", us)
    step.kernel("sgemm", 100)
    step.kernel("vectorized_elementwise_kernel", 40)
    found = ask(step.graph(), "fuse_elementwise")
    fused = 50 * expected("fused_elementwise", larger_is_faster=False)
    assert found.predicted_ns == pytest.approx((100 + fused + 100 + 40) * US, rel=1e-6)
    assert found.applied_to == {"runs": 1, "removed kernels": 2}


def test_layout_changes_of_a_library_cannot_be_fused(step, ask):
    step.kernel("cudnn::ops::nchwToNhwcKernel", 30)
    step.kernel("cudnn::ops::nhwcToNchwKernel", 30)
    with pytest.raises(ValueError, match="no two element-wise kernels"):
        ask(step.graph(), "fuse_elementwise")


def test_launch_free(step, ask):
    """Four launches of 100 us each hide kernels of 10 us: as a graph the kernels follow one another."""
    for _ in range(4):
        step.kernel("sgemm", 10, cpu_us=100)
    graph = step.graph()
    found = ask(graph, "launch_free")
    gap = expected("graph_gap_ns", larger_is_faster=False)
    assert found.predicted_ns == pytest.approx(4 * 10 * US + 3 * gap, rel=1e-6)
    assert found.applied_to == {"kernels": 4, "removed calls": 4, "graph launches": 1}


def test_launch_free_stops_at_a_synchronisation(step, ask):
    for _ in range(2):
        step.kernel("sgemm", 10, cpu_us=100)
    step.sync()
    for _ in range(2):
        step.kernel("sgemm", 10, cpu_us=100)
    assert ask(step.graph(), "launch_free").applied_to["graph launches"] == 2


def test_launch_free_leaves_python_that_does_something_else(step, ask):
    """Python of 20 us between launches goes with them; 5 ms between two of them are no launching and stay."""
    for place in range(6):
        step.cpu("(python)", 5000 if place == 3 else 20, Phase.FORWARD)
        step.kernel("sgemm", 10, cpu_us=100)
    found = ask(step.graph(), "launch_free")
    assert found.applied_to["graph launches"] == 2
    assert 5000 * US < found.predicted_ns < 5200 * US


def test_kernel_speedup(step, ask):
    step.kernel("slow", 300)
    step.kernel("fast", 100)
    assert ask(step.graph(), "kernel_speedup", kernel="slow", factor="3").predicted_ns == 200 * US
    assert ask(step.graph(), "kernel_speedup").predicted_ns == 250 * US, "the most expensive by default"
    with pytest.raises(ValueError, match="no kernel or operator matches 'absent'"):
        ask(step.graph(), "kernel_speedup", kernel="absent")
    with pytest.raises(ValueError, match="not a regular expression"):
        ask(step.graph(), "kernel_speedup", kernel="(")


@pytest.mark.parametrize(
    ("device", "answer_us"), [("gpu", 10 + 50 + 100 + 50), ("pcie", 10 + 100 + 50 + 100), ("cpu", 5 + 100 + 100 + 100)]
)
def test_faster(step, ask, device, answer_us):
    """Python 10 us, a kernel, a copy over PCIe, a kernel: 310 us."""
    step.cpu("python", 10)
    step.kernel("sgemm", 100, cpu_us=0)
    step.kernel("Memcpy HtoD (Pinned -> Device)", 100, cpu_us=0)
    step.kernel("sgemm", 100, cpu_us=0)
    assert ask(step.graph(), "faster", device=device, factor="2").predicted_ns == answer_us * US


def test_batch_size_grows_what_fills_the_gpu(step, ask):
    step.kernel("sgemm", 100, detail={"blocks per SM": 0.25})
    step.kernel("sgemm", 100, detail={"blocks per SM": 4.0})
    step.kernel("multi_tensor_apply", 50, Phase.OPTIMIZER)
    found = ask(step.graph(), "batch_size", factor="2")
    grown = 2 ** expected("memory_bound_batch", larger_is_faster=False)
    assert found.predicted_ns == pytest.approx((100 + 100 * grown + 50) * US, rel=1e-5)
    assert found.speedup == pytest.approx(2 * 250 / (150 + 100 * grown), rel=1e-5), "samples per second"


def test_remove_sync(step, ask):
    """The CPU waits for a kernel of 1000 us before it prepares for 400 us; without the wait both overlap."""
    step.kernel("sgemm", 1000, cpu_us=0)
    step.sync()
    step.cpu("python", 400)
    step.kernel("sgemm", 10, cpu_us=0)
    graph = step.graph()
    assert ask(graph, "faster", device="gpu", factor="1").predicted_ns == 1410 * US
    found = ask(graph, "remove_sync")
    assert found.predicted_ns == 1010 * US
    assert found.slowest_ns == 1410 * US, "the last synchronisation of a step may have to stay"


def test_every_answer_says_what_it_rests_on(step, ask):
    for name, phase in (("sgemm", Phase.FORWARD), ("vectorized_elementwise_kernel", Phase.BACKWARD)):
        step.kernel(name, 100, phase)
    for scenario in ("amp", "precision", "launch_free", "batch_size", "faster", "kernel_speedup"):
        found = ask(step.graph(), scenario)
        assert found.assumptions, scenario
        # one step tells little about others, so no time is known within a percent
        assert found.low_ns < 0.95 * found.predicted_ns < 1.05 * found.predicted_ns < found.high_ns, scenario


@pytest.mark.parametrize("scenario", ["faster", "kernel_speedup", "batch_size"])
def test_a_factor_of_one_changes_nothing(step, ask, scenario):
    for us in (10, 300, 7):
        step.kernel("sgemm", us)
    found = ask(step.graph(), scenario, factor="1")
    assert found.predicted_ns == 317 * US
    assert found.speedup == 1.0


@pytest.mark.parametrize("scenario", ["faster", "kernel_speedup"])
def test_more_is_never_slower(step, ask, scenario):
    for us in (10, 300, 7):
        step.kernel("sgemm", us)
    times = [ask(step.graph(), scenario, factor=str(factor)).predicted_ns for factor in (1, 1.5, 2, 4, 100)]
    assert times == sorted(times, reverse=True)


def test_low_and_high_are_named_the_right_way_round():
    for name, larger_is_faster in (("matmul_low_precision", True), ("fused_elementwise", False)):
        factor = technique(name, larger_is_faster=larger_is_faster)
        best, worst = factor.at(Draw(0.0)), factor.at(Draw(1.0))
        assert (best > worst) == larger_is_faster


@pytest.mark.parametrize(
    ("mark", "sentence"),
    [
        ("Optimizer.step#Muon.step", "not an element-wise update"),
        ("Optimizer.step#Mystery.step", "arithmetic of Mystery is not known"),
    ],
)
def test_an_optimizer_that_is_not_known_is_refused(step, ask, mark, sentence):
    step.kernel("some_update_kernel", 100, Phase.OPTIMIZER)
    graph = step.graph()
    graph.name_id(mark)
    with pytest.raises(ValueError, match=sentence):
        ask(graph, "fused_optimizer")


def test_an_update_with_matrix_products_is_refused(step, ask):
    step.kernel("ampere_sgemm_128x64_nn", 100, Phase.OPTIMIZER)
    with pytest.raises(ValueError, match="multiplies matrices"):
        ask(step.graph(), "fused_optimizer")


@pytest.mark.parametrize(("name", "fused"), [("RMSprop", 5 / 11), ("AdamW", 7 / 20), ("Lion", 5 / 12)])
def test_known_optimizers_move_what_the_table_says(step, name, fused):
    graph = step.graph()
    graph.name_id(f"Optimizer.step#{name}.step")
    found = algorithm_of(graph, Selection([]))
    assert found.fused / found.separate == fused


def test_a_kernel_that_does_next_to_nothing_does_not_become_faster(step, ask):
    step.kernel("sgemm", 1)
    step.kernel("sgemm", 1000)
    found = ask(step.graph(), "precision", target="tf32")
    (short, _) = found.graph.select(name="sgemm").ids
    assert found.graph.column("duration_ns")[short] == 1 * US


def test_batch_norm_takes_in_the_activation_behind_it_and_in_backward_the_one_before(step, ask):
    for phase in (Phase.FORWARD, Phase.BACKWARD):
        step.kernel("clamp_before_elementwise_relu", 100, phase)
        step.kernel("batch_norm_kernel", 200, phase)
        step.kernel("relu_after_elementwise", 100, phase)
    found = ask(step.graph(), "batchnorm_restructuring")
    left = sorted(
        (found.graph.task(task).phase, found.graph.task(task).name) for task in found.graph.select(name="relu")
    )
    assert left == [(Phase.FORWARD, "clamp_before_elementwise_relu"), (Phase.BACKWARD, "relu_after_elementwise")]


def test_work_that_was_not_recorded_is_nobodys_kernel_to_speed_up(step, ask):
    step.kernel(HIDDEN, 500)
    step.kernel("gemm", 100)
    found = ask(step.graph(), "kernel_speedup")
    assert found.assumptions[0].startswith("gemm (100 % of all kernel time)")


def test_rows_stand_in_front_of_heads_in_the_inner_attention() -> None:
    """aten::_efficient_attention_forward takes (batch, rows, heads, width); the operator around it has heads first."""
    inner = work_of("aten::_efficient_attention_forward", [[16, 512, 12, 64]] * 3)
    outer = work_of("aten::_scaled_dot_product_efficient_attention", [[16, 12, 512, 64]] * 3)
    assert inner == outer
    assert inner is not None and inner.flops == 4 * 16 * 12 * 512 * 512 * 64


def test_amp_of_attention_that_multiplies_fp32_as_three_products_of_tf32(step, ask):
    """An H100: 494.7 TFLOP/s of TF32 over 3, against 989.4 in bf16."""
    detail = {"Input Dims": [[64, 12, 2048, 64]] * 3, "Input type": ["float"] * 3}
    task = step.kernel("fmha_cutlassF_f32_aligned_64x64_rf_sm80", 20_000, Phase.BACKWARD, detail=detail)
    graph = step.graph()
    graph.tasks.write("name")[graph.launchers_of(task).ids] = graph.name_id(
        "aten::_scaled_dot_product_efficient_attention"
    )
    found = ask(graph, "precision", target="bf16")
    kept = expected("matmul_low_precision", larger_is_faster=True)
    assert found.predicted_ns == pytest.approx(20_000 * US / (6 * kept), rel=0.01)


def test_amp_saves_of_a_memory_kernel_what_it_attains_of_the_bandwidth(step, ask):
    """Two kernels move 80 MB: one at the H100's bandwidth, one in four times that time, for another reason."""
    detail = {"Input Dims": [[10_000_000]], "Input type": ["float"]}
    full_us = 80e6 / 3350e9 * 1e6
    step.kernel("sgemm_ffma", 1000, Phase.BACKWARD)
    step.kernel("vectorized_elementwise_kernel", full_us, Phase.BACKWARD, operator="aten::relu", detail=detail)
    step.kernel("bn_bw_1C11_kernel_new", 4 * full_us, Phase.BACKWARD, operator="aten::batch_norm", detail=detail)
    graph = step.graph()
    after = find("amp").apply(graph.copy(), find("amp").read({"dtype": "bf16"}), Draw()).graph
    shrunk = [
        float(after.column("duration_ns")[ids].sum() / graph.column("duration_ns")[ids].sum())
        for name in ("elementwise", "bn_bw")
        if (ids := graph.select(name=name).ids).size
    ]
    assert shrunk == [pytest.approx(1 / 2, rel=0.01), pytest.approx(1 / 1.25, rel=0.01)]


def test_amp_casts_parameters_and_some_activations(step, ask):
    """A linear layer with a bias: two parameters and, half of the time, its input; no copy tells what a cast costs, so
    it is what a kernel costs."""
    types = {"Input Dims": [[1024], [64, 1024], [1024, 1024]], "Input type": ["float"] * 3}
    step.kernel("sgemm_ffma", 10, Phase.FORWARD, cpu_us=20, detail=types)
    graph = step.graph()
    calls = graph.launchers_of(graph.select(kind=TaskKind.GPU))
    graph.tasks.write("name")[calls.ids] = graph.name_id("aten::addmm")
    after = find("amp").apply(graph.copy(), find("amp").read({"dtype": "bf16"}), Draw()).graph
    each = expected("cast_calls", larger_is_faster=False) * 20 * US
    added = int(after.column("duration_ns")[calls.ids].sum() - graph.column("duration_ns")[calls.ids].sum())
    assert added == pytest.approx(2.5 * each, rel=1e-3)
