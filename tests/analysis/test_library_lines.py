"""A class of a library that takes much of the step on several lines, with what it makes in its constructor."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import training
from tests.analysis.test_recorded_in_vain import called

from leadline.analysis.analyze import analyze
from leadline.analysis.case import case_of

SITE = "/usr/lib/python3.11/site-packages"
NORMAL = f"{SITE}/torch/distributions/multivariate_normal.py"


def asked(file: str, *, made_ms: int = 30, asked_ms: int = 30, name: str = "MultivariateNormal", inside: str = ""):
    """Ten steps of 10 ms: a policy makes something in its forward pass, and another line asks it. `inside`: a frame
    that it calls, in which the time is."""
    lines = [
        "python main @ /home/ada/train.py:43",
        "  module policy [Policy]",
        "    python Policy.forward @ /home/ada/net.py:20",
        f"      python {name}.__init__ @ {file}:194",
        *(["        " + inside] if inside else []),
        ("          " if inside else "        ") + called("aten::linalg_cholesky_ex", 10, made_ms),
        "python main @ /home/ada/train.py:43",
        f"  python {name}.log_prob @ {file}:260",
        *(["    " + inside] if inside else []),
        ("      " if inside else "    ") + called("aten::linalg_solve_triangular", 10, asked_ms),
    ]
    return training(*lines)


def found(profile):
    return [one for one in analyze(profile, ["hotspot"]) if " lines" in one.title]


def test_lines_of_one_class_are_added_up_with_its_constructor():
    (one,) = found(asked(NORMAL))
    assert one.title == "MultivariateNormal of torch.distributions takes 38 % of the step, on 2 lines"
    assert {line.line for line in one.lines} == {20, 43}
    assert one.severity.value == "warning" and "scale_tril" in one.remedy
    assert "aten::linalg_cholesky_ex 50 %" in one.evidence[1]


CATEGORICAL = f"{SITE}/torch/distributions/categorical.py"
CHECKED = f"python Distribution._validate_sample @ {SITE}/torch/distributions/distribution.py:300"


@pytest.mark.parametrize(("inside", "advised"), [(CHECKED, True), ("", False)])
def test_checks_of_arguments_are_advised_against_where_they_run(inside, advised):
    (one,) = found(asked(CATEGORICAL, name="Categorical", inside=inside))
    assert ("validate_args=False" in one.remedy) is advised
    assert (one.severity.value == "warning") is advised


def test_a_library_of_which_nothing_is_known_is_a_note():
    (one,) = found(asked(f"{SITE}/acme/filters.py", name="Filter"))
    assert one.title.startswith("Filter of acme takes 38 %")
    assert (one.severity.value, one.of_place) == ("info", False)


@pytest.mark.parametrize(
    "how",
    [
        {"asked_ms": 2},  # one line has nearly all of it
        {"made_ms": 8, "asked_ms": 8},
        {"file": f"{SITE}/torch/nn/functional.py"},
        {"file": "/home/ada/own.py"},
        {"inside": "python step @ /home/ada/net.py:30"},  # what it calls of the program
        {"inside": "module policy.head [Linear]"},
    ],
    ids=str,
)
def test_one_line_little_time_and_what_others_do_are_left_alone(how):
    how = {"file": NORMAL, **how}
    assert found(asked(how.pop("file"), **how)) == []


def test_a_constructor_that_a_module_calls_is_part_of_the_step_and_one_before_is_not():
    before = ["python main @ /home/ada/train.py:9", "  python Net.__init__ @ /home/ada/net.py:5"]
    profile = training(*before, "    " + called("aten::uniform_", 30, 9), "python main @ /home/ada/train.py:43",
                       "  module policy [Policy]", "    python Policy.forward @ /home/ada/net.py:20",
                       f"      python MultivariateNormal.__init__ @ {NORMAL}:194",
                       "        " + called("aten::linalg_cholesky_ex", 10, 30))  # fmt: skip
    case = case_of(profile)
    names = {case.name(row) for row in case.loop.inside.nonzero()[0].tolist()}
    assert "aten::linalg_cholesky_ex" in names and "aten::uniform_" not in names
