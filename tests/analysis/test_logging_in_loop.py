"""What logging of tensors costs in all: on each of its lines, and on the thread that writes it."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import MS, named, training

from leadline.analysis.analyze import analyze
from leadline.profiles.build import build

WRITER = "/usr/lib/python3.11/site-packages/torch/utils/tensorboard/writer.py:512"


def logged(lines: int, written_ms: int = 0):
    """A loop of 10 steps of 10 ms; each line that logs takes 1 ms of it in Python and 0.5 in operators."""
    each = "\n".join(
        f"    python main @ /home/ada/train.py:{50 + line}\n      python add_histogram @ {WRITER}\n"
        f"        native histogram | cpu_sample={10 * MS}/10\n"
        f"        operator aten::clone | time={5 * MS}/10 call_time={5 * MS}/10"
        for line in range(lines)
    )
    profile = build(
        f"""
process train.py | pid=5
  thread MainThread | tid=5 wall_ns={100 * MS}
    python main @ /home/ada/train.py:42
      operator aten::linear | time={50 * MS}/10 call_time={50 * MS}/10
{each}
    python main @ /home/ada/train.py:60
      phase optimizer | time={10 * MS}/10 call_time={10 * MS}/10
    phase step | call_time={90 * MS}/9
  thread writer | tid=6 wall_ns={100 * MS}
    python run @ /usr/lib/python3.11/site-packages/tensorboard/summary/writer/event_file_writer.py:244
      native crc | cpu_sample={written_ms * 10 * MS}/10
""".strip("\n")
    )
    return named(analyze(profile), "logging_in_loop")


@pytest.mark.parametrize("lines", [1, 2])
def test_all_lines_that_log_are_one_finding(lines):
    found = logged(lines)
    assert len(found.lines) == lines
    assert found.weight >= 0.15 * lines
    assert found.gain.expected_ns >= 1.4 * MS * lines


def test_what_another_thread_writes_is_said_and_could_be_gained():
    alone, beside = logged(1), logged(1, written_ms=2)
    assert not any("other threads" in one for one in alone.evidence)
    assert any(one.startswith("2.00 ms a step more on other threads") for one in beside.evidence)
    assert beside.gain.expected_ns >= alone.gain.expected_ns + MS


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        (("python samples @ /home/ada/data.py:7",), False),  # a generator that tqdm goes through
        (("python update @ /usr/lib/python3.11/site-packages/tqdm/std.py:9",), True),
    ],
)
def test_what_the_program_does_below_a_library_that_logs_is_no_logging(inside: tuple[str, ...], told: bool):
    line = f"operator aten::stack | time={20 * MS}/10 call_time={20 * MS}/10"
    below = "\n".join(f"{'  ' * (4 + at)}{one}" for at, one in enumerate((*inside, line)))
    profile = build(
        f"""
process train.py | pid=5
  thread MainThread | tid=5 wall_ns={100 * MS}
    python main @ /home/ada/train.py:41
      python tqdm.__iter__ @ /usr/lib/python3.11/site-packages/tqdm/std.py:1181
{below}
    python main @ /home/ada/train.py:42
      operator aten::linear | time={50 * MS}/10 call_time={50 * MS}/10
    phase step | call_time={90 * MS}/9
""".strip("\n")
    )
    assert any(one.rule == "logging_in_loop" for one in analyze(profile)) == told


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        ("SummaryWriter.add_histogram", "Log histograms every hundredth step"),
        ("SummaryWriter.add_figure", "Log images and figures every hundredth step"),
        ("SummaryWriter.add_scalar", "Print numbers, not tensors, and every hundredth step"),
    ],
)
def test_the_advice_is_about_what_is_logged(function: str, advice: str) -> None:
    inside = f"operator aten::clone | time={20 * MS}/10 call_time={20 * MS}/10"
    lines = ("python main @ /home/ada/train.py:43", f"  python {function} @ {WRITER}", f"    {inside}")
    assert named(analyze(training(*lines)), "logging_in_loop").remedy.startswith(advice)
