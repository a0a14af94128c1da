"""Every rule: a drawn profile in which it speaks, on the line that it should name, and a twin in which it is silent.
The twin differs in what the rule is about and in nothing else. A rule without a pair fails the last test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from tests.analysis import drawn_jax
from tests.analysis.drawn_devices import scratch
from tests.analysis.drawn_engines import SERVED, served
from tests.analysis.test_findings import training
from tests.verdict.drawn import drawing, grown, held, kept, normed, padded, typed

from leadline.analysis.analyze import analyze
from leadline.analysis.rules import RULES
from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.profile import Profile

MS = 1_000_000
AT = "python main @ /home/ada/train.py:43"
UNUSED = {"modules": [{"module": "body", "class": "Body"}], "parameters": 9, "bytes": 36, "of_parameters": 9}


@dataclass(frozen=True)
class Pair:
    """`line`: what the first line of the finding is; 0 where it has none. `words`: part of its title."""

    problem: Callable[[], Profile]
    twin: Callable[[], Profile]
    words: str
    line: int = 43
    settings: dict[str, str] = field(default_factory=dict)


def inside(*lines: str, **how: int) -> Callable[[], Profile]:
    return lambda: training(AT, *("  " + line for line in lines), **how)


def called(name: str, number: int, ms: float = 0.0, more: str = "") -> str:
    """An operator that is called so often and takes so many ms in all."""
    ns = int(ms * MS)
    return f"operator {name} | time={ns}/{number} call_time={ns}/{number}{more}"


def with_process_facts(make: Callable[[], Profile], **torch: object) -> Callable[[], Profile]:
    def made() -> Profile:
        profile = make()
        profile.meta["available"] = {"torch": {"ok": True, **torch}}
        return profile

    return made


def stepped(*lines: str, step_ms: int = 10) -> Callable[[], Profile]:
    """Ten steps with a clock; `lines` stand below the process's thread."""
    return lambda: build(
        "\n".join(
            [
                "process train.py | pid=5",
                "  thread main | tid=5",
                *("    " + line for line in lines),
                "    python main @ /home/ada/train.py:44",
                f"      phase optimizer | time={MS}/10 call_time={MS}/10",
                f"    phase step | call_time={9 * step_ms * MS}/9",
            ]
        )
    )


def compiled(times: int, each_ms: int) -> Callable[[], Profile]:
    ns = each_ms * times * MS
    return stepped(AT, called("  aten::mm", 10, 50).replace("operator   ", "  operator "), f"  phase compile | time={ns}/{times} call_time={ns}/{times}")  # fmt: skip


def workers(number: int) -> Callable[[], Profile]:
    def made() -> Profile:
        children = "".join(
            f"\nprocess train.py | pid={20 + one} parent_pid=5 start_ns=0 end_ns=100\n  thread worker"
            for one in range(number)
        )
        loading = (
            f'phase data loading | time={MS}/10 call_time={MS}/10 detail={{"loader":"_MultiProcessingDataLoaderIter"}}'
        )
        profile = build(
            f"process train.py | pid=5\n  thread main | tid=5\n    {AT}\n      {loading}\n"
            f"    python main @ t.py:6\n      operator aten::mm | time={99 * MS}/10 call_time={99 * MS}/10\n"
            f"    python main @ t.py:7\n      phase optimizer | time=10/10 call_time=10/10{children}"
        )
        profile.meta["host"] = {"cpus": 4}
        return profile

    return made


def kernels(number: int, us: int, **more: int) -> Callable[[], Profile]:
    return inside(
        called("aten::add", number, number / 1000),
        f"  kernel add | gpu_time@0:7={number * us * 1000}/{number}" + "".join(f" {k}={v}/10" for k, v in more.items()),
    )


def shaped(threads: int) -> Callable[[], Profile]:
    launch = f"  kernel norm | gpu_time@0:7={9 * MS}/10 block_threads={threads * 10}/10"
    return inside(called("aten::instance_norm", 10, 0.1), launch)


def gridded(blocks: int) -> Callable[[], Profile]:
    lines = called("aten::sum", 10, 0.1), f"  kernel reduce | gpu_time@0:7={9 * MS}/10 grid_blocks={blocks * 10}/10"

    def made() -> Profile:
        (profile := inside(*lines)()).devices[0].detail.update(multiprocessors=132)
        return profile

    return made


def idle(ms: int) -> Callable[[], Profile]:
    return inside(
        called("aten::stack", 10, 50, f" gpu_idle_time={ms * MS}/10"), f"  kernel stack | gpu_time@0:7={MS}/10"
    )


def copy(number: int, bytes_: int, kind: str, ms: float = 0.1) -> Callable[[], Profile]:
    return inside(
        called("aten::copy_", number, 0.1),
        f"  copy Memcpy HtoD ({kind} -> Device) | gpu_time@0:7={int(ms * MS)}/{number} copy_bytes@0:7={number * bytes_}/{number}",
    )


def product(shapes: str) -> Callable[[], Profile]:
    return inside(
        called("aten::mm", 10, 0.1, f' detail={{"shapes":{shapes}}}'), f"  kernel gemm | gpu_time@0:7={9 * MS}/10"
    )


def backward_of(name: str, forward: int, backward: int, node: str) -> Callable[[], Profile]:
    return inside(
        called(name, 10, forward),
        "  phase backward",
        "    " + called(f"autograd::engine::evaluate_function: {node}", 10, 0),
        "      " + called(node, 10, backward),
    )


def frozen() -> Profile:
    lines = ("module net.body [Body]", "  " + called("aten::linear", 10, 30), "    phase backward", "      " + called("AddmmBackward0", 10, 30))  # fmt: skip
    return inside(*lines)()


def allocating(alive: int) -> Callable[[], Profile]:
    """Four megabytes in each of ten steps; so much of it is alive at the peak."""
    return inside(called("aten::mm", 10, 5, f" alloc_bytes={40 * MS}/10 peak_live_bytes={alive * MS}"))


def ranks(*work: int) -> Callable[[], Profile]:
    def one(number: int, ms: int) -> str:
        rest = 100 - ms
        return f"""
process train.py | pid={10 + number} rank={number}
  thread main | tid={10 + number}
    {AT}
      operator aten::mm | time={ms * MS}/10 call_time={ms * MS}/10
    python main @ /home/ada/train.py:44
      operator c10d::allreduce_ | time={rest * MS}/10 call_time={rest * MS}/10
    python main @ /home/ada/train.py:45
      phase optimizer | time=10/10 call_time=10/10"""

    return lambda: build("".join(one(*pair) for pair in enumerate(work)).lstrip("\n"))


def devices(used: bool) -> Callable[[], Profile]:
    def made() -> Profile:
        if used:
            return training(AT, "  " + called("aten::mm", 10, 1), f"    kernel gemm | gpu_time@0:7={MS}/10")
        builder = ProfileBuilder()
        builder.thread(process := builder.process("train.py"), "main")
        builder.device(process, 0, "H200", uuid="a")
        return builder.profile()

    return made


def modules(number: int, us: int) -> Callable[[], Profile]:
    """So many layers, in each of which the same line makes a constant."""
    return inside(
        *(
            line
            for layer in range(number)
            for line in (
                f"module net.{layer} [Layer]",
                "  python Layer.forward @ /home/ada/net.py:9",
                "    " + called("aten::ones", 10, us / 100),
            )
        )
    )


def sampled(*instructions: tuple[str, str, int, int], **launch: int) -> Callable[[], Profile]:
    """A hot kernel with (text, reason, samples, those with nothing else to issue) of its instructions."""
    return inside(
        called("aten::mm", 10, 1),
        f"  kernel cast | gpu_time@0:7={9 * MS}/10" + "".join(f" {k}={v * 10}/10" for k, v in launch.items()),
        *(
            f"    instruction {text} @ cast.cu:{20 + at} | instruction_samples@0:7={count} latency_samples@0:7={lost}"
            f' address={16 * at} detail={{"stall":"{reason}"}}'
            for at, (text, reason, count, lost) in enumerate(instructions, 1)
        ),
    )


def waiting(occupancy: int, *more: tuple[str, str, int, int], waves: int = 4000) -> Callable[[], Profile]:
    """For loads, in 700 samples, with so many percent of the warps that a multiprocessor can hold."""
    shape = {"registers": 255, "block_threads": 128, "occupancy": occupancy * 10_000, "waves": waves}
    return sampled(("LDG.E R4, [R2]", "long_scoreboard", 700, 650), ("FFMA R1", "selected", 200, 0), *more, **shape)


def counted(dram: int, issue: int) -> Callable[[], Profile]:
    """A hot kernel that reaches so many percent of the memory's rate, and issues in so many percent of the slots."""
    shares = {"dram": dram, "issue": issue, "active": 90, "occupied": 40}
    return inside(
        called("aten::mm", 10, 1),
        f"  kernel cast | gpu_time@0:7={9 * MS}/10 counted_time@0:7={MS}/10 dram_bytes@0:7={dram * 20_000}/10"
        + "".join(f" {name}_time@0:7={share * MS // 100}/10" for name, share in shares.items()),
    )


CHAIN = ("aten::mul", "aten::pow", "aten::add", "aten::tanh", "aten::div", "aten::sub")
PAIRS = {
    "hotspot": Pair(
        inside(called("aten::sort", 10, 600)),
        inside(*(called(f"aten::sort{one}", 10, 100) for one in range(9))),
        "aten::sort",
    ),
    "kernel_fusion": Pair(
        inside(*(called(name, 10, 10) for name in CHAIN)),
        inside(*(called(name, 10, 10) for name in CHAIN[:2])),
        "chain",
    ),
    "forward_backward": Pair(
        backward_of("aten::prod", 5, 60, "ProdBackward0"),
        backward_of("aten::prod", 30, 35, "ProdBackward0"),
        "12 times",
    ),
    "stall": Pair(
        sampled(("LDG.E", "long_scoreboard", 800, 800), ("FFMA", "selected", 200, 0)),
        sampled(("LDG.E", "long_scoreboard", 200, 200), ("FFMA", "selected", 800, 0)),
        "at cast.cu:21 (80 %)",
    ),
    "uncoalesced": Pair(
        sampled(("LDG.E R4, [R2]", "lg_throttle", 400, 300), ("FFMA R1", "selected", 600, 0)),
        sampled(("LDG.E R4, [R2]", "long_scoreboard", 400, 300), ("FFMA R1", "selected", 600, 0)),
        "in 30 % of its samples, most at cast.cu:21",
    ),
    "bank_conflicts": Pair(
        sampled(("LDS R4, [R2]", "mio_throttle", 500, 400), ("FFMA R1", "selected", 500, 0)),
        sampled(("LDS R4, [R2]", "mio_throttle", 500, 100), ("FFMA R1", "selected", 500, 0)),
        "waits for shared memory in 40 % of its samples, most at cast.cu:21",
    ),
    "occupancy": Pair(
        waiting(12), waiting(50), "issues nothing in 72 % of its samples, and its registers limit it to 12 %"
    ),
    "roofline": Pair(
        counted(20, 15), counted(70, 15), "far from both roofs: it reaches 20 % of the device memory's rate and 15 %"
    ),
    "cpu_latency": Pair(idle(40), idle(4), "device idles"),
    "data_loading": Pair(lambda: training(loading_ms=6), lambda: training(loading_ms=1), "60 % of the step", 41),
    "synchronisation": Pair(
        inside(called("aten::item", 400, 0), "  " + called("aten::_local_scalar_dense", 400, 1)),
        inside(called("aten::item", 10, 0), "  " + called("aten::_local_scalar_dense", 10, 1)),
        "40 times a step",
    ),
    "optimizer_loop": Pair(
        inside("phase optimizer", "  " + called("aten::addcdiv_", 900, 63)),
        inside("phase optimizer", "  " + called("aten::_fused_adam_", 10, 60)),
        "90 operators a step",
    ),
    "layout_conversion": Pair(
        inside(
            called("aten::contiguous", 20, 0),
            "  " + called("aten::clone", 20, 20),
            "    " + called("aten::copy_", 20, 20),
            "python main @ /home/ada/train.py:47",
            "  " + called("aten::contiguous", 20, 0),
            "    " + called("aten::clone", 20, 20),
        ),
        inside(called("aten::contiguous", 20, 0), "  " + called("aten::clone", 20, 1)),
        "memory format",
    ),
    "deterministic_backward": Pair(
        backward_of("aten::index", 5, 30, "IndexBackward0"),
        backward_of("aten::embedding", 5, 30, "EmbeddingBackward0"),
        "gradient of indexing",
    ),
    "block_shape": Pair(shaped(16), shaped(32), "Blocks of 16 threads leave 50 %"),
    "small_grid": Pair(gridded(8), gridded(132), "8 blocks for 132 multiprocessors"),
    "scratch_memory": Pair(scratch(10, 5), scratch(1, 5), "waits once a step for scratch memory: 5.0 % of the step"),
    "small_copies": Pair(copy(400, 64, "Pinned"), copy(400, 1_000_000, "Pinned"), "40 copies a step"),
    "pageable_copies": Pair(copy(10, 1_000_000, "Pageable", 10), copy(10, 1_000_000, "Pinned", 10), "pageable"),
    "allocator": Pair(allocating(40), allocating(4), "kept"),
    "recompilation": Pair(compiled(8, 20), compiled(2, 80), "8 times"),
    "graph_breaks": Pair(
        stepped(
            "phase compile | time=1/1 call_time=1/1",
            AT,
            "  python torch_dynamo_resume_in_forward_at_17 @ /home/ada/net.py:17",
            "    " + called("aten::mm", 10, 50),
        ),
        stepped(
            "phase compile | time=1/1 call_time=1/1",
            AT,
            "  python forward @ /home/ada/net.py:17",
            "    " + called("aten::mm", 10, 50),
        ),
        "breaks at 1 place",
        17,
    ),
    "compile_time": Pair(compiled(1, 200), compiled(1, 20), "Compiling takes"),
    **{rule: Pair(served(one[0]), served("even"), one[1], one[2]) for rule, one in SERVED.items()},
    "first_steps": Pair(
        lambda: training(
            AT, f"  operator aten::mm | time={9000 * MS},{','.join([str(MS)] * 59)} call_time={60 * MS}/60", steps=60
        ),
        lambda: training(AT, f"  operator aten::mm | time={60 * MS}/60 call_time={60 * MS}/60", steps=60),
        "First calls",
    ),
    "python_overhead": Pair(
        stepped(AT, "  " + called("aten::mm", 10, 15), step_ms=10),
        stepped(AT, "  " + called("aten::mm", 10, 70), step_ms=10),
        "outside operators",
        0,  # the optimizer's line would be a guess
    ),
    "padding": Pair(lambda: padded(80), lambda: padded(10), "80 % of each batch is padding"),
    "kept_results": Pair(lambda: kept(40), lambda: kept(4), "are all kept"),
    "weights_again": Pair(lambda: normed(60), lambda: normed(1), "60 times a step", 25),
    "slow_type": Pair(lambda: typed("float16"), lambda: typed("float32"), "float16"),
    "random_numbers": Pair(lambda: drawing(4), lambda: drawing(0.1), "Random numbers take"),
    "interpreter_lock": Pair(lambda: held(4), lambda: held(4, 0.1), "holds in refresh", 12),
    "grows": Pair(lambda: grown(10 * MS), lambda: grown(MS), "aten::sqrt takes 10 times", 44),
    "matmul_shape": Pair(product("[[512,768],[768,50257]]"), product("[[512,768],[768,50264]]"), "50257"),
    "communication": Pair(ranks(50, 52), ranks(95, 97), "Communication takes", 44),
    "imbalance": Pair(ranks(50, 50, 80), ranks(50, 50, 52), "Rank 2"),
    "thread_oversubscription": Pair(workers(9), workers(3), "9 workers"),
    "redundant_work": Pair(modules(4, 500), modules(2, 500), "4 modules each make", 9),
    "debug_modes": Pair(
        inside(
            called("aten::mul", 10, 1),
            "  phase backward",
            "    " + called("autograd::engine::evaluate_function: MulBackward0", 10, 1),
            "      " + called("aten::isnan", 10, 5),
        ),
        inside(
            called("aten::mul", 10, 1),
            "  phase backward",
            "    " + called("autograd::engine::evaluate_function: MulBackward0", 10, 6),
        ),
        "anomaly detection",
    ),
    "unused_gradients": Pair(
        with_process_facts(frozen, habits={"unused_gradients": UNUSED}),
        with_process_facts(frozen, habits={"unused_gradients": {}}),
        "never used",
    ),
    "garbage_collection": Pair(
        stepped(AT, f"  phase garbage collection | call_time={20 * MS}/5", "  " + called("aten::mm", 10, 50)),
        stepped(AT, f"  phase garbage collection | call_time={MS}/1", "  " + called("aten::mm", 10, 50)),
        "garbage collector takes",
    ),
    "unused_device": Pair(devices(False), devices(True), "did nothing", 0),
    "logging_in_loop": Pair(
        inside("python _str @ /v/site-packages/torch/_tensor_str.py:70", "  " + called("aten::abs", 100, 30)),
        inside("python _str @ /v/site-packages/torch/_tensor_str.py:70", "  " + called("aten::abs", 1, 30)),
        "prints or logs",
    ),
    "saving_in_loop": Pair(
        stepped(AT, f"  phase saving | call_time={20 * MS}/10", "  " + called("aten::mm", 10, 50)),
        stepped(AT, f"  phase saving | call_time={MS}/1", "  " + called("aten::mm", 10, 50)),
        "Saving takes",
    ),
    **{rule: Pair(*pair) for rule, pair in drawn_jax.PAIRS.items()},
}


@pytest.mark.parametrize("rule", PAIRS)
def test_the_problem_is_named_on_its_line_and_the_twin_is_left_alone(rule):
    pair = PAIRS[rule]
    found = list(analyze(pair.problem(), [rule], pair.settings))
    assert len(found) == 1, [one.title for one in found]
    assert pair.words in found[0].title
    assert (found[0].lines[0].line if found[0].lines else 0) == pair.line
    assert 0 <= found[0].gain.low_ns <= found[0].gain.expected_ns <= found[0].gain.high_ns
    assert found[0].evidence and found[0].remedy.endswith(".")
    twin = analyze(pair.twin(), [rule], pair.settings)
    assert [one.title for one in twin] == []
    assert [one.rule for one in twin.not_applicable] == []


def test_every_rule_has_a_pair():
    assert sorted(PAIRS) == sorted(rule.name for rule in RULES)
