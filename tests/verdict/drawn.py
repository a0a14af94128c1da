"""Drawn profiles of what the newer rules look for."""

from __future__ import annotations

from typing import Any

from tests.analysis.test_findings import MS, training

from leadline.profiles.build import build
from leadline.profiles.profile import Profile


def operator(indent: str, name: str, ms: float, calls: int) -> str:
    return f"{indent}operator {name} | time={int(ms * 10 * MS)}/{calls} call_time={int(ms * 10 * MS)}/{calls}"


def normed(each: int) -> Profile:
    """Ten steps; a parametrised module computes its weight `each` times a step, 3 ms in all."""
    return training(
        "python main @ /home/ada/train.py:43",
        "  module model.cell [NormedCell]",
        "    python Cell.forward @ /home/ada/train.py:25",
        "      module model.cell.gate.parametrizations.weight [ParametrizationList]",
        operator("        ", "aten::_weight_norm_interface", 3, 10 * each),
    )


def grown(late_ns: int, calls: tuple[int, int] = (100, 1000)) -> Profile:
    """A path of the optimizer beside four that stay as they are."""
    profile = training()
    steady: list[dict[str, Any]] = [
        {"file": "/home/ada/train.py", "line": 50 + number, "function": "main", "what": f"aten::op{number}"}
        | {"steps": [100, 1000], "calls": [100, 1000], "ns": [100 * MS, 1000 * MS]}
        for number in range(4)
    ]
    changed = {"file": "/home/ada/train.py", "line": 44, "function": "main", "what": "aten::sqrt"}
    changed |= {"steps": [100, 1000], "calls": list(calls), "ns": [calls[0] * MS, calls[1] * late_ns]}
    profile.meta["growth"] = [changed, *steady]
    return profile


def typed(name: str) -> Profile:
    """A convolution that fell back, in a program whose modules are of that type."""
    line = operator("  ", "aten::_slow_conv2d_forward", 6, 10)
    profile = training("python main @ /home/ada/train.py:43", line)
    profile.meta["available"] = {"torch": {"ok": True, "habits": {"types": {name: 1000}}}}
    return profile


def drawing(ms: float) -> Profile:
    """Attention with dropout on a CPU: `ms` of random numbers a step."""
    return training(
        "python main @ /home/ada/train.py:43",
        operator("  ", "aten::scaled_dot_product_attention", 0.1, 10),
        operator("    ", "aten::bernoulli_", ms, 10),
    )


def held(waited_ms: float, other_ms: float = 9, core_ms: float = 0) -> Profile:
    """A loop that waits for the interpreter (and for a core), and another thread that runs Python for `other_ms` of a
    step of 10 ms."""
    wait, ran, core = (int(one * 10 * MS) for one in (waited_ms, other_ms, core_ms))
    return build(
        "\n".join(
            (
                "process train.py | pid=5",
                "  thread MainThread | tid=5 wall_ns=100000000",
                "    python main @ /home/ada/train.py:43",
                f"      operator aten::mm | time={10 * MS}/10 call_time={10 * MS}/10",
                f'      native [waits for the GIL] | detail={{"wait":"gil"}} wait={wait}/10',
                f'      native [waits for a core] | detail={{"wait":"core"}} wait={core}/10',
                "    python main @ /home/ada/train.py:44",
                f"      phase optimizer | time={MS}/10 call_time={MS}/10",
                f"    phase step | call_time={90 * MS}/9",
                "  thread plots | tid=6 wall_ns=100000000",
                f"    python refresh @ /home/ada/train.py:12 | cpu_sample={ran}/10",
            )
        )
    )


def eager_jax(number: int) -> Profile:
    """No step: `number` additions, and fewer products, of JAX outside of any program, and a second of Python."""
    lines = [
        "process train.py | pid=5",
        "  thread MainThread | tid=5 wall_ns=2000000000",
        "    python main @ /home/ada/train.py:7 | cpu_sample=1000000000/100",
    ]
    for name, calls in (("add", number), ("mul", number // 2)):
        detail = f'{{"function":"{name}","of":"jax"}}'
        lines += [
            f"      phase compile | call_time={MS}/1 time={MS}/1 detail={detail}",
            f"      operator jit({name}) | time={calls * MS // 10}/{calls} call_time={calls * MS // 10}/{calls}",
        ]
    return build("\n".join(lines))


def padded(percent: int) -> Profile:
    """So much of ten batches is padding, four fifths of it in all rows alike."""
    profile = training(
        "python main @ /home/ada/train.py:43", "  module net [Bert]", operator("    ", "aten::embedding", 6, 10)
    )
    sums = {"batches": 10, "all": percent * 100_000, "common": percent * 80_000}
    profile.meta["available"] = {"torch": {"ok": True, "padding": sums}}
    return profile


def kept(results: int) -> Profile:
    """Of 40 results of 10 MiB that ten steps made, so many are alive at once."""
    sizes = f" alloc_bytes={40 * 10 << 20}/40 peak_live_bytes={results * 10 << 20}/1"
    return training("python main @ /home/ada/train.py:43", operator("  ", "aten::linear", 0.5, 40) + sizes)
