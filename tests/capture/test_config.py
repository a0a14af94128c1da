"""Options: what is accepted, what is refused in one sentence, and that nothing is lost on the way to a child."""

import pytest

from leadline.capture.config import Options, TraceWindow
from leadline.capture.errors import ProfileError


def test_options_survive_the_environment() -> None:
    options = Options(shapes=True, memory=False, follow=False, trace=TraceWindow(steps=5, wait=2), flush_interval_s=0.5)
    assert Options.from_json(options.to_json()) == options


def test_defaults_survive_the_environment() -> None:
    assert Options.from_json(Options().to_json()) == Options()


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("steps=5", TraceWindow(steps=5)),
        ("steps=5,wait=0", TraceWindow(steps=5, wait=0)),
        ("wait=3,steps=1", TraceWindow(steps=1, wait=3)),
        ("seconds=2.5", TraceWindow(seconds=2.5)),
        ("seconds=1,wait=0.25", TraceWindow(seconds=1.0, wait=0.25)),
    ],
)
def test_trace_windows_are_read(text: str, window: TraceWindow) -> None:
    assert TraceWindow.parse(text) == window
    assert Options.of({"trace": text}).trace == window


@pytest.mark.parametrize(
    "text",
    [
        *("", "5", "steps", "steps=", "steps=x", "steps=1.5", "steps=0", "steps=-1", "steps=1,seconds=1", "seconds=0"),
        *("seconds=nan", "hours=1", "steps=1,wait=-1", "steps=1,wait=0.5", "steps=1,steps=2", "wait=1"),
    ],
)
def test_bad_trace_windows_are_one_sentence(text: str) -> None:
    with pytest.raises(ProfileError) as caught:
        TraceWindow.parse(text)
    assert_one_sentence(str(caught.value))


@pytest.mark.parametrize(
    "values",
    [
        {"shape": True},
        {"shapes": 1},
        {"shapes": "yes"},
        {"max_nodes": True},
        {"max_nodes": 10},
        {"flush_interval_s": 0},
        {"flush_interval_s": float("nan")},
        {"trace_max_events": 0},
        {"trace": 5},
        {"trace": {"hours": 1}},
    ],
)
def test_bad_options_are_one_sentence(values: dict[str, object]) -> None:
    with pytest.raises(ProfileError) as caught:
        Options.of(values)
    assert_one_sentence(str(caught.value))


@pytest.mark.parametrize("text", ["{", "[]", "3", '"shapes"', '{"shapes": null}'])
def test_bad_json_is_one_sentence(text: str) -> None:
    with pytest.raises(ProfileError) as caught:
        Options.from_json(text)
    assert_one_sentence(str(caught.value))


def test_integers_do_for_seconds() -> None:
    assert Options.of({"flush_interval_s": 2}).flush_interval_s == 2.0


def test_the_banner_says_what_is_measured() -> None:
    assert Options(trace=TraceWindow(steps=3), follow=False).mode() == (
        "calling context tree, trace of 3 steps after 1, memory, first process only"
    )


def assert_one_sentence(text: str) -> None:
    assert text.endswith(".")
    assert "\n" not in text


@pytest.mark.parametrize(
    "text",
    ["[" * 20_000, '{"trace": {"steps": "a"}}', '{"flush_interval_s": 1e400}', '{"max_nodes": 99999999999999999999}'],
)
def test_odd_values_of_the_environment_are_one_sentence(text: str) -> None:
    with pytest.raises(ProfileError) as found:
        Options.from_json(text)
    assert str(found.value).count("\n") == 0 and len(str(found.value)) < 200
