"""What a training step computes and how much of the device's peak that is: MFU, HFU, achieved rate by class of work.

    MFU = operations of one step, without those of recomputation / (time of a step * peak)    (Chowdhery et al. 2022)
    HFU = the same with them

Operations are those of the steps in the trace window where it holds them whole, else of the run divided by its steps,
which counts evaluation between steps too. The peak is that of the precision in which most operations were done.

The second opinion for transformers: (4 N + 2 trainable N) operations per token for the weights, N without look-up
tables and with the active share of experts only (Kaplan et al. 2020), and 12 * layers * width * sequence for scores
and values of attention, which counts no causal mask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.analysis.columns import Rows
from leadline.analysis.devicerates import Rate, cpu_name, peak_rate
from leadline.analysis.flops import FlopColumns, flop_columns
from leadline.profiles import Profile
from leadline.schema import EventKind, FrameKind, LossKind, MetricKind
from leadline.units import percent
from leadline.work.operators import class_of_generated, class_of_operator

_CALLS = [int(kind) for kind in (EventKind.OPERATOR, EventKind.REGION, EventKind.KERNEL, EventKind.PHASE)]


@dataclass(frozen=True)
class ClassRate:
    """Operations of one class in one precision over the whole run, and the time they took: of the device where there
    is one, else of operators on the CPU. `peak`: operations per second, 0 where it is not known."""

    name: str
    precision: str
    flops: float
    time_ns: int
    peak: float

    @property
    def achieved(self) -> float:
        """Operations per second."""
        return self.flops / self.time_ns * 1e9 if self.time_ns else 0.0


_MOST_SHARE = 1.05
"""Of the peak: published peaks are those of boost clocks, which a device may exceed a little, not by more."""


@dataclass(frozen=True)
class ModelEstimate:
    """The second opinion. Per step: `tokens`, operations for the `weights` and for `attention`."""

    tokens: float
    weights: float
    attention: float

    @property
    def flops(self) -> float:
        return self.weights + self.attention


@dataclass(frozen=True)
class Efficiency:
    """Of one rank. Operations are per step, times in nanoseconds, the peak in operations per second."""

    flops: float
    unsure: float
    """How far the truth can lie above or below: lengths of packed sequences are known by their bounds."""
    recomputed: float
    step_ns: float
    """Mean of the steps that `scope` names."""
    precision: str
    peak: Rate
    scope: str
    """`recorded steps`, or `whole run` where the window does not hold them whole."""
    classes: tuple[ClassRate, ...]
    uncounted: tuple[str, ...]
    estimate: ModelEstimate | None = None
    devices: int = 1
    """That worked for the rank; `peak` is of one of them."""

    @property
    def mfu(self) -> float | None:
        """0 to 1; None where the peak is not known or more was counted than the devices can do."""
        return (self.flops - self.recomputed) / self._possible if self._possible and not self.implausible else None

    @property
    def hfu(self) -> float | None:
        """0 to 1; None where the peak is not known or more was counted than the devices can do."""
        return self.flops / self._possible if self._possible and not self.implausible else None

    @property
    def implausible(self) -> str:
        """Why no share of the peak is given although the peak is known; empty where one is."""
        share = self.flops / self._possible if self._possible else 0.0
        if share <= _MOST_SHARE:
            return ""
        return (
            f"the operations counted are {percent(share)} of what {self.devices} "
            f"device{'s' * (self.devices != 1)} can do in a step, so the steps, the shapes or the peak are wrong"
        )

    @property
    def _possible(self) -> float:
        return self.devices * self.peak.flops * self.step_ns / 1e9


def efficiency(profile: Profile, facts: Mapping[str, Any]) -> Efficiency | None:
    """None where shapes were not measured or no operator with a formula ran. `facts`: what the loop told of its steps
    and of its model (see capture/training/journal.py and model_facts.py)."""
    columns = flop_columns(profile.tree)
    steps, model = measured_steps(facts), facts.get("model") or {}
    if not columns.known or steps <= 0:
        return None
    of_run = columns.per_call * columns.calls
    by_step, scope = _per_step(profile, steps, columns)
    of_step = columns.per_call * by_step
    device = _device_name(profile)
    by_precision: dict[str, float] = {}
    for row in np.flatnonzero(of_run).tolist():
        name = columns.precision[row]
        by_precision[name] = by_precision.get(name, 0.0) + float(of_run[row])
    precision = max(by_precision, key=lambda name: by_precision[name])
    return Efficiency(
        flops=float(of_step.sum()),
        unsure=float((columns.unsure * by_step).sum()),
        recomputed=float(of_step[columns.recomputed].sum()),
        step_ns=_mean_step_ns(profile, facts, scope),
        precision=precision,
        peak=peak_rate(device, precision),
        scope=scope,
        classes=tuple(_classes(profile, columns, of_run, device)),
        uncounted=columns.uncounted,
        estimate=_estimate(profile, model, by_step, columns),
        devices=max(_devices_that_worked(profile), 1),
    )


def _devices_that_worked(profile: Profile) -> int:
    """Devices with kernels; 0 where none was measured, as on a CPU."""
    metrics = profile.tree.tables["metrics"]
    kernels = profile.tree.kinds == int(FrameKind.KERNEL)
    rows = np.flatnonzero((metrics["metric"] == int(MetricKind.GPU_TIME)) & (metrics["count"] > 0))
    return len(np.unique(metrics["device"][rows[kernels[metrics["node"][rows]]]]))


def measured_steps(facts: Mapping[str, Any]) -> int:
    """Steps that the sums of a profile stand for: a budget leaves some out."""
    return int(facts.get("measured_steps", facts.get("steps", 0)))


def _mean_step_ns(profile: Profile, facts: Mapping[str, Any], scope: str) -> float:
    """Of the steps whose operations are counted: a first step that compiles says nothing of the others."""
    times = dict(zip(facts.get("step_numbers", ()), facts.get("step_ns", ()), strict=False))
    recorded = [int(times[step]) for step in profile.window.steps if step in times]
    if scope == "recorded steps" and recorded:
        return sum(recorded) / len(recorded)
    return int(facts.get("measured_sum_ns", facts.get("steps_sum_ns", 0))) / max(measured_steps(facts), 1)


def _per_step(profile: Profile, steps: int, columns: FlopColumns) -> tuple[NDArray[np.float64], str]:
    """Calls of each node in one step, and what they were counted over."""
    events = profile.events
    kind = np.asarray(events["kind"])
    start = np.asarray(events["start_ns"]).astype(np.int64)
    length = np.asarray(events["duration_ns"]).astype(np.int64)
    node = np.asarray(events["node"]).astype(np.int64)
    marks = np.flatnonzero((kind == int(EventKind.STEP)) & (length >= 0))
    whole = marks.size > 0 and not any(loss.kind == LossKind.EVENTS_DROPPED for loss in profile.losses)
    if not whole:
        return columns.calls / steps, "whole run"
    first = marks[np.argsort(start[marks])]
    at = np.searchsorted(start[first], start, side="right") - 1
    end = start[first] + length[first]
    inside = (at >= 0) & (start < end[np.maximum(at, 0)]) & np.isin(kind, _CALLS) & (node >= 0)
    counts = np.bincount(node[inside], minlength=len(profile.tree)).astype(np.float64)
    return columns.worked(counts) / len(first), "recorded steps"


def _classes(profile: Profile, columns: FlopColumns, of_run: NDArray[np.float64], device: str) -> list[ClassRate]:
    tree = profile.tree
    gpu = tree.exclusive("gpu_time").sum
    time = gpu if gpu.any() else tree.exclusive("time").sum
    found: dict[tuple[str, str], list[float]] = {}
    owned = np.flatnonzero(columns.owner >= 0)
    class_of: dict[int, tuple[str, str]] = {}
    for row in np.flatnonzero(of_run).tolist():
        frame = int(tree.frame_of[row])
        own = class_of_operator(tree.text("name", frame)) or class_of_generated(tree.text("detail", frame))
        key = own, columns.precision[row]
        class_of[row] = key
        found.setdefault(key, [0.0, 0.0])[0] += float(of_run[row])
    for row, owner in zip(owned.tolist(), columns.owner[owned].tolist(), strict=True):
        if owner in class_of:
            found[class_of[owner]][1] += int(time[row])
    rates = [
        ClassRate(name, precision, flops, int(spent), peak_rate(device, precision).flops)
        for (name, precision), (flops, spent) in found.items()
    ]
    return sorted(rates, key=lambda rate: -rate.flops)


def _device_name(profile: Profile) -> str:
    names = [device.name for device in profile.devices if device.name]
    return names[0] if names else cpu_name(profile.meta.get("host") or {})


def _estimate(
    profile: Profile, model: Mapping[str, Any], by_step: NDArray[np.float64], columns: FlopColumns
) -> ModelEstimate | None:
    """None where the loop told of no model, or nobody says how many tokens a step has."""
    parameters, trainable = float(model.get("parameters") or 0), float(model.get("trainable") or 0)
    tokens, sequence = float(model.get("tokens_per_step") or 0), float(model.get("sequence_length") or 0)
    if not parameters:
        return None
    if not tokens or not sequence:
        looked_up, length = _tokens(profile, by_step, columns.recomputed)
        tokens, sequence = tokens or looked_up, sequence or length
    if not tokens:
        return None
    layers, width = float(model.get("layers") or 0), float(model.get("attention_width") or 0)
    return ModelEstimate(
        tokens=tokens,
        weights=(4 * parameters + 2 * trainable) * tokens,
        attention=12 * layers * width * sequence * tokens,
    )


def _tokens(profile: Profile, by_step: NDArray[np.float64], recomputed: NDArray[np.bool_]) -> tuple[float, float]:
    """Look-ups per step in the table that is looked up most, and the length of a sequence there; zeros for none.
    Positions are looked up once for a batch, tokens for each of its sequences."""
    tree = profile.tree
    rows: Rows = np.flatnonzero(
        tree.frame_rows(FrameKind.OPERATOR, "aten::embedding")[tree.frame_of] & (by_step > 0) & ~recomputed
    )
    tables: dict[int, tuple[float, float]] = {}  # by size
    for row in rows.tolist():
        shapes = tree.node(row).detail.get("shapes") or []
        if len(shapes) < 2 or len(shapes[0]) != 2 or not shapes[1]:
            continue
        size = int(shapes[0][0])
        tokens, sequence = tables.get(size, (0.0, 0.0))
        tables[size] = (
            tokens + math.prod(shapes[1]) * float(by_step[row]),
            max(sequence, float(shapes[1][-1])),
        )
    return max(tables.items(), key=lambda one: (one[1][0], one[0]), default=(0, (0.0, 0.0)))[1]
