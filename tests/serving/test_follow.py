"""A release that the adapter does not know: one sentence, and everything else goes on."""

from __future__ import annotations

from typing import Any

from leadline.capture.providers.engines.follow import Followed


class Native:
    def __init__(self) -> None:
        self.phases: list[str] = []
        self.losses: list[str] = []

    def phase_begin(self, name: str, **_: Any) -> int:
        self.phases.append(name)
        return len(self.phases)

    def phase_end(self, token: int = 0) -> None:
        self.phases.append(f"end {token}")

    def count_loss(self, kind: str, count: int, detail: str) -> None:
        self.losses.append(detail)


class Engine:
    def step(self, batch: int) -> int:
        return batch + 1


def followed(native: Native) -> Followed:
    made = Followed(native, "vLLM", lambda: None)  # type: ignore[arg-type]
    made.release = "9.9"
    return made


def test_a_moved_method_is_one_sentence() -> None:
    one = followed(Native())
    assert one.phase(Engine, "step", "decode")
    assert not one.phase(Engine, "schedule", "scheduling")
    assert not one.method(None, "step", lambda original: original, ())
    one.undo()
    assert "vLLM 9.9" in one.sentence
    assert "Engine.schedule" in one.sentence
    assert one.sentence.endswith("figures that need it are missing.")


def test_other_arguments_are_another_method() -> None:
    one = followed(Native())
    assert not one.method(Engine, "step", lambda original: original, ("scheduler_output",))
    assert one.method(Engine, "step", lambda original: original, ("batch",))
    one.undo()


def test_the_phase_is_around_the_call_and_goes() -> None:
    native = Native()
    original = vars(Engine)["step"]
    one = followed(native)
    one.phase(Engine, "step", "decode")
    assert Engine().step(1) == 2
    assert native.phases == ["decode", "end 1"]
    one.undo()
    assert vars(Engine)["step"] is original
