"""What the ranges of a trace mean as marks of steps and as phases of one. The one place that knows their names."""

from __future__ import annotations

import re

_STEP = re.compile(r"^ProfilerStep[#*]")
_OPTIMIZER_STEP = re.compile(r"^Optimizer\.step#")
# in the order in which they are tried
_PHASES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (phase, re.compile(pattern, re.IGNORECASE))
    for phase, pattern in (
        ("zero_grad", r"^Optimizer\.zero_grad#|zero_grad"),
        (
            "data loading",
            r"^enumerate\(DataLoader\)#|^data[ _]?load(ing|er)?$|^#+ *data[ _]?load(ing|er)? *#+$|dataloader_next$",
        ),
        ("optimizer", r"^Optimizer\.step#|^optimizer$|^#+ *optimizer(_?step)? *#+$"),
        ("backward", r"^backward$|^#+ *backward *#+$|^\[pl\].*\.backward$"),
        ("forward", r"^forward$|^#+ *forward *#+$|\.forward$"),
    )
)


def is_step(name: str) -> bool:
    """The profiler's mark around one training step."""
    return _STEP.match(name) is not None


def is_optimizer_step(name: str) -> bool:
    """torch's mark around `Optimizer.step`."""
    return _OPTIMIZER_STEP.match(name) is not None


def phase_of(name: str) -> str | None:
    """Part of a training step that a range is: `optimizer`, `zero_grad`, `data loading`, `backward`, `forward`."""
    if "::" in name:
        return None  # an operator, whatever word is in it
    return next((phase for phase, pattern in _PHASES if pattern.search(name)), None)


def is_loading(name: str) -> bool:
    """A range in which the loop takes a batch, or a worker makes one."""
    return phase_of(name) == "data loading"
