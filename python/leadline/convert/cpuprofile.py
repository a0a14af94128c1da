"""V8's `.cpuprofile` JSON, which VS Code and Chromium's DevTools open: one tree of call frames and a line of samples.

Times are whole microseconds there; they are rounded as running totals, so the sum keeps its value. Sample i lasts
until sample i+1; `timeDeltas[i]` is the time before sample i, and a last sample of the root closes the line. Format:
`Profiler.Profile` of the Chrome DevTools protocol.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from leadline.convert.request import Request, UnknownMetricError
from leadline.convert.sinks import Sink
from leadline.convert.stacks import (
    FrameText,
    Weights,
    additive_metrics,
    children_lists,
    chosen_metrics,
    enter_and_leave,
    frame_texts,
    json_bytes,
    main_metric,
)
from leadline.profiles import Profile


def export(profile: Profile, request: Request, sink: Sink) -> None:
    """See `ExporterModule.export`; only times fit, without `metric` device time where there is some, else time."""
    tree = profile.tree
    info = main_metric(chosen_metrics(tree, request.metric, unit="ns"))
    if info is None and additive_metrics(tree):
        names = ", ".join(str(one.kind) for one in additive_metrics(tree))
        raise UnknownMetricError(f"A .cpuprofile holds times and this profile has none; it has {names}.")
    texts, frame_of = frame_texts(tree), tree.frame_of.tolist()
    nodes: dict[int, dict[str, Any]] = {0: _node(0, FrameText("root", "(root)", "", 0, 0))}
    samples: list[int] = []
    deltas: list[int] = []
    passed_ns = passed_us = 0
    if info is not None:
        weights = Weights(tree, info)
        parent = tree.parent.tolist()
        before = 0
        for row, entering in enter_and_leave(0, children_lists(tree), weights.whole):
            if not entering:
                continue
            if row:
                nodes[row] = _node(row, texts[frame_of[row]])
                nodes[parent[row]].setdefault("children", []).append(row + 1)
            if weights.own[row]:
                nodes[row]["hitCount"] = 1
                samples.append(row + 1)
                deltas.append(before)
                passed_ns += weights.own[row]
                before = round(passed_ns / 1000) - passed_us
                passed_us += before
        samples.append(1)
        deltas.append(before)
    sink.write(
        json_bytes(
            {
                "nodes": list(nodes.values()),
                "startTime": 0,
                "endTime": passed_us,
                "samples": samples,
                "timeDeltas": deltas,
            }
        )
    )


def _node(row: int, text: FrameText) -> dict[str, Any]:
    """Ids begin at 1; lines count from 0 and are -1 where unknown."""
    return {
        "id": row + 1,
        "callFrame": {
            "functionName": text.label,
            "scriptId": "0",
            "url": _url(text.file),
            "lineNumber": text.line - 1,
            "columnNumber": 0 if text.line else -1,
        },
        "hitCount": 0,
    }


def _url(file: str) -> str:
    """A file URL for an absolute path, as V8 writes it; anything else as it is."""
    if not file.startswith("/"):
        return file
    try:
        return PurePosixPath(file).as_uri()
    except (ValueError, UnicodeError):
        return file
