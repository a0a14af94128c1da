"""The text notation says what it says it says, and what is printed can be read back."""

import pytest

from leadline.profiles.build import build
from leadline.profiles.draw import draw

DRAWN = """\
process train.py | pid=7 parent_pid=1 rank=0 local_rank=0 start_ns=5 end_ns=9 complete=0
  thread MainThread | tid=7 operator_ns=1 data_ns=2 wall_ns=3 cpu_ns=4
    python main loop @ dir/train it.py:3 | first_line=2
      region a | b; c | time=1
        module model.fc [Linear]
          operator aten::linear | time=12/2 gpu_time@0=3 gpu_time@1:-1=4
            native gemm @ libgemm.so | address=4096 detail={"a":1}
"""


def test_what_is_printed_can_be_read_back() -> None:
    metrics = ["time", "gpu_time"]
    first = draw(build(DRAWN), metrics, facts=True, devices=True)
    assert first == DRAWN.replace("gpu_time@1:-1", "gpu_time@1")
    assert draw(build(first), metrics, facts=True, devices=True) == first


def test_a_process_and_a_thread_are_put_above_what_has_none() -> None:
    assert draw(build("python main\n  operator aten::add")) == (
        "process program\n  thread MainThread\n    python main\n      operator aten::add\n"
    )


def test_the_same_frame_under_the_same_parent_is_one_node() -> None:
    profile = build("operator a | time=1\noperator b\noperator a | time=2")
    assert draw(profile, ["time"]).splitlines()[2:] == ["    operator a | time=3/2", "    operator b"]


def test_siblings_can_be_printed_in_an_order_of_their_own() -> None:
    one, other = (
        build("operator b\n  operator d\n  operator c\noperator a"),
        build("operator a\noperator b\n  operator c\n  operator d"),
    )
    assert draw(one) != draw(other)
    assert draw(one, ordered=True) == draw(other, ordered=True)


def test_inclusive_values_can_be_printed() -> None:
    profile = build("python f\n  operator a | time=1\n  operator b | time=2")
    assert draw(profile, ["time"], inclusive=True).splitlines()[2] == "    python f | time=3/2"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("operatr aten::add", "is not 'KIND NAME"),
        ("operator", "is not 'KIND NAME"),
        ("operator a\n   operator b", "is not 'KIND NAME"),
        ("operator a\n    operator b", "more than one level"),
        ("operator a | time", "is not METRIC=VALUES"),
        ("operator a | time=7/2", "not a number of equal measurements"),
        ("operator a | cpu_tme=7", "neither a metric nor a column"),
        ("process p | ranks=7", "has no column ranks"),
    ],
)
def test_a_mistake_in_the_drawing_is_named(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        build(text)


def test_an_event_must_name_a_label_of_the_tree() -> None:
    with pytest.raises(ValueError, match="#b, which no line"):
        build("operator a #a", events="kind node start_ns duration_ns\noperator b 0 1")
