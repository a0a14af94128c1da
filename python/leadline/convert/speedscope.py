"""speedscope's own JSON: one evented profile per thread and metric, since a speedscope profile has one weight.

Evented, because a tree then takes two events per node, where the sampled form would take a stack per node. The events
are laid out depth first, so "time order" shows call paths in the order of the tree, not of time: the tree has none.
Format: file-format-schema.json of the speedscope project.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from leadline import __version__
from leadline.convert.request import Request
from leadline.convert.sinks import Sink
from leadline.convert.stacks import (
    Weights,
    children_lists,
    chosen_metrics,
    enter_and_leave,
    frame_texts,
    json_bytes,
    main_metric,
    profile_name,
)
from leadline.profiles import Profile

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {"ns": "nanoseconds", "bytes": "bytes"}


def export(profile: Profile, request: Request, sink: Sink) -> None:
    """See `ExporterModule.export`; without `metric` every additive metric gets its profiles."""
    tree = profile.tree
    metrics = chosen_metrics(tree, request.metric)
    main = main_metric(metrics)
    children = children_lists(tree)
    frame_of = tree.frame_of.tolist()
    profiles: list[dict[str, Any]] = []
    for info in sorted(metrics, key=lambda one: one is not main):
        weights = Weights(tree, info)
        for title, row in _roots(profile, str(info.kind)):
            if weights.whole[row] > 0:
                events = _events(row, children, weights, frame_of)
                profiles.append(
                    {
                        "type": "evented",
                        "name": title,
                        "unit": _UNITS.get(info.unit, "none"),
                        "startValue": 0,
                        "endValue": weights.whole[row],
                        "events": events,
                    }
                )
    frames: list[dict[str, Any]] = []
    for text in frame_texts(tree):
        frame: dict[str, Any] = {"name": text.label}
        if text.file:
            frame["file"] = text.file
        if text.line:
            frame["line"] = text.line
        frames.append(frame)
    sink.write(
        json_bytes(
            {
                "$schema": SCHEMA,
                "name": profile_name(profile),
                "exporter": f"leadline@{__version__}",
                "activeProfileIndex": 0,
                "shared": {"frames": frames},
                "profiles": profiles,
            }
        )
    )


def _roots(profile: Profile, metric: str) -> Sequence[tuple[str, int]]:
    """(title, row) of every thread, else of the whole tree."""
    ranks = Counter(process.rank for process in profile.processes)
    names = {0: ""}
    for process in profile.processes if len(profile.processes) > 1 else ():
        own_rank = process.rank >= 0 and ranks[process.rank] == 1  # children inherit the rank
        rank = f"rank {process.rank}" if process.rank >= 0 else ""
        pid = "" if own_rank else f"process {process.pid}"
        names[process.row] = " ".join(part for part in (rank, pid) if part) + ", "
    titles = [
        (f"{metric}: {names.get(thread.process, '')}{thread.name or thread.tid}", thread.node.row)
        for thread in profile.threads
    ]
    return titles or [(metric, 0)]


def _events(root: int, children: list[list[int]], weights: Weights, frame_of: list[int]) -> list[dict[str, Any]]:
    """Open and close events below `root`; what a node spent itself comes after its children."""
    events: list[dict[str, Any]] = []
    now = 0
    for row, entering in enter_and_leave(root, children, weights.whole):
        if not entering:
            now += weights.own[row]
        events.append({"type": "O" if entering else "C", "frame": frame_of[row], "at": now})
    return events
