"""The account of a step: it adds up, on drawn profiles with known parts, and the verdict's class follows from it."""

from __future__ import annotations

import json

import pytest

from leadline.analysis.case import Case
from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.verdict.judge import judge
from leadline.verdict.model import CLASSES, Verdict, as_object
from leadline.verdict.text import as_lines

MS = 1_000_000
STEPS = 20


def drawn(
    *inside: str, step_ms: int = 10, observed: list[dict[str, object]] | None = None, counts: str = ""
) -> Profile:
    """Twenty steps of known length on one thread; `inside` are lines below the loop's function, ns over all steps;
    `counts`: what the kernel counted of the steps."""
    whole = step_ms * MS
    lines = [
        "process train.py | pid=5",
        f"  thread MainThread | tid=5 wall_ns={whole * STEPS} cpu_ns={whole * STEPS}",
        f"    phase step | call_time={whole * (STEPS - 1)}/{STEPS - 1} {counts}",
        "    python <module> @ /home/ada/train.py:60",
        *("      " + line for line in inside),
        "      python main @ /home/ada/train.py:44",
        f"        phase optimizer | time={MS * STEPS // 10}/{STEPS} call_time={MS * STEPS // 10}/{STEPS}",
    ]
    profile = build("\n".join(lines))
    profile.meta.update(program={"argv": ["train.py"], "cwd": "/home/ada"}, host={"cpus": 8})
    if observed is not None:
        profile.meta["observed"] = observed
    return profile


def operator(name: str, ms: float, line: int = 42, calls: int = STEPS) -> list[str]:
    ns = int(ms * MS) * STEPS
    return [f"python main @ /home/ada/train.py:{line}", f"  operator {name} | time={ns}/{calls} call_time={ns}/{calls}"]


def python(function: str, ms: float, line: int) -> list[str]:
    ns = int(ms * MS) * STEPS
    return [
        *operator("aten::mul", 0.1, 40),
        "python main @ /home/ada/train.py:43",
        f"  python {function} @ /home/ada/train.py:{line} | cpu_sample={ns}/{10 * STEPS}",
    ]


def verdict_of(profile: Profile) -> Verdict:
    verdict = judge(profile)
    assert verdict.account is not None
    for lane in ("thread", "device"):
        parts = verdict.account.lane(lane)
        assert not parts or sum(one.ns for one in parts) == verdict.account.wall_ns
        assert all(one.ns >= 0 for one in parts)
    assert verdict.kind in CLASSES
    return verdict


@pytest.mark.parametrize(
    ("inside", "kind", "line"),
    [
        (operator("aten::mm", 8), "compute", 42),
        (operator("aten::add", 8), "memory", 42),
        (operator("aten::bernoulli_", 8), "random", 42),
        (python("sample", 8, 12), "python", 12),
        (["python main @ /home/ada/train.py:41", f"  phase data loading | time={8 * MS * STEPS}/{STEPS} call_time={8 * MS * STEPS}/{STEPS}"], "data", 41),
    ],
)  # fmt: skip
def test_the_largest_part_is_the_verdict_on_its_line(inside: list[str], kind: str, line: int):
    verdict = verdict_of(drawn(*inside))
    assert verdict.kind == kind
    assert verdict.place is not None
    assert (verdict.place.short, verdict.place.line) == ("train.py", line)
    assert f"train.py:{line}" in verdict.sentence


def test_time_in_line_for_a_core_is_measured_by_the_kernel():
    """2 ms of operators on a core, 8 ms in line, as the kernel counted."""
    seen = {"pid": 5, "tid": 5, "ran_ns": [0, 10**9, 2 * 10**9], "queued_ns": [0, 4 * 10**9, 8 * 10**9]}
    verdict = verdict_of(drawn(*operator("aten::mm", 1), *python("look", 0.9, 12), observed=[seen]))
    assert verdict.account is not None
    assert verdict.account.share("core") == pytest.approx(0.8, abs=0.05)
    assert "waits for a core" in verdict.sentence
    assert verdict.account.share("unexplained") < 0.05


def counted(running_ms: float, in_line_ms: float) -> str:
    number = STEPS - 1
    ran, queued = int(running_ms * MS) * number, int(in_line_ms * MS) * number
    return f"step_running={ran}/{number} step_core_wait={queued}/{number}"


def slept(ms: float, line: int) -> list[str]:
    frame = 'native [sleeps] | detail={"wait":"sleep"} ' + f"wait={int(ms * MS) * STEPS}/4"
    return [f"python main @ /home/ada/train.py:{line}", f"  {frame}"]


def test_where_the_kernel_counted_the_step_samples_and_looks_tell_places_and_not_lengths():
    """10 ms: 4 on a core (1 of them an operator), 2 in line, 4 asleep; samples and looks saw a third of that."""
    verdict = verdict_of(
        drawn(*operator("aten::mm", 1), *python("sample", 1, 12), *slept(1.3, 45), counts=counted(4, 2))
    )
    assert verdict.account is not None
    part = {one.key: one.ns / MS for one in verdict.account.parts}
    assert part["core"] == pytest.approx(2, abs=0.01)
    assert part["sleep"] == pytest.approx(4, abs=0.01)
    assert part["python"] == pytest.approx(4 - 1 - 0.1 - 0.1, abs=0.1)  # less both operators and the optimizer
    assert verdict.account.share("unexplained") < 0.01


@pytest.mark.parametrize(("waits_for", "data_ms"), [("io", 6.2), ("core", 4.4)])
def test_what_a_loop_waits_for_while_it_loads_is_told_by_looks(waits_for: str, data_ms: float) -> None:
    """10 ms: 6.2 of loading, of which 0.2 ran; 3.6 in line. The ratio of the whole step would be 18 in line to 1 that
    ran. Looks say whether the loop waited for workers or stood in line itself."""
    looks = f'native [waits] | detail={{"wait":"{waits_for}"}} wait={6 * MS * STEPS}/40'
    loading = int(6.2 * MS) * STEPS
    lines = [
        "python main @ /home/ada/train.py:41",
        f"  phase data loading | time={loading}/{STEPS} call_time={loading}/{STEPS} running_time={MS * STEPS // 5}/{STEPS}",
        f"    python next @ /home/ada/data.py:7 | cpu_sample={int(0.2 * MS) * STEPS}/4",
        f"      {looks}",
    ]
    verdict = verdict_of(drawn(*lines, counts=counted(0.4, 3.6)))
    assert verdict.account is not None
    part = {one.key: one.ns / MS for one in verdict.account.parts}
    assert part["data"] == pytest.approx(data_ms, abs=0.1)


def test_operators_that_seem_longer_than_their_thread_ran_are_cut_to_it():
    verdict = verdict_of(drawn(*operator("aten::mm", 9), counts=counted(3, 7)))
    assert verdict.account is not None
    assert verdict.account.share("core") == pytest.approx(0.7, abs=0.01)
    assert verdict.account.share("products") == pytest.approx(0.3, abs=0.02)


def test_what_nothing_explains_is_said_and_no_class_is_named():
    verdict = verdict_of(drawn(*operator("aten::mm", 1), *python("look", 1, 12)))
    assert verdict.kind == "cannot_tell"
    assert verdict.ask.startswith("leadline why train.py")
    assert "not explained" in verdict.sentence


def test_a_step_of_python_never_names_the_optimizer():
    verdict = verdict_of(drawn(*python("sample", 9, 12)))
    assert verdict.place is not None
    assert verdict.place.function == "sample"
    assert "optimizer" not in verdict.sentence


def test_a_few_samples_name_no_class():
    """Eight samples of Python: 60 % of the step, give or take two thirds of it."""
    ns = 6 * MS * STEPS
    few = [
        "python main @ /home/ada/train.py:43",
        f"  python look @ /home/ada/train.py:12 | cpu_sample={ns}/8",
    ]
    verdict = verdict_of(drawn(*operator("aten::mm", 3.5), *few))
    assert verdict.kind == "compute"
    assert any("few samples" in fact for fact in verdict.because)


def test_as_json_it_has_stable_keys_and_finite_numbers():
    found = as_object(verdict_of(drawn(*operator("aten::mm", 8))))
    assert list(found) == [
        *("format", "kind", "sentence", "place", "because", "fixes", "trust", "account", "ask", "title", "received"),
    ]
    json.dumps(found, allow_nan=False)
    assert found["format"] == {"name": "leadline-verdict", "version": 1}


def test_its_text_is_short_and_ends_with_how_far_to_trust_it():
    lines = as_lines(verdict_of(drawn(*operator("aten::mm", 6), *operator("aten::add", 2, 43))), 100)
    assert len(lines) <= 14
    assert all(len(line) <= 100 for line in lines)
    assert any(line.startswith("trust") for line in lines)


def test_gains_are_at_most_what_a_busy_device_leaves():
    """The device is busy 95 % of a step: nothing on the CPU can save more than the rest."""
    whole = 10 * MS * STEPS
    profile = drawn(
        "python main @ /home/ada/train.py:42",
        f"  operator aten::mm | time={MS * STEPS}/{STEPS} call_time={MS * STEPS}/{STEPS}",
        f"    kernel gemm | gpu_time@0:7={int(0.95 * whole)}/{STEPS}",
        f"  operator aten::item | time={5 * MS * STEPS}/{STEPS} call_time={5 * MS * STEPS}/{STEPS} sync_time={5 * MS * STEPS}/{STEPS}",
    )
    verdict = verdict_of(profile)
    assert verdict.kind == "device"
    for fix in verdict.fixes:
        if fix.rule in ("synchronisation", "cpu_latency", "python_overhead"):
            assert fix.high_ns <= 0.06 * 10 * MS


def test_a_run_of_two_steps_has_an_account_of_the_run():
    whole = 10 * MS
    profile = build(
        f"""
        process train.py | pid=5
          thread MainThread | tid=5 wall_ns={2 * whole} cpu_ns={2 * whole}
            phase step | call_time={whole}/1
            python main @ /home/ada/train.py:42
              operator aten::mm | time={16 * MS}/2 call_time={16 * MS}/2
            python main @ /home/ada/train.py:44
              phase optimizer | time={2 * MS}/2 call_time={2 * MS}/2
        """
    )
    verdict = verdict_of(profile)
    assert verdict.account is not None
    assert verdict.account.of == "run"


@pytest.mark.parametrize(("in_line_ms", "kind"), [(0, "blocked"), (300, "blocked"), (None, "blocked")])
def test_a_run_without_steps_knows_what_it_waited_for(in_line_ms: int | None, kind: str) -> None:
    """1,000 ms: Python ran for 250, 300 in line for a core where the kernel told, the rest asleep."""
    text = f"""
        process nap.py | pid=5
          thread MainThread | tid=5 wall_ns={1000 * MS} cpu_ns={250 * MS}
            python work @ /home/ada/nap.py:7 | cpu_sample={240 * MS}/12
            python main @ /home/ada/nap.py:14
              native [sleeps] | detail={{"wait":"sleep"}} wait={400 * MS}/40
    """
    profile = build(text)
    if in_line_ms is not None:
        ran = {"ran_ns": [0, 250 * MS], "queued_ns": [0, in_line_ms * MS]}
        profile.meta["observed"] = [{"tid": 5, **ran}]
    verdict = verdict_of(profile)
    assert verdict.account is not None
    assert verdict.account.of == "run"
    assert verdict.kind == kind
    assert verdict.place is not None
    assert verdict.place.text == "nap.py:14"
    assert verdict.account.ns("python") == 250 * MS
    assert verdict.account.ns("core") == (in_line_ms or 0) * MS
    assert verdict.account.ns("sleep") == (750 - (in_line_ms or 0)) * MS
    assert verdict.account.ns("unexplained") == 0


def test_a_queue_of_another_process_is_no_file_and_says_what_that_process_does() -> None:
    """8 of 10 ms a step waiting for a queue; the process that fills it sleeps in its own line."""
    wait = 8 * MS * STEPS
    waits = [
        "python main @ /home/ada/train.py:42",
        "  python Queue.get @ /usr/lib/python3.12/multiprocessing/queues.py:103",
        f'    native [waits for input or output] | detail={{"wait":"io"}} wait={wait}/40',
    ]
    text = "\n".join(
        (
            "process train.py | pid=5",
            f"  thread MainThread | tid=5 wall_ns={10 * MS * STEPS} cpu_ns={2 * MS * STEPS}",
            f"    phase step | call_time={10 * MS * (STEPS - 1)}/{STEPS - 1}",
            "    python <module> @ /home/ada/train.py:60",
            *("      " + line for line in (*operator("aten::mul", 0.1, 40), *waits)),
            "      python main @ /home/ada/train.py:44",
            f"        phase optimizer | time={MS * STEPS}/{STEPS} call_time={MS * STEPS}/{STEPS}",
            "process actor | pid=6 parent_pid=5",
            f"  thread MainThread | tid=6 wall_ns={10 * MS * STEPS} cpu_ns={MS * STEPS}",
            "    python actor @ /home/ada/train.py:12",
            f'      native [sleeps] | detail={{"wait":"sleep"}} wait={9 * MS * STEPS}/40',
        )
    )
    verdict = verdict_of(build(text))
    assert verdict.kind == "blocked"
    assert "waiting for the output of another process" in verdict.sentence
    assert verdict.place is not None
    assert verdict.place.text == "train.py:42"
    assert verdict.because[0] == "meanwhile the process that runs actor sleeps 90 % of its time  train.py:12"


@pytest.mark.parametrize(
    ("threads", "cores", "throttled_ms", "who", "do"),
    [
        (8, 2, 0, "each operator runs on 8 threads, but the program has 2 cores", "torch.set_num_threads(2)"),
        (2, 2, 0, "other threads or programs had all cores", "Give it its own cores"),
        (
            2,
            2,
            100,
            "the CPU quota of its control group stopped the program for 100 ms",
            "Raise the container's CPU quota",
        ),
    ],
)
def test_a_wait_for_a_core_says_who_has_them(threads: int, cores: int, throttled_ms: int, who: str, do: str) -> None:
    counts = f"step_running={2 * MS * (STEPS - 1)}/{STEPS - 1} step_core_wait={8 * MS * (STEPS - 1)}/{STEPS - 1}"
    observed: list[dict[str, object]] = [{"tid": 5, "throttled_ns": throttled_ms * MS}]
    profile = drawn(*operator("aten::mm", 1.5), counts=counts, observed=observed)
    profile.meta["available"] = {"torch": {"habits": {"threads": {"threads": threads, "cores": cores}}}}
    verdict = verdict_of(profile)
    assert verdict.sentence.startswith("waits for a core, 80 % of the step")
    assert who in verdict.sentence
    fix = next(one for one in verdict.fixes if one.rule == "core")
    assert do in fix.do
    assert sum(one.gain_ns for one in verdict.fixes) <= 10 * MS


def test_an_allocation_of_seconds_is_no_python() -> None:
    """The first use of a device, in an operator that computes nothing."""
    verdict = verdict_of(drawn(*operator("aten::empty_strided", 8)))
    assert verdict.kind == "operator"
    assert "aten::empty_strided" in verdict.sentence
    assert "Python" not in verdict.sentence


@pytest.mark.parametrize("more", ["", "saving", "garbage collection"])
def test_a_step_that_no_clock_measured_is_as_long_in_the_verdict_as_in_findings(more: str) -> None:
    """12 ms of operators in each call of the model; saving 4 ms more is a part of the step, wherever it is said."""
    lines = [
        "process infer.py | pid=5",
        f"  thread MainThread | tid=5 wall_ns={30 * MS * STEPS} cpu_ns={30 * MS * STEPS}",
        "    python <module> @ /home/ada/infer.py:60",
        "      python main @ /home/ada/infer.py:44",
        "        module net",
        f"          operator aten::mm | time={12 * MS * STEPS}/{STEPS} call_time={12 * MS * STEPS}/{STEPS}",
        *([f"        phase {more} | call_time={4 * MS * STEPS}/{STEPS}"] if more else []),
    ]
    profile = build("\n".join(lines))
    verdict = verdict_of(profile)
    assert verdict.account is not None and verdict.account.of == "step"
    step = Case(profile).loop.step_ns
    assert verdict.account.wall_ns == pytest.approx(step, abs=1)
    assert step == pytest.approx((16 if more == "saving" else 12) * MS, rel=0.4)
