"""What the capture side says of a program's habits (`capture/providers/torch/habits.py`, `jax_habits.py`), as rules
read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline.analysis.columns import Mask
from leadline.analysis.rules.base import Case
from leadline.schema import FrameKind


def habits(case: Case, name: str) -> list[Mapping[str, Any]]:
    """What each process says of it; those that say nothing are left out."""
    return [one for one in _told(case, name) if isinstance(one, dict)]


def model_is_double(case: Case) -> bool:
    """Whether most of the parameters that the optimizer updates are of double precision."""
    told = max(habits(case, "updated"), key=lambda one: int(one.get("double", 0)), default={})
    return 2 * int(told.get("double", 0)) >= max(int(told.get("parameters", 0)), 1)


def habits_listed(case: Case, name: str, framework: str = "torch") -> list[Mapping[str, Any]]:
    """The same for what is a list, of all processes."""
    lists = [one for one in _told(case, name, framework) if isinstance(one, list)]
    return [one for listed in lists for one in listed if isinstance(one, dict)]


def _told(case: Case, name: str, framework: str = "torch") -> list[Any]:
    """What each process says; the file's own record repeats that of its first process, where it has several."""
    meta = case.profile.meta
    several = [one for one in meta.get("processes", []) if isinstance(one, dict)]
    told = [habits for one in several if (habits := _habits(one, framework))] or [_habits(meta, framework)]
    return [one.get(name) for one in told]


def _habits(record: Mapping[str, Any], framework: str) -> Mapping[str, Any]:
    habits = _provider(record, framework).get("habits")
    return habits if isinstance(habits, dict) else {}


def _provider(record: Mapping[str, Any], framework: str) -> Mapping[str, Any]:
    available = record.get("available")
    provider = available.get(framework) if isinstance(available, dict) else None
    return provider if isinstance(provider, dict) else {}


def provider_facts(case: Case, name: str, framework: str = "torch") -> list[Mapping[str, Any]]:
    """What the provider of each process says of it, beside its habits."""
    meta = case.profile.meta
    several = [one for one in meta.get("processes", []) if isinstance(one, dict)]
    told = [facts for one in several if (facts := _provider(one, framework))] or [_provider(meta, framework)]
    return [one[name] for one in told if isinstance(one.get(name), dict)]


def modules_named(case: Case, named: list[Mapping[str, Any]]) -> Mask:
    """Nodes of the loop that are these modules: by name, which the tree begins with the variable that holds the model,
    and class; by class alone where the module is a whole model."""
    tree, frames = case.tree, case.tree.frames
    wanted = {(str(one["module"]), str(one["class"])) for one in named}
    found = np.zeros(len(frames["kind"]), np.bool_)
    for frame in np.flatnonzero(frames["kind"] == int(FrameKind.MODULE)).tolist():
        name, kind = tree.text("name", frame), tree.text("module", frame)
        found[frame] = any(
            kind == of and (name == path or name.endswith("." + path) or (not path and "." not in name))
            for path, of in wanted
        )
    mask: Mask = found[tree.frame_of] & case.loop.inside
    return mask
