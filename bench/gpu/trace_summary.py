"""What a trace was like, in a few numbers: a prediction can be judged later without the trace itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from leadline.whatif.graph import Graph
from leadline.whatif.kinds import PHASE_NAMES, TaskKind
from leadline.whatif.simulator import simulate

_KERNELS = 12


def summary(graph: Graph) -> dict[str, Any]:
    """Step times, replay, tasks by kind, device time by phase and by the longest kernels; ns per window."""
    kind, duration = graph.column("kind"), graph.column("duration_ns")
    device = np.flatnonzero(graph.alive & ((kind == TaskKind.GPU) | (kind == TaskKind.COMM)))
    names = np.bincount(graph.column("name")[device], weights=duration[device], minlength=len(graph.names))
    phases = np.bincount(graph.column("phase")[device], weights=duration[device], minlength=len(PHASE_NAMES))
    longest = [row for row in np.argsort(-names, kind="stable")[:_KERNELS].tolist() if names[row] > 0]
    measured = max(graph.info.measured_ns, 1)
    return {
        "steps": list(graph.info.steps),
        "step_ns": list(graph.info.step_ns),
        "replay_error": simulate(graph).makespan_ns / measured - 1,
        "tasks": {item.name.lower(): int((kind == item).sum()) for item in TaskKind},
        "device_ns": int(duration[device].sum()),
        "device_share": float(duration[device].sum()) / measured,
        "unexplained_ns": graph.info.unexplained_ns,
        "device_ns_by_phase": {name: int(spent) for name, spent in zip(PHASE_NAMES, phases, strict=True) if spent},
        "device_ns_by_kernel": {graph.names[row][:120]: int(names[row]) for row in longest},
        "warnings": list(graph.info.warnings),
    }
