"""Which steps are recorded: a pure function of the configuration and an absolute step number."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from leadline.capture.training.config import TrainingConfig


class Phase(Enum):
    """What happens to a step."""

    OFF = "off"
    WARM_UP = "warm-up"
    RECORD = "record"
    SAVE = "save"
    """Recorded, and the last of its window."""

    @property
    def recorded(self) -> bool:
        return self in (Phase.RECORD, Phase.SAVE)


def phase(config: TrainingConfig, step: int) -> Phase:
    """What happens to `step`, counted from 0 at the beginning of the run, whenever this process began."""
    if config.active is None:
        start, end = config.start_step or 0, config.end_step or 0
        return _position(step - start, 0, end - start)
    at = step - config.skip_first
    length = config.wait + config.warmup + config.active
    if at < 0 or (config.repeat and at >= config.repeat * length):
        return Phase.OFF
    at = at % length - config.wait - config.warmup
    return _position(at, config.warmup, config.active)


def _position(at: int, warmup: int, active: int) -> Phase:
    if at < -warmup or at >= active:
        return Phase.OFF
    if at < 0:
        return Phase.WARM_UP
    return Phase.SAVE if at == active - 1 else Phase.RECORD


def last_step(config: TrainingConfig) -> int | None:
    """The last step that can be recorded; None where cycles go on for ever."""
    if config.active is None:
        return (config.end_step or 0) - 1
    length = config.wait + config.warmup + config.active
    return config.skip_first + config.repeat * length - 1 if config.repeat else None


def described(config: TrainingConfig) -> str:
    """The schedule in a few words for a person."""
    if config.active is None:
        first, last = config.start_step or 0, (config.end_step or 0) - 1
        return f"step {first}" if first == last else f"steps {first} to {last}"
    cycles = f"{config.repeat} times" if config.repeat else "for as long as the run lasts"
    passed = config.wait + config.warmup
    after = f" after {config.skip_first}" if config.skip_first else ""
    return f"{config.active} of every {passed + config.active} steps{after}, {cycles}"


def recorded_steps(config: TrainingConfig, steps: range) -> Iterator[int]:
    """Those of `steps` that are recorded."""
    return (step for step in steps if phase(config, step).recorded)
