"""Which fixes `leadline try` has for what a rule finds, and the command that measures a finding's gain.

What a profile cannot bound is better measured than guessed: the finding names the command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline._dataclass import replace
from leadline.analysis.compilers import compilers
from leadline.analysis.findings import Finding
from leadline.profiles.meta import typed_command

FIXES: Mapping[str, tuple[str, ...]] = {
    "allocator": ("expandable_segments",),
    "communication": ("bucket_cap_mb", "ddp_static_graph", "gradient_as_bucket_view"),
    "data_loading": ("workers", "persistent_workers", "prefetch_factor", "pin_memory"),
    "debug_modes": ("no_anomaly",),
    "donation": ("donation",),
    "double_precision": ("autocast",),
    "garbage_collection": ("gc_freeze",),
    "kernel_fusion": ("compile",),
    "layout_conversion": ("channels_last",),
    "not_explained": ("compile",),
    "op_by_op": ("jit",),
    "optimizer_loop": ("fused_optimizer", "foreach_optimizer"),
    "pageable_copies": ("pin_memory",),
    "python_overhead": ("compile",),
    "random_numbers": ("no_dropout",),
    "roofline": ("autocast",),
    "slow_type": ("autocast",),
    "small_grid": ("batch",),
    "thread_oversubscription": ("num_threads",),
}
"""Rule to fixes, the best first."""
_OF_THE_FINDING = ("jit", "donation", *FIXES["communication"])
"""A finding names them itself: it knows the function, or that the program has what they change."""
_NOT_OF_TORCH = ("gc_freeze",)
NO_FIX = "-"
"""Of a finding that no fix of its rule is for."""
PROVE = "leadline prove BEFORE.py AFTER.py"
"""Measures a change that no fix makes."""


def rules_of(fix: str) -> tuple[str, ...]:
    """Rules whose findings a fix is for."""
    return tuple(rule for rule, fixes in FIXES.items() if fix in fixes)


def usual_value(fix: str, cpus: int) -> str:
    """Of a fix that needs a value; empty for one that needs none."""
    usual = {"workers": min(cpus, 4), "num_threads": cpus, "batch": "x2", "bucket_cap_mb": 50, "prefetch_factor": 4}
    return str(usual.get(fix, ""))


def with_command(one: Finding, meta: Mapping[str, Any]) -> Finding:
    """The finding with its fix, where there is one, and with the command that measures its gain: `PROVE` where the
    finding says so, since its remedy is another change than the fix."""
    fix = "" if one.fix == NO_FIX else one.fix or ("" if one.of_place else _fix(one, meta))
    command = f"leadline try --fix {fix} {typed_command(meta)}" if fix else PROVE
    return replace(one, fix=fix, measured_by=one.measured_by or command)


def _fix(one: Finding, meta: Mapping[str, Any]) -> str:
    has_torch = "torch.compile" in compilers(meta)
    for name in FIXES.get(one.rule, ()):
        if name not in _OF_THE_FINDING and (has_torch or name in _NOT_OF_TORCH):
            value = usual_value(name, int(meta.get("host", {}).get("cpus") or 1))
            return f"{name}={value}" if value else name
    return ""
