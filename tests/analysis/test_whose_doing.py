"""What the analyzer must not hold against a program: the doing of packages, operators and gradients of their own."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import MS, named, names, training

from leadline.analysis.analyze import analyze
from leadline.profiles.build import build
from leadline.profiles.profile import Profile


def test_what_a_package_computes_in_many_functions_is_no_chain_of_the_program():
    """A line that calls a model of others stands above all of its operators; a chain is one function's own."""
    names_of = ("aten::mul", "aten::pow", "aten::add", "aten::tanh", "aten::div", "aten::sub")

    def model(functions: int) -> Profile:
        lines = [
            line
            for number, name in enumerate(names_of)
            for line in (
                f"  python part{number % functions} @ /v/site-packages/nets/layers.py:{10 * (number % functions) + 1}",
                f"    operator {name} | time={10 * MS}/10 call_time={10 * MS}/10",
            )
        ]
        return training("python main @ /home/ada/train.py:43", *lines)

    assert "kernel_fusion" not in names(analyze(model(6)))
    found = named(analyze(model(1)), "kernel_fusion")
    assert "at line 1 of part0 takes" in found.title and found.lines[0].line == 43
    assert "in nets/layers.py:1 part0" in found.evidence


def test_a_step_has_one_gradient_however_many_optimizers_follow_it():
    """Pyro gives each parameter an optimizer of its own, and calls them on one line."""
    rest = f"time={50 * MS}/10 call_time={50 * MS}/10"

    def program(optimizers: int, gradient: str = "phase backward") -> Profile:
        return build(
            f"""
            process train.py | pid=5
              thread main | tid=5
                python main @ /home/ada/train.py:42
                  phase forward
                    module net [Net]
                      operator aten::linear | {rest}
                        {gradient}
                          operator AddmmBackward0 | {rest}
                python main @ /home/ada/train.py:44
                  phase optimizer | time={MS}/{10 * optimizers} call_time={MS}/{10 * optimizers}
                phase step | call_time={(10 * optimizers - 1) * 10 * MS}/{10 * optimizers - 1}
            """
        )

    assert analyze(program(1)).steps == 10
    assert analyze(program(8)).steps == 10
    assert analyze(program(8)).step_ns == pytest.approx(80 * MS, rel=0.02)
    assert analyze(program(8, "module other [Other]")).steps == 80  # where no gradient tells, the optimizer does


def test_operators_that_look_at_their_own_arguments_are_no_reads_of_the_program():
    inner = "    operator aten::_local_scalar_dense | time=1000000/400 call_time=1000000/400"
    line = "python main @ /home/ada/train.py:43"

    def calls(name: str) -> Profile:
        return training(line, f"  operator {name} | time=1000000/400 call_time=2000000/400", inner)

    assert "synchronisation" in names(analyze(calls("aten::is_nonzero")))
    assert "synchronisation" not in names(analyze(calls("aten::multinomial")))
    package = "  python step @ /v/site-packages/solver/rk.py:7"
    read = "    operator aten::is_nonzero | time=1000000/400 call_time=2000000/400"
    found = named(analyze(training(line, package, read, "  " + inner)), "synchronisation")
    assert "most of them in solver/rk.py:7 step" in found.evidence
    assert found.remedy.startswith("The package reads them")


def test_gradients_of_gradients_and_hooks_are_no_slow_backward_pass():
    def program(name: str, first: int, second: int) -> Profile:
        return training(
            "python main @ /home/ada/train.py:43",
            f"  operator {name} | time={20 * MS}/10 call_time={20 * MS}/10",
            "    phase backward",
            f"      operator Backward | time={first * MS}/10 call_time={first * MS}/10",
            "        phase backward",
            f"          operator BackwardBackward | time={second * MS}/10 call_time={second * MS}/10",
        )

    assert "forward_backward" in names(analyze(program("aten::prod", 120, 1)))
    assert "forward_backward" not in names(analyze(program("aten::prod", 20, 100)))
    assert "forward_backward" not in names(analyze(program("BackwardHookFunction", 120, 1)))


def test_a_hotspot_of_short_calls_is_told_as_that():
    def program(calls: int) -> str:
        lines = (f"  operator aten::mm | time={600 * MS}/{calls} call_time={600 * MS}/{calls}",)
        found = [
            one for one in analyze(training("python main @ /home/ada/train.py:43", *lines)) if one.rule == "hotspot"
        ]
        return found[0].remedy if found else ""

    assert program(100) == ""  # a few large products: what a model is made of
    assert "many short calls" in program(60_000)


def test_what_a_compiler_builds_on_its_own_threads_is_no_function_compiled_again():
    def compiling(file: str) -> Profile:
        return build(
            f"""
process train.py | pid=5
  thread main | tid=5
    python main @ /home/ada/train.py:43
      operator aten::mm | time={90 * MS}/10 call_time={90 * MS}/10
    python main @ /home/ada/train.py:44
      phase optimizer | time={MS}/10 call_time={MS}/10
  thread compiler | tid=6
    python build @ {file}:20
      phase compile | time={100 * MS}/10 call_time={100 * MS}/10
""".lstrip("\n")
        )

    assert names(analyze(compiling("/home/ada/net.py"), ["recompilation"])) == ["recompilation"]
    assert names(analyze(compiling("/v/site-packages/torch/_inductor/cpp_builder.py"), ["recompilation"])) == []


@pytest.mark.parametrize(("operations", "compiled", "found"), [(6, 6, False), (600, 6, False), (120, 40, True)])
def test_what_jax_runs_by_itself_is_compiled_once_for_each_of_a_lines_calls(operations, compiled, found):
    """Weights and an optimizer's state are made operation by operation, each with a shape of its own; so is what is
    done with a loss between steps, where only what is compiled in later steps was compiled in vain."""
    steps, ns = 120, compiled * MS
    profile = build(
        f"""
process train.py | pid=5
  thread main | tid=5
    python main @ /home/ada/train.py:40
      phase compile | time={ns}/{compiled} call_time={ns}/{compiled} detail={{"function":"zeros","of":"jax"}}
      operator jit(zeros) | call_time={1000 * operations}/{operations}
        operator broadcast_in_dim | time={1000 * operations}/{operations} call_time={1000 * operations}/{operations}
    python main @ /home/ada/train.py:44
      operator jit(step) | call_time={steps * MS}/{steps}
        phase forward
          operator dot_general | time={60 * MS}/{20 * steps} call_time={60 * MS}/{20 * steps}
        phase backward
          operator dot_general | time={24 * MS}/{20 * steps} call_time={24 * MS}/{20 * steps}
""".lstrip("\n")
    )
    told = analyze(profile, ["recompilation"])
    assert told.steps == steps, "one for each run of the program, and not for each operation in it"
    assert names(told) == (["recompilation"] if found else [])


def test_a_phase_of_compiling_that_never_ran_by_itself_does_not_make_steps_long():
    """Phases of compiling have parts, and the node above these may have no call of its own."""
    profile = build(
        f"""
process train.py | pid=5
  thread main | tid=5
    phase step | call_time={100 * MS}/10
    python main @ /home/ada/train.py:40
      phase compile
        phase XLA | time={40 * MS}/1 call_time={40 * MS}/1
    python main @ /home/ada/train.py:44
      operator aten::mm | time={90 * MS}/10 call_time={90 * MS}/10
      phase optimizer | time={MS}/10 call_time={MS}/10
""".lstrip("\n")
    )
    assert analyze(profile).step_ns == pytest.approx(11 * MS)  # ten steps and the one before the first mark


def test_an_optimizer_inside_of_compiled_code_is_no_loop_and_tf_data_has_remedies_of_its_own():
    def step(above: str, indent: str, sparse: str = "") -> Profile:
        updates = sparse + "\n".join(
            f"{indent}      python update @ /v/site-packages/keras/adam.py:{number}\n"
            f"{indent}        operator ResourceApplyAdam | time={10 * MS}/10 call_time={10 * MS}/10"
            for number in range(1, 51)
        )
        return build(
            f"""
process train.py | pid=5
  thread main | tid=5
    python main @ /home/ada/train.py:43
      phase data loading
        operator IteratorGetNext | time={500 * MS}/10 call_time={500 * MS}/10
    python main @ /home/ada/train.py:44
{above}{indent}    phase optimizer | time={MS}/10 call_time={MS}/10
{updates}
""".lstrip("\n")
        )

    assert "optimizer_loop" in names(analyze(step("", "  ")))
    sparse = (
        f"        python update @ /v/adam.py:9\n          operator aten::coalesce | time={MS}/10 call_time={MS}/10\n"
    )
    assert "optimizer_loop" not in names(analyze(step("", "  ", sparse))), "fused forms refuse sparse gradients"
    found = analyze(step(f"      operator tf.function(step) | call_time={700 * MS}/10\n", "    "))
    assert "optimizer_loop" not in names(found)
    loading = named(found, "data_loading")
    assert "tf.data.AUTOTUNE" in loading.remedy and "DataLoader" not in loading.remedy
    assert loading.evidence[0] == "50.0 ms a batch, 10 batches"
    assert not any("num_workers" in one for one in loading.evidence)
