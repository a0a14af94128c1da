"""What a user who compares two versions of a program reads, and when the gate closes."""

from __future__ import annotations

import json
import re

import pytest

import leadline
from leadline.cli import main as cli
from leadline.compare import Limits, compare, judge
from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.profiles.writer import write_profile

STEPS = 10


def run(
    mm: int = 1000, relu: int = 400, *, function: str = "step", line: int = 10, extra: str = "", pid: int = 7,
    bytes_: int = 64, steps: int = STEPS, argv: tuple[str, ...] = ("train.py",), file: str = "/a/train.py", rank: int = -1,
) -> Profile:  # fmt: skip
    """A training run of `steps` steps; times are ns per step of the operators."""
    many = lambda value: ",".join([str(value)] * steps)  # noqa: E731
    text = f"""
process /usr/bin/python train.py | pid={pid} rank={rank}
  thread main
    python main @ {file}:{line + 40} | first_line={line + 30}
      python {function} @ {file}:{line} | first_line={line - 1}
        module model.h.0 [Block]
          phase forward
            operator aten::mm | time={many(mm)} call_time={many(mm)} alloc_bytes={many(bytes_)}
        module model.h.1 [Block]
          operator aten::relu | time={many(relu)} call_time={many(relu)}
        phase optimizer | time={many(100)} call_time={many(100)}
{extra}
"""
    profile = build(text)
    profile.meta["program"]["argv"] = list(argv)
    return profile


def by_name(diff):
    return {change.name: change for change in diff.changes}


def test_every_nanosecond_of_the_difference_stands_in_one_row():
    extra = "          operator aten::sort | time=500,500,500,500,500,500,500,500,500,500\n"
    diff = compare([run()], [run(mm=2000, relu=300, extra="        module model.h.2 [Block]\n" + extra)])
    changes = by_name(diff)
    assert (changes["aten::mm"].time.a, changes["aten::mm"].time.b) == (1000, 2000)
    assert (changes["aten::relu"].time.a, changes["aten::relu"].time.b) == (400, 300)
    assert (changes["model.h.2"].status, changes["model.h.2"].time.b) == ("added", 500)
    assert sum(change.delta_ns for change in diff.changes) == diff.step.b - diff.step.a == 1400
    assert changes["aten::mm"].path == ("main", "step", "model.h.0", "forward", "aten::mm")
    assert {name: (a, b) for name, a, b in diff.groups["module"]}["model.h.*"] == (1400, 2800)
    assert {name: (a, b) for name, a, b in diff.groups["operator class"]}["matrix product"] == (1000, 2000)


def test_moved_lines_other_pids_and_folders_are_no_change():
    diff = compare([run()], [run(line=200, pid=4711, file="/b/c/train.py")])
    assert diff.changes == ()
    assert ("step", "train.py:9", "train.py:199") in diff.moved
    assert diff.differences == ()


def test_a_renamed_function_is_the_same_function():
    diff = compare([run()], [run(mm=1500, function="train_step")])
    assert diff.renamed == (("step", "train_step"),)
    assert [change.name for change in diff.changes] == ["aten::mm"]
    other = compare([run()], [build("python other @ b.py:1\n  operator aten::fft | time=5")])
    assert other.renamed == ()


def test_what_samples_met_on_one_side_only_is_not_renamed():
    imports = "python <module> @ a.py:1\n  python import_it @ a.py:2\n    "
    calls = "\n      python helper @ b.py:4 | cpu_time=5/1"
    one, other = (build(f"{imports}python {name} @ b.py:1{calls}") for name in ("_make_function", "_register"))
    assert compare([one], [other]).renamed == ()
    # counted on both sides, and both names are in use on both sides, too
    both = "python step @ a.py:1\n  python {} @ b.py:1\n    operator aten::mm | time=5/1 call_time=5/1\n"
    also = "python other @ a.py:7\n  python {} @ b.py:1\n    operator aten::add | time=5/1 call_time=5/1"
    first, second = (build((both + also).format(*names)) for names in (("f", "g"), ("g", "f")))
    assert compare([first], [second]).renamed == ()


def test_ranks_meet_their_own_rank():
    assert compare([run(rank=1, pid=1)], [run(rank=1, pid=9)]).changes == ()
    statuses = {change.status for change in compare([run(rank=0)], [run(rank=1)]).changes}
    assert statuses == {"added", "removed"}


def test_steps_normalise():
    diff = compare([run(steps=10)], [run(steps=15)])
    assert (diff.step.a, diff.step.b) == (1500, 1500)
    assert diff.steps == (10, 15)
    assert diff.changes == ()


def test_one_run_per_side_states_its_minimum():
    diff = compare([run()], [run(mm=1200)])
    assert diff.step.verdict == "no clear change"
    assert "below 30 % may be noise" in diff.smallest
    verdict = judge(diff, Limits(0.05))
    assert verdict.code == 3
    assert "noise" in verdict.reasons[0]
    failed = judge(compare([run()], [run(mm=2000)]), Limits(0.05))
    assert failed.code == 1
    assert failed.paths[0].name == "aten::mm"


def test_many_runs_find_a_small_change_and_no_change_in_noise():
    noise = (0, 13, 5, 21, 9)
    base = [run(mm=1000 + one, relu=400 + one // 2) for one in noise]
    slower = [run(mm=1150 + one, relu=402 + one // 2) for one in noise]
    same = [run(mm=1002 + one, relu=401 + one // 2) for one in reversed(noise)]
    diff = compare(base, slower)
    assert diff.exact
    assert by_name(diff)["aten::mm"].time.verdict == "slower"
    assert diff.step.low < 1.1 < diff.step.high
    verdict = judge(diff, Limits(0.05))
    assert verdict.code == 1
    assert [change.name for change in verdict.paths] == ["aten::mm"]
    assert judge(compare(base, same), Limits(0.05)).code == 0
    assert judge(diff, Limits(0.5)).code == 0


def test_memory_is_gated_exactly():
    diff = compare([run()], [run(bytes_=100)])
    assert judge(diff, Limits(None, 0.05)).code == 1
    assert judge(diff, Limits(None, 0.60)).code == 0
    assert judge(diff, Limits(0.05)).code == 0


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (run(argv=("eval.py",)), "The program differs: train.py against eval.py"),
        (run(argv=("train.py", "--batch", "8")), "The arguments differ: no arguments against --batch 8"),
        (run(steps=100), "10 to 100 steps"),
    ],
)
def test_what_cannot_be_compared_says_so_before_any_number(other, says, tmp_path, capsys):
    diff = compare([run()], [other])
    verdict = judge(diff, Limits(0.05))
    assert verdict.code == 3
    assert "not comparable" in verdict.reasons[0]
    assert any(says in reason for reason in verdict.reasons)
    assert judge(diff, Limits(0.05, allowed=(diff.differences[0][0],))).code == 0
    write_profile(tmp_path / "a.leadline", run())
    write_profile(tmp_path / "b.leadline", other)
    assert cli.main(["diff", str(tmp_path / "a.leadline"), str(tmp_path / "b.leadline")]) == 0
    text = capsys.readouterr().out
    assert says in text.splitlines()[0]


def test_profiles_of_nothing_compare_without_a_traceback():
    empty = build("process p")
    diff = compare([empty], [empty])
    assert diff.changes == ()
    assert judge(diff, Limits(0.05)).code == 3


def test_the_commands(tmp_path, capsys):
    names = []
    for place, profile in enumerate((run(), run(mm=1001), run(mm=3000), run(mm=3001))):
        names.append(str(tmp_path / f"{place}|<x>.leadline"))
        write_profile(names[-1], profile)
    a, a2, b, b2 = names
    assert cli.main(["diff", a, a2, "--", b, b2]) == 0
    text = capsys.readouterr().out
    assert "A: 2 runs of 10 steps, B: 2" in text
    assert "main › step › model.h.0 › forward › aten::mm" in text
    assert cli.main(["diff", a, b, "--format", "markdown"]) == 0
    assert "| --- | ---: |" in capsys.readouterr().out
    assert cli.main(["diff", a, b, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["step"]["b"] == 3500
    assert cli.main(["diff", a, b, "--format", "html", "-o", str(tmp_path / "d.html")]) == 0
    assert "aten::mm" in (tmp_path / "d.html").read_text()
    assert cli.main(["diff", a, a2, b]) == 2
    assert cli.main(["diff", a, "--"]) == 2
    assert cli.main(["gate", b, "--against", a, "--max-slowdown", "5%"]) == 1
    assert "aten::mm" in capsys.readouterr().out
    assert cli.main(["gate", a2, "--against", a, "--max-memory", "5%"]) == 0
    assert cli.main(["gate", a2, "--against", a, "--max-slowdown", "fast"]) == 2
    assert leadline.diff(a, b).step.b == 3500
    assert leadline.diff([run(), a], [b]).runs == (2, 1)


def test_set_up_is_no_part_of_a_step():
    setup = "      operator aten::normal_ | time=900000 call_time=900000\n"
    diff = compare([run()], [run(extra=setup)])
    assert (diff.step.a, diff.step.b) == (1500, 1500)
    assert diff.changes == ()


def evaluating(tmp_path, milliseconds: int, layers: int = 4) -> Profile:
    """Forty steps, an evaluation after every twentieth, set-up before the loop and a last evaluation after it."""
    file = tmp_path / "train.py"
    file.write_text(
        "def main():\n    model = build()\n    for i in range(40):\n        loss(model)\n        optimizer.step()\n"
        "        if i % 20 == 19:\n            evaluate(model)\n    evaluate(model)\n"
    )
    mm = f"time={milliseconds}000000/2 call_time={milliseconds}000000/2"
    return build(
        f"""
process train.py | pid=5
  thread main
    python main @ {file}:2 | first_line=1
      operator aten::normal_ | time=900000000/{layers} call_time=900000000/{layers}
    python main @ {file}:4 | first_line=1
      operator aten::mm | time=40000000/40 call_time=40000000/40
    python main @ {file}:5 | first_line=1
      phase optimizer | time=4000000/40 call_time=4000000/40
    python main @ {file}:7 | first_line=1
      operator aten::mm | {mm}
    python main @ {file}:8 | first_line=1
      operator aten::sort | time=700000000/1 call_time=700000000/1
""".lstrip("\n")
    )


def test_what_a_loop_does_now_and_then_is_compared_and_set_up_is_not(tmp_path):
    diff = compare([evaluating(tmp_path, 200)], [evaluating(tmp_path, 400)])
    assert diff.step.a == pytest.approx(1.1e6 + 200e6 / 40)
    assert diff.step.b - diff.step.a == pytest.approx(200e6 / 40)
    assert [change.delta_ns for change in diff.changes] == [pytest.approx(5e6)]
    assert judge(diff, Limits(0.05)).code == 1


def test_without_its_source_only_lines_between_others_of_the_loop_are_told(tmp_path):
    one, two = evaluating(tmp_path, 200, layers=3), evaluating(tmp_path, 400, layers=3)
    (tmp_path / "train.py").unlink()
    assert compare([one], [two]).step.b == pytest.approx(1.1e6)


def test_names_from_a_profile_are_never_markup_or_control_characters(tmp_path, capsys):
    hostile = run(argv=("train.py", "\x1b[31m<img src=x>", "**bold**|`x`"), function="a_b*c*", file="/a/<b>.py")
    paths = [tmp_path / "a.leadline", tmp_path / "b.leadline"]
    write_profile(paths[0], run())
    write_profile(paths[1], hostile)
    for form in ("text", "markdown"):
        cli.main(["gate", str(paths[1]), "--against", str(paths[0]), "--format", form])
        text = capsys.readouterr().out
        assert "\x1b" not in text
        if form == "markdown":
            assert not re.search(r"(?<!\\)<img|(?<!\\)\*\*bold", text), text


def on_device(operator: str, kernel: str, norm: str, ns: int) -> Profile:
    """The same model on some framework and some device: a product and a norm a step."""
    each = lambda value: ",".join([str(value)] * STEPS)  # noqa: E731
    return build(
        f"""
process train.py | pid=7
  thread main
    python step @ /a/train.py:10
      operator {operator} | time={each(1000)} call_time={each(1000)}
        kernel {kernel} | gpu_time@0:7={each(ns)}
      operator layer_norm | time={each(100)} call_time={each(100)}
        kernel {norm} | gpu_time@0:7={each(50)}
    python step @ /a/train.py:12
      phase optimizer | time={each(10)} call_time={each(10)}
""".lstrip("\n")
    )


def test_devices_and_frameworks_meet_by_class():
    nvidia = on_device("aten::mm", "ampere_bf16_s16816gemm_bf16_128x128", "void layer_norm_kernel<float>", 400)
    amd = on_device("aten::mm", "Cijk_Ailk_Bljk_BBS_BH_MT128x128", "void layer_norm_hip<float>", 700)
    jax = on_device("dot_general", "nvjet_gemm_fusion", "input_layer_norm_fusion", 300)
    for other, ns in ((amd, 700), (jax, 300)):
        groups = compare([nvidia], [other]).groups
        assert {name: (a, b) for name, a, b in groups["kernel class"]} == {
            "matrix product": (400, ns),
            "normalisation": (50, 50),
        }
        assert ("matrix product", 1000, 1000) in groups["operator class"]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("aten::expand", "other"),  # holds "exp"
        ("aten::clamp_min", "element-wise"),
        ("aten::max_pool2d", "pooling"),
        ("aten::addcmul_", "element-wise"),
        ("aten::upsample_bilinear2d", "unknown"),  # holds "linear"
        ("dot_general", "matrix product"),
    ],
)
def test_groups_by_class_are_those_of_every_other_answer(operator, expected):
    before, after = (on_device(operator, "some_kernel", "other_kernel", ns) for ns in (400, 500))
    groups = compare([before], [after]).groups
    assert (expected, 1000.0, 1000.0) in groups["operator class"]
    assert ("unknown" if expected == "unknown" else expected, 400, 500) in groups["kernel class"]
