"""A function that computes on whole arrays in NumPy is told from one that goes through elements in Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.test_findings import MS
from tests.analysis.test_sampled import program, python_overhead

from leadline.analysis.findings import Finding
from leadline.profiles.profile import Profile

HEAD = """\
import numpy as np

class Buffer:
    def __init__(self, size):
        self.weights, self.at = np.zeros(size), 0

"""


def spending(tmp_path: Path, body: str, line: int, *, head: str = HEAD) -> Profile:
    """Half of the step at a line of the function's body, counted from 1."""
    file = tmp_path / "buffer.py"
    file.write_text(head + "    def draw(self, number):\n" + body)
    first = head.count("\n") + 1
    return program(
        "python main @ /home/ada/train.py:41", f"  python Buffer.draw @ {file}:{first + line} | cpu_sample={50 * MS}/50"
    )


def found(profile: Profile) -> Finding:
    return python_overhead(profile)[0]


KEPT = "        part = self.weights[:number]\n        powered = part ** 0.6\n        return powered\n"
DRAWN = "        return np.random.choice(self.at, number, p=self.weights)\n"
NEW = "        x = np.load('frames.npy')\n        y = (x - x.mean()) / 255\n        return y\n"
LOOPED = "        for n in range(number):\n            self.weights[n] = np.sqrt(self.weights[n]) ** 2\n"
PLAIN = "        return [3 * n for n in number]\n"


@pytest.mark.parametrize(
    ("body", "line", "what", "remedy"),
    [
        (KEPT, 2, "part ** 0.6 (line 9, 100 % of it)", "update only the elements that changed"),
        (DRAWN, 1, "np.random.choice(p=...) (line 8, 100 % of it)", "sum tree"),
        (NEW, 2, "(x - x.mean()) / 255 (line 9, 100 % of it)", "on fewer elements"),
    ],
    ids=["kept arrays", "a draw by probabilities", "new arrays"],
)
def test_arithmetic_on_whole_arrays_is_told_what_follows(
    tmp_path: Path, body: str, line: int, what: str, remedy: str
) -> None:
    one = found(spending(tmp_path, body, line))
    assert one.title == f"Buffer.draw computes on whole NumPy arrays: {what}"
    assert remedy in one.remedy
    assert "one by one" not in one.remedy
    assert ("random.choice" in one.remedy) == ("random.choice" in what)


def test_the_verdict_of_it_is_not_python(tmp_path: Path) -> None:
    verdict = spending(tmp_path, KEPT, 2).verdict
    assert verdict.kind == "numpy"
    assert verdict.sentence.startswith("bound by NumPy on the CPU: Buffer.draw takes")


@pytest.mark.parametrize(("body", "line"), [(LOOPED, 2), (PLAIN, 1)], ids=["a loop over elements", "no arrays"])
def test_elements_one_by_one_stay_python(tmp_path: Path, body: str, line: int) -> None:
    profile = spending(tmp_path, body, line)
    assert found(profile).title.startswith("Buffer.draw takes 50 % of the step in Python code")
    assert profile.verdict.kind == "python"


def test_a_function_that_a_loop_calls_for_each_element_is_not_about_whole_arrays(tmp_path: Path) -> None:
    main = tmp_path / "train.py"
    main.write_text("for step in steps:\n  for n in range(1000):\n    buffer.draw(n)\n")
    file = tmp_path / "buffer.py"
    file.write_text(HEAD + "    def draw(self, number):\n" + KEPT)
    profile = program(f"python main @ {main}:3", f"  python Buffer.draw @ {file}:9 | cpu_sample={50 * MS}/50")
    assert "in Python code" in found(profile).title
