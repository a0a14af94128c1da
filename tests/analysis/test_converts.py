"""Lists and tuples of arrays that become tensors element by element: the line, what to do, and what it gains."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.test_findings import MS, training

from leadline.analysis.analyze import analyze
from leadline.analysis.findings import Finding

SOURCE = "def learn(batch):\n    states = {call}\n"
OPERATORS = ("aten::empty", "aten::to", "aten::lift_fresh", "aten::detach_")


def told(file: Path, calls: int = 10, operator_ms: float = 0.1, names: tuple[str, ...] = OPERATORS) -> list[Finding]:
    """Ten steps of 10 ms, of which the file's second line takes 5 ms beside its operators."""
    each = f"time={int(10 * operator_ms * MS)}/{calls} call_time={int(10 * operator_ms * MS)}/{calls}"
    profile = training(
        "python main @ /home/ada/train.py:43",
        f"  python learn @ {file}:2 | cpu_sample={50 * MS}/50",
        *(f"    operator {name} | {each}" for name in names),
    )
    return [one for one in analyze(profile, ["python_overhead"]) if one.rule == "python_overhead"]


@pytest.mark.parametrize(
    "call",
    [
        "torch.tensor(batch.state, dtype=torch.float32)",
        "torch.as_tensor(list(batch.state))",
        "torch.FloatTensor([one.state for one in batch])",
        "torch.tensor(\n        batch.state)",
    ],
)
def test_the_arrays_are_to_be_joined_first_and_nearly_all_of_the_time_is_gained(tmp_path: Path, call: str) -> None:
    (tmp_path / "net.py").write_text(SOURCE.format(call=call))
    (found,) = told(tmp_path / "net.py")
    assert found.title.startswith("learn makes tensors of lists or tuples element by element")
    assert found.remedy.startswith("Join the arrays or lists in NumPy first: torch.from_numpy(np.stack(arrays))")
    assert 4 * MS <= found.gain.expected_ns < found.gain.high_ns == 5 * MS
    assert found.lines[0].line == 2


@pytest.mark.parametrize(
    "call",
    [
        "torch.tensor(np.array(batch.state))",
        "torch.tensor([measure(one) for one in batch])",
        "model(batch.state)",
        "torch.zeros(batch.size)",
    ],
)
def test_a_line_whose_time_is_something_else_is_not_said_to_convert(tmp_path: Path, call: str) -> None:
    (tmp_path / "net.py").write_text(SOURCE.format(call=call))
    assert all("Join the arrays" not in one.remedy for one in told(tmp_path / "net.py"))


def test_a_second_line_of_the_function_is_not_advised_again(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(SOURCE.format(call="torch.tensor(batch.state)") + "    after = torch.tensor(batch.after)\n")
    lines = []
    for line, sampled, each in ((2, 42, MS // 2), (3, 41, MS // 2)):
        lines.append(f"  python learn @ {file}:{line} | cpu_sample={sampled * MS}/{sampled}")
        lines += [f"    operator {name} | time={each}/10 call_time={each}/10" for name in OPERATORS]
    found = analyze(training("python main @ /home/ada/train.py:43", *lines, optimizer_ms=3, loading_ms=3))
    (first,) = [one for one in found if one.remedy.startswith("Join")]
    assert [line.line for line in first.lines] == [2, 3]


def test_many_small_tensors_and_operators_that_take_the_time_convert_nothing(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(SOURCE.format(call="torch.tensor(batch.state)"))
    for calls, operator_ms in ((1000, 0.1), (10, 3)):
        found = told(tmp_path / "net.py", calls, operator_ms)
        assert all("Join the arrays" not in one.remedy for one in found)


def test_without_the_source_the_operators_of_a_new_tensor_tell(tmp_path: Path) -> None:
    assert [one.remedy[:4] for one in told(tmp_path / "gone.py")] == ["Join"]
    assert all("Join" not in one.remedy for one in told(tmp_path / "gone.py", names=("aten::add",)))
