"""The start page as data: bars that add up, lines with forward and backward, what would help, ranks side by side."""

from __future__ import annotations

import re

import pytest
from tests.analysis.drawn_jax import PAIRS

from leadline.names import distinct_parts
from leadline.names.kernels import kernel_words
from leadline.profiles.build import build
from leadline.report import ReportOptions, build_report
from leadline.report.rank_bars import rank_bars
from leadline.report.step_svg import step_svg

STEPS = """
process train.py | pid=1 start_ns=0 end_ns=3000000000
  thread MainThread | tid=1 wall_ns=3000000000 operator_ns=2000000000 data_ns=0 cpu_ns=3000000000
    python main @ /home/ada/train.py:10
      phase forward | time=1000/20 call_time=100001000/20
        operator aten::linear | time=600000000/20 call_time=600000000/20
          phase backward
            operator AddmmBackward0 | time=900000000/20 call_time=900000000/20
    python main @ /home/ada/train.py:12
      phase optimizer | time=1000/20 call_time=500001000/20
        operator Optimizer.step#SGD.step | time=500000000/20 call_time=500000000/20
"""


@pytest.fixture(scope="module")
def report():
    return build_report(build(STEPS), ReportOptions(verdict=True), "run.leadline")


def test_every_bar_adds_up_to_the_step(report):
    assert report.start is not None and len(report.start.bars) >= 2
    for bar in report.start.bars:
        assert sum(part.ns for part in bar.parts) == report.start.wall_ns, bar.name
        assert sum(part.share for part in bar.parts) == pytest.approx(1, abs=0.001)


def test_phases_of_a_step_are_those_that_were_measured(report):
    phases = {part.key: part.ns for part in report.start.bars[0].parts}
    assert phases["forward"] == pytest.approx(30e6, rel=0.1)
    assert phases["backward"] == pytest.approx(45e6, rel=0.1)
    assert phases["optimizer"] == pytest.approx(25e6, rel=0.1)


def test_a_line_has_its_backward_pass_apart(report):
    first = report.start.where[0]
    assert (first.place.short, first.place.line) == ("train.py", 10)
    assert first.backward_ns == pytest.approx(1.5 * first.forward_ns, rel=0.05)
    assert report.start.where[1].phase == "optimizer" and report.start.where[1].other_ns > 0


def test_the_picture_of_a_step_is_as_wide_as_its_parts(report):
    picture = step_svg(report.start)
    widths = [
        float(one) for one in re.findall(r'<g><title>.*?</title><rect x="[\d.]+" y="20" width="([\d.]+)"', picture)
    ]
    assert sum(widths) == pytest.approx(750, abs=1)
    assert "<script" not in picture


def test_a_rank_that_waits_least_is_the_late_one():
    text = "".join(
        f"""
process train.py {rank} | pid={rank + 1} rank={rank}
  thread MainThread | tid={rank + 1} wall_ns=2000000000 operator_ns=2000000000 data_ns=0 cpu_ns=2000000000
    python main @ /home/ada/train.py:10
      phase optimizer | time=1000/20 call_time=1000/20
        operator aten::mm | time={work * 1000000}/20 call_time={work * 1000000}/20
        operator c10d::allreduce_ | time={(2000 - work) * 1000000}/20 call_time={(2000 - work) * 1000000}/20
"""
        for rank, work in enumerate((1000, 1000, 1800, 1000))
    )
    bars = rank_bars(build(text))
    assert [one.rank for one in bars] == [0, 1, 2, 3]
    assert [one.rank for one in bars if one.late] == [2]
    assert bars[2].work_ns == pytest.approx(90e6, rel=0.05) and bars[0].wait_ns == pytest.approx(50e6, rel=0.05)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_tn_align4>(P)", "matrix product, tf32, 128x64, CUTLASS"),
        ("ampere_sgemm_128x64_nn", "matrix product, fp32, 128x64, cuBLAS"),
        ("Cijk_Ailk_Bjlk_BBS_BH_MT32x32x64_MI16x16x16x1_SN", "matrix product, bf16, 32x32x64, Tensile"),
        ("triton_poi_fused_add_mul_3", "fused: add mul, Inductor"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "all-reduce, fp32, NCCL"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("my_own_kernel", "my_own_kernel"),
    ],
)  # fmt: skip
def test_kernels_are_told_in_words(name, words):
    assert kernel_words(name) == words


def test_parts_of_several_threads_never_exceed_the_step():
    """Operations of a pool that run beside what waits for them add up to more than the step."""
    profile = build("""
process train.py | pid=1 start_ns=0 end_ns=1000000000
  thread MainThread | tid=1 wall_ns=1000000000 operator_ns=1000000000 data_ns=0 cpu_ns=1000000000
    phase step | call_time=1000000000/20
      python main @ /home/ada/train.py:10
        operator jit(step) | time=100000000/20 call_time=1000000000/20
          phase on another thread
            operator dot_general | time=900000000/20 call_time=900000000/20
            operator tanh | time=500000000/20 call_time=500000000/20
      python main @ /home/ada/train.py:12
        operator jit(other) | time=300000000/20 call_time=300000000/20
""")
    start = build_report(profile, ReportOptions(verdict=True), "run.leadline").start
    assert sum(line.ns for line in start.where) <= start.wall_ns
    assert sum(line.share for line in start.where) == pytest.approx(1, abs=0.01)
    assert sum(part.ns for part in start.bars[0].parts) == start.wall_ns
    assert start.where[0].ns / start.where[1].ns == pytest.approx(5, rel=0.01), "in proportion"


def test_a_line_that_calls_a_whole_model_is_told_apart_by_module():
    layers = "".join(
        f"""
      module net.h.{layer}.attn [Attention]
        operator aten::linear | time=50000000/20 call_time=50000000/20
          phase backward
            operator AddmmBackward0 | time=80000000/20 call_time=80000000/20
      module net.h.{layer}.mlp [Mlp]
        operator aten::gelu | time=30000000/20 call_time=30000000/20"""
        for layer in range(3)
    )
    profile = build(f"""
process train.py | pid=1 start_ns=0 end_ns=700000000
  thread MainThread | tid=1 wall_ns=700000000 operator_ns=700000000 data_ns=0 cpu_ns=700000000
    python main @ /home/ada/train.py:10{layers}
    python main @ /home/ada/train.py:12
      phase optimizer | time=1000/20 call_time=180001000/20
        operator Optimizer.step#SGD.step | time=180000000/20 call_time=180000000/20
""")
    where = build_report(profile, ReportOptions(verdict=True), "run.leadline").start.where
    assert [(line.place.line, line.what) for line in where] == [
        (10, "attn"),
        (12, "Optimizer.step#SGD.step"),
        (10, "mlp"),
    ]
    assert where[0].backward_ns == pytest.approx(1.6 * where[0].other_ns, rel=0.05), (
        "backward is on the row of its module"
    )


def test_ranks_wait_in_steps_and_not_in_what_sets_up():
    text = "".join(
        f"""
process train.py {rank} | pid={rank + 1} rank={rank}
  thread MainThread | tid={rank + 1} wall_ns=2000000000 operator_ns=2000000000 data_ns=0 cpu_ns=2000000000
    python main @ /home/ada/train.py:8
      operator c10d::allgather_ | time=900000000/1 call_time=900000000/1 wait_time=890000000/1
    python main @ /home/ada/train.py:10
      phase optimizer | time=1000/20 call_time=1000/20
        operator aten::mm | time={work * 1000000}/20 call_time={work * 1000000}/20
        operator c10d::allreduce_ | time={wait * 1000000}/20 call_time={wait * 1000000}/20 wait_time={wait * 1000000}/20
"""
        for rank, (work, wait) in enumerate(((200, 1800), (1700, 300)))
    )
    bars = rank_bars(build(text))
    assert [round(one.wait_ns / 1e6) for one in bars] == [90, 15], "a wait is a part of its call"
    assert [one.late for one in bars] == [False, True]


def test_an_exchange_of_another_thread_counts_once_and_one_of_the_beginning_never():
    text = "".join(
        f"""
process train.py {rank} | pid={rank + 1} rank={rank}
  thread MainThread | tid={rank + 1} wall_ns=800000000 operator_ns=800000000 data_ns=0 cpu_ns=800000000
    python main @ /home/ada/train.py:8
      operator c10d::allgather_ | time=900000000/1 call_time=900000000/1
    python main @ /home/ada/train.py:10
      phase optimizer | time=1000/8 call_time=1000/8
        operator aten::mm | time={work * 1000000}/8 call_time={work * 1000000}/8
        operator c10d::allreduce_ | time={wait * 900000}/8 call_time={wait * 1000000}/8
          phase on another thread
            region gloo:all_reduce | time={wait * 1000000}/8 call_time={wait * 1000000}/8
"""
        for rank, (work, wait) in enumerate(((400, 400), (700, 100)))
    )
    bars = rank_bars(build(text))
    assert [round(one.wait_ns / 1e6) for one in bars] == [50, 12]
    assert next(one.late for one in rank_bars(build(text), waited_for=0)), (
        "the rank that the verdict calls late is marked"
    )


@pytest.mark.parametrize(
    ("modules", "told"),
    [
        (["ddp", "", "ddp.net.c3.relu", "ddp.net.c2.relu", "ddp.net.fc"], ["ddp", "", "c3.relu", "c2.relu", "fc"]),
        (["model.h.*.attn", "model.ln", ""], ["h.*.attn", "ln", ""]),
        (["model.a"], ["model.a"]),
    ],
)
def test_names_of_places_are_told_apart_without_what_they_share(modules, told):
    assert distinct_parts(modules) == told


def test_a_line_is_named_by_the_module_with_most_of_it_and_not_by_its_longest_node():
    text = """
process train.py | pid=1
  thread MainThread | tid=1 wall_ns=2000000000 operator_ns=2000000000 data_ns=0 cpu_ns=2000000000
    python main @ /home/ada/train.py:5
      phase optimizer | time=1000/20 call_time=1000/20
      python forward @ /home/ada/train.py:10
        module net.norm [Norm]
          operator aten::norm | time=400000000/20 call_time=400000000/20
        module net.mlp [Mlp]
          operator aten::mm | time=300000000/20 call_time=300000000/20
          operator aten::gelu | time=300000000/20 call_time=300000000/20
      python forward @ /home/ada/train.py:12
        module net.head [Head]
          operator aten::mm | time=500000000/20 call_time=500000000/20
"""
    where = build_report(build(text), ReportOptions(verdict=True), "run.leadline").start.where
    assert (where[0].place.line, where[0].what) == (10, "mlp")


@pytest.mark.parametrize("rule", sorted(PAIRS))
def test_a_gain_is_called_uncertain_where_the_verdict_calls_it_so(rule):
    problem, *_ = PAIRS[rule]
    built = build_report(problem(), ReportOptions(verdict=True), "run.leadline")
    for one in built.start.help if built.start is not None else ():
        assert (one.known == "uncertain") == ("uncertain; `" in one.change), one
        assert one.known != "uncertain" or f"`{one.command}`" in one.change
