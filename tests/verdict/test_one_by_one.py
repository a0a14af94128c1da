"""A step of single operations of JAX is dispatch, at the line that calls most of them and by what it calls there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.drawn_jax import MS

from leadline.profiles.build import build
from leadline.profiles.profile import Profile

SOURCE = """\
def train(state):
    def step(state, x):
        loss, grads = grad_fn(state, x)
        state = tx.update(grads, state)
        return apply(state)
    for x in batches:
        state = step(state, x)
"""


def stepped(tmp_path: Path, number: int, pool_ms: float = 4) -> Profile:
    """Ten steps of 10 ms: a jitted gradient, and below line 4 `number` single operations a step, with 5 ms of Python in
    helpers of a library; `pool_ms`: waited for XLA there."""
    file = tmp_path / "train.py"
    file.write_text(SOURCE)
    library = "/venv/lib/python3.11/site-packages/optax/_src/update.py"
    lines = [
        "process train.py | pid=5 start_ns=0 end_ns=4000000000000000000",
        "  thread main | tid=5 wall_ns=100000000",
        f"    python train @ {file}:7",
        f"      python train.<locals>.step @ {file}:3",
        f"        operator jit(loss) | call_time={MS}/10",
        f"      python train.<locals>.step @ {file}:4",
        f"        python tree_norm @ {library}:40 | cpu_sample={50 * MS}/50",
        f'          native [waits for a lock] | detail={{"wait":"lock"}} wait={int(pool_ms * 10 * MS)}/40',
        f'          phase compile | time={MS}/1 call_time={MS}/1 detail={{"function":"add","of":"jax"}}',
        f"          operator jit(add) | call_time={MS}/{10 * number} time={MS}/{10 * number}",
        f"      python train.<locals>.step @ {file}:5",
        f"        operator jit(add) | call_time={MS}/20 time={MS}/20",
        f"    phase step | call_time={90 * MS}/9",
    ]
    profile = build("\n".join(lines))
    profile.meta["available"] = {"jax": {"ok": True}}
    return profile


@pytest.mark.parametrize(
    ("head", "line", "advice"),
    [
        ("self, x", "self.params = update(self.params, x)", "Write step as a function of parameters"),
        ("self, x", "self.a, self.b = update(self.a, x)", "Write step as a function of parameters"),
        ("self, x", "return update(self.params, x)", "Put @jax.jit on step"),
        ("params, x", "params = update(params, x)", "Put @jax.jit on step"),
    ],
)
def test_a_method_that_changes_its_object_is_not_to_be_compiled_as_it_is(
    tmp_path: Path, head: str, line: str, advice: str
) -> None:
    profile = stepped(tmp_path, 100)
    (tmp_path / "train.py").write_text(f"class Trainer:\n    def step({head}):\n        use(x)\n        {line}\n")
    remedies = [one.remedy for one in profile.findings() if one.rule == "op_by_op"]
    assert [one.startswith(advice) for one in remedies] == [True]


@pytest.mark.parametrize("pool_ms", [1, 4])
def test_many_single_operations_are_dispatch_at_the_call_of_the_line_with_most(tmp_path: Path, pool_ms: float) -> None:
    verdict = stepped(tmp_path, 100, pool_ms).verdict
    assert verdict.kind == "dispatch"
    assert verdict.sentence.startswith("dispatch-bound: many small operators: ")
    assert "tx.update in step   train.py:4" in verdict.sentence.replace(f"{tmp_path}/", "")
    assert "tree_norm" not in verdict.sentence
    assert verdict.because[0].startswith("tx.update in step at ")
    assert "100 operations of JAX a step on this line" in verdict.because[0]


def test_one_remedy_names_the_function_by_its_own_name(tmp_path: Path) -> None:
    fixes = [one.do for one in stepped(tmp_path, 100).verdict.fixes]
    assert [one[:19] for one in fixes] == ["Put @jax.jit on ste"]


def test_few_operations_are_not_the_cause(tmp_path: Path) -> None:
    assert stepped(tmp_path, 2).verdict.kind != "dispatch"
