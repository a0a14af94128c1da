"""Findings by CPU samples: the slow function is named, not the line that calls it, and calling operators is no function
that is slow."""

from __future__ import annotations

from leadline.analysis.analyze import analyze
from leadline.analysis.case import Case
from leadline.profiles.build import build
from leadline.report.build import build_report
from leadline.report.model import ReportOptions

MS = 1_000_000


def program(*inside: str, loading: str = "", step: bool = True):
    """Ten steps of 10 ms: an operator of 3 ms, an optimizer of 1 ms, and what `inside` says."""
    lines = [
        "process train.py | pid=5",
        "  thread MainThread | tid=5 wall_ns=100000000",
        f"    phase step | call_time={90 * MS}/9" if step else "    phase other",
        "    python main @ /home/ada/train.py:40",
        f"      phase data loading | time={MS}/10 call_time={MS}/10",
        *(["        " + loading] if loading else []),
        "    python main @ /home/ada/train.py:42",
        f"      operator aten::linear | time={30 * MS}/10 call_time={30 * MS}/10 cpu_sample={30 * MS}/30",
        *("    " + line for line in inside),
        "    python main @ /home/ada/train.py:44",
        f"      phase optimizer | time={10 * MS}/10 call_time={10 * MS}/10 cpu_sample={10 * MS}/10",
    ]
    profile = build("\n".join(lines))
    profile.meta.update(program={"argv": ["train.py"], "cwd": "/home/ada"}, host={"cpus": 8})
    return profile


SLOW = (
    "python main @ /home/ada/train.py:41",
    f"  python tokenise @ /home/ada/train.py:6 | cpu_sample={40 * MS}/40",
    f"    python tokenise.<locals>.<genexpr> @ /home/ada/train.py:7 | cpu_sample={10 * MS}/10",
)


def python_overhead(profile):
    return [one for one in analyze(profile) if one.rule == "python_overhead"]


def test_the_function_that_runs_is_named_and_not_the_line_that_calls_it():
    one = python_overhead(program(*SLOW))[0]
    assert one.severity.value == "warning"
    assert one.title.startswith("tokenise takes 50 % of the step in Python code")
    assert (one.lines[0].short, one.lines[0].line) == ("train.py", 6)
    assert one.gain.high_ns == 5 * MS
    assert "50 of 90 samples" in one.evidence[1]


def test_what_a_function_calls_of_numpy_and_native_code_is_its_own():
    numpy = "/usr/lib/python3/site-packages/numpy/_core/fromnumeric.py"
    one = python_overhead(
        program(
            "python main @ /home/ada/train.py:41",
            "  python features @ /home/ada/data.py:6",
            f"    python argsort @ {numpy}:1200",
            f"      native argsort_<double> @ /usr/lib/_multiarray.so | cpu_sample={50 * MS}/50",
        )
    )[0]
    assert (one.lines[0].short, one.lines[0].line) == ("data.py", 6)
    assert "mostly in argsort (100 %), argsort_<double> (100 %)" in one.evidence[0]


def test_code_outside_of_functions_has_a_name_that_says_so():
    one = python_overhead(program(f"python <module> @ /home/ada/train.py:41 | cpu_sample={50 * MS}/50"))[0]
    assert one.title.startswith("module-level code takes")
    assert one.remedy.startswith("Do less in module-level code")


def test_calling_operators_and_the_frameworks_own_python_are_no_slow_functions():
    torch = "/usr/lib/python3/site-packages/torch/nn/functional.py"
    inside = [
        "python main @ /home/ada/train.py:41",
        f"  python forward @ /home/ada/net.py:6 | cpu_sample={20 * MS}/20",
        f"    operator aten::add | time={10 * MS}/1000 call_time={10 * MS}/1000 cpu_sample={10 * MS}/10",
        f"    python relu @ {torch}:10 | cpu_sample={30 * MS}/30",
    ]
    assert not [one for one in python_overhead(program(*inside)) if "CPU time" in one.title]


def test_what_the_standard_library_does_with_modules_is_work_that_the_line_asked_for():
    """`copy.deepcopy(model)` calls an operator for each parameter, and takes 40 µs of Python for each."""
    python, torch = "/usr/lib/python3.11/copy.py", "/usr/lib/python3.11/site-packages/torch/_tensor.py"
    inside = [
        "python main @ /home/ada/train.py:41",
        "  python average @ /home/ada/ema.py:6",
        f"    python deepcopy @ {python}:128 | cpu_sample={25 * MS}/25",
        f"      python Tensor.__deepcopy__ @ {torch}:90 | cpu_sample={15 * MS}/15",
        f"        operator aten::clone | time={10 * MS}/1000 call_time={10 * MS}/1000 cpu_sample={10 * MS}/10",
    ]
    one = python_overhead(program(*inside))[0]
    assert one.title.startswith("average takes")
    assert (one.lines[0].short, one.lines[0].line) == ("ema.py", 6)
    assert "deepcopy" in one.evidence[0]


def test_a_decorator_around_a_call_of_the_framework_is_calling_operators():
    wrapper, torch = "/usr/lib/python3.11/contextlib.py", "/usr/lib/python3.11/site-packages/torch/optim/sgd.py"
    inside = [
        "python main @ /home/ada/train.py:41",
        "  python forward @ /home/ada/net.py:6",
        f"    python inner @ {wrapper}:81 | cpu_sample={10 * MS}/10",
        f"      python relu @ {torch}:10 | cpu_sample={10 * MS}/10",
        f"        operator aten::add | time={10 * MS}/1000 call_time={10 * MS}/1000 cpu_sample={10 * MS}/10",
    ]
    assert not [one for one in python_overhead(program(*inside)) if "CPU time" in one.title]


def test_samples_tell_the_length_of_a_step_where_no_clock_did():
    case = Case(program(*SLOW, step=False))
    assert case.loop.measured_by == "CPU samples"
    assert case.loop.step_ns == 9 * MS


def test_loading_names_what_makes_the_batch():
    slow = f"python Images.__getitem__ @ /home/ada/data.py:12 | cpu_sample={40 * MS}/40"
    profile = program(loading=slow)
    found = analyze(profile, ["data_loading"], {"data_loading.info": "0", "data_loading.mean": "0"})[0]
    assert ("data.py", 12) in [(line.short, line.line) for line in found.lines]
    assert any("100 % of the CPU time of loading in Images.__getitem__ (data.py:12)" in one for one in found.evidence)


def test_the_report_ranks_by_samples_without_imports():
    frozen = "<frozen importlib._bootstrap>"
    imports = (
        "python main @ /home/ada/train.py:1",
        f"  python _find_and_load @ {frozen}:5 | cpu_sample={500 * MS}/500",
    )
    report = build_report(program(*SLOW, *imports))
    assert report.path_metric == "cpu_sample"
    assert [path.place.line for path in report.paths[:2]] == [6, 42]
    assert report.imports_ns == 500 * MS
    assert report.path_total.sum == 90 * MS


IMPORTS = (
    "python main @ /home/ada/train.py:1",
    f"  python _find_and_load @ <frozen importlib._bootstrap>:5 | cpu_sample={500 * MS}/500",
    f"    python <module> @ /usr/lib/python3/site-packages/big/__init__.py:9 | cpu_sample={200 * MS}/200",
)


def test_what_a_module_took_to_import_is_no_findings():
    case = Case(program(*SLOW, *IMPORTS, step=False))
    assert case.loop.step_ns == 9 * MS
    found = python_overhead(program(*SLOW, *IMPORTS))
    assert [one.title.split(" takes ")[0] for one in found] == ["tokenise"]


def test_a_path_is_named_by_the_function_in_which_half_of_it_is():
    line = "python main @ /home/ada/train.py:41"
    library = "/usr/lib/python3/site-packages/trainer/loop.py"
    around = ("  python Trainer.fit @ " + library + ":5",)
    many = [f"    python part{one} @ {library}:{one} | cpu_sample={10 * MS}/10" for one in range(6)]
    path = build_report(program(line, *around, *many)).paths[0]
    assert (path.place.line, path.inner, path.values["cpu_sample"]) == (41, "Trainer.fit", 60 * MS)
    most = f"    python much @ {library}:90 | cpu_sample={70 * MS}/70"
    assert build_report(program(line, *around, *many, most)).paths[0].inner == "much"
    assert build_report(program(line, *(text[2:] for text in many))).paths[0].inner == ""
    assert build_report(program(*IMPORTS), ReportOptions(sort="cpu_sample")).paths[0].inner == "import"
