"""What the before/after scripts share: a profiled graph, ratios of predictions, outcomes as a table and as JSON."""

from __future__ import annotations

import gc
import gzip
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from common import machine_text, markdown_table
from leadline.whatif.graph import Graph
from leadline.whatif.load import load
from leadline.whatif.predict import gain, predict
from leadline.whatif.simulator import simulate
from leadline.whatif.without import without

Ratio = Callable[[Graph], tuple[float, float, float]]
"""New over old step time: expected, low, high."""


@dataclass(frozen=True)
class Outcome:
    """Seconds per step. `error` is signed, predicted over measured minus one."""

    name: str
    before_s: float
    predicted_s: float
    low_s: float
    high_s: float
    after_s: float
    replay_error: float

    @property
    def error(self) -> float:
        return self.predicted_s / self.after_s - 1

    def facts(self, limit: float) -> dict[str, Any]:
        return {
            "pair": self.name, "before_s": self.before_s, "predicted_s": self.predicted_s, "low_s": self.low_s,
            "high_s": self.high_s, "after_s": self.after_s, "error": self.error, "replay_error": self.replay_error,
            "within_limit": abs(self.error) <= limit, "within_range": self.low_s <= self.after_s <= self.high_s,
        }  # fmt: skip


def profiled(step: Callable[[], None], activities: Sequence[Any], steps: int = 6, keep: Path | None = None) -> Graph:
    """The graph of a few profiled steps of a program as it is; the trace is left at `keep`, compressed, where given."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        write_kineto(step, activities, path, steps)
        if keep is not None:
            keep.write_bytes(gzip.compress(path.read_bytes(), 3))
        return load(path)


def write_kineto(step: Callable[[], None], activities: Sequence[Any], path: Path, steps: int = 6) -> None:
    """A trace of a few steps by torch.profiler."""
    schedule = torch.profiler.schedule(wait=0, warmup=8, active=steps, repeat=1)
    with torch.profiler.profile(activities=list(activities), record_shapes=True, schedule=schedule) as profiler:
        for _ in range(steps + 8):
            step()
            profiler.step()
    profiler.export_chrome_trace(str(path))


def write_window(begin: Callable[[], Callable[[], object]], path: Path, steps: int = 6) -> None:
    """A trace window of the same steps by Leadline. `begin` gives what takes a step; loader workers that it starts are
    measured too, and end with it."""
    import leadline

    wait = 8  # a loader that had time to fetch ahead is used up by then
    with leadline.profile(str(path), trace=f"steps={steps},wait={wait}", shapes=True):
        step = begin()
        for number in range(steps + wait + 1):
            leadline.step(number)
            step()
        del step
        gc.collect()


def asked(*names: str, **settings: str) -> Ratio:
    """The ratio that scenarios predict."""

    def ratio(graph: Graph) -> tuple[float, float, float]:
        found = predict(graph, list(names), settings).scenarios[0]
        # the time before is measured apart, so the range is that of the gain
        return found.samples / found.speedup, found.samples / found.high_gain, found.samples / found.low_gain

    return ratio


def gone(*patterns: str) -> Ratio:
    """The ratio when the operators of these names are not in the model."""

    def ratio(graph: Graph) -> tuple[float, float, float]:
        pattern = "|".join(patterns)
        edited = without(graph, name=pattern) if graph.select(name=pattern) else graph.copy()
        value, low, high = gain(graph, edited)
        return 1 / value, 1 / high, 1 / low

    return ratio


def outcome(name: str, graph: Graph, ratio: Ratio, before_s: float, after_s: float) -> Outcome:
    """The predicted time is the measured time before, times predicted over replayed: the profiler's cost cancels."""
    expected, low, high = ratio(graph)
    replay_error = simulate(graph).makespan_ns / max(graph.info.measured_ns, 1) - 1
    return Outcome(name, before_s, before_s * expected, before_s * low, before_s * high, after_s, replay_error)


def write_results(
    folder: Path, stem: str, title: str, facts: dict[str, Any], found: Sequence[Outcome], script: str, limit: float
) -> str:
    """Writes STEM.json and STEM.md; returns the table."""
    table = markdown_table(
        ("change", "before ms", "predicted ms", "range ms", "measured after ms", "error", "predicted", "measured"),
        (
            (
                item.name, f"{item.before_s * 1e3:.2f}", f"{item.predicted_s * 1e3:.2f}",
                f"{item.low_s * 1e3:.2f} to {item.high_s * 1e3:.2f}", f"{item.after_s * 1e3:.2f}", f"{item.error:+.1%}",
                f"{item.before_s / item.predicted_s:.2f}x", f"{item.before_s / item.after_s:.2f}x",
            )
            for item in found
        ),
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    rows = [item.facts(limit) for item in found]
    (folder / f"{stem}.json").write_text(json.dumps({"machine": facts, "pairs": rows}, indent=2) + "\n")
    text = f"# {title}\n\n{machine_text(facts)}\n\n{table}\nMade by `{script}`.\n"
    (folder / f"{stem}.md").write_text(text)
    return table
