"""What makes two sides not comparable; said before any number."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from leadline.compare.runs import Run
from leadline.profiles import Profile
from leadline.profiles.meta import is_imported

ASPECTS = ("program", "arguments", "versions", "device", "steps")
_FEW_STEPS = 0.5
"""Loops whose lengths differ by more than this factor spend other shares in their first steps."""


def differences(a: Sequence[Profile], b: Sequence[Profile], runs_a: Sequence[Run], runs_b: Sequence[Run]) -> list[
    tuple[str, str]
]:  # fmt: skip
    """(aspect, sentence) for every aspect in which the sides, or runs of one side, differ; "" is not known."""
    found = []
    sets: dict[str, Callable[[Profile], str]] = {
        "program": _program,
        "arguments": _arguments,
        "versions": _versions,
        "device": _device,
    }
    for aspect, read in sets.items():
        left, right = (sorted({said for one in side if (said := read(one))}) for side in (a, b))
        if left and right and (left != right or len(left) > 1):
            verb = "differs" if aspect in ("program", "device") else "differ"
            found.append((aspect, f"The {aspect} {verb}: {' and '.join(left)} against {' and '.join(right)}."))
    by = sorted({run.found_by for run in (*runs_a, *runs_b)})
    steps = [run.steps for run in (*runs_a, *runs_b)]
    if len(by) > 1:
        found.append(("steps", f"Steps were counted in different ways: by {' and by '.join(by)}."))
    elif min(steps) < _FEW_STEPS * max(steps):
        found.append(("steps", f"The runs have {min(steps):,} to {max(steps):,} steps."))
    return found


def _argv(profile: Profile) -> list[str]:
    listed = profile.meta.get("program", {}).get("argv")
    return [str(word) for word in listed] if isinstance(listed, list) else []


def _imported(profile: Profile) -> bool:
    """A trace of another profiler does not say which program it is of; its file's name says nothing."""
    return is_imported(profile.meta)


def _program(profile: Profile) -> str:
    if _imported(profile):
        return ""
    words = _argv(profile)
    if words[:1] == ["-m"]:
        return " ".join(words[:2])
    return words[0].rpartition("/")[2] if words else "an unknown program"


def _arguments(profile: Profile) -> str:
    if _imported(profile):
        return ""
    words = _argv(profile)
    rest = words[2:] if words[:1] == ["-m"] else words[1:]
    return shlex.join(rest) or "no arguments"


def _versions(profile: Profile) -> str:
    if _imported(profile):
        return ""
    torch = profile.meta.get("available", {}).get("torch")
    version = torch.get("version") if isinstance(torch, dict) else ""
    return f"Python {profile.meta.get('program', {}).get('python', '?')}" + (
        f" with torch {version}" if version else ""
    )


def _device(profile: Profile) -> str:
    names = sorted({device.name for device in profile.devices})
    host = profile.meta.get("host", {})
    return ", ".join(names) or f"{host.get('cpus', '?')} CPUs ({host.get('machine', '?')})"
