"""hatchet's literal JSON: a list of trees of `{"frame", "metrics", "children"}`, read by
`hatchet.GraphFrame.from_json`.

hatchet reads it by recursion, two levels of JSON per frame, so paths deeper than MAX_DEPTH end in one frame that
holds the rest. hatchet takes the metric `time` by default: it is wall time, or device time where only that is
exported; ` (inc)` marks inclusive values. Times are nanoseconds.
"""

from __future__ import annotations

import json

from leadline.convert.request import Request
from leadline.convert.sinks import Sink
from leadline.convert.stacks import FrameText, Weights, children_lists, chosen_metrics, frame_texts, main_metric
from leadline.profiles import Profile
from leadline.schema import MetricKind

MAX_DEPTH = 200
DEEPER = "(deeper frames)"


def export(profile: Profile, request: Request, sink: Sink) -> None:
    """See `ExporterModule.export`; without `metric` every additive metric."""
    tree = profile.tree
    metrics = chosen_metrics(tree, request.metric)
    times = [info for info in metrics if info.unit == "ns"]
    main = next((info for info in times if info.kind == MetricKind.TIME), main_metric(times))
    columns = [("time" if info is main else str(info.kind), Weights(tree, info)) for info in metrics]
    worth = [any(weights.whole[row] for _, weights in columns) for row in range(len(tree))]
    children, texts, frame_of = children_lists(tree), frame_texts(tree), tree.frame_of.tolist()

    out = ["["]
    roots = [row for row in children[0] if worth[row]]
    stack = [(row, 1, i > 0) for i, row in enumerate(roots)][::-1]
    while stack:
        row, depth, comma = stack.pop()
        if row < 0:
            out.append("]}")
            continue
        out.append("," if comma else "")
        below = [child for child in children[row] if worth[child]]
        folded = depth >= MAX_DEPTH and bool(below)
        out.append(_node(texts[frame_of[row]], _metrics(columns, row)))
        if folded:
            out.append(_node(_DEEPER_FRAME, _folded(columns, row)) + "]}")
            below = []
        stack.append((-1, 0, False))
        stack.extend([(child, depth + 1, i > 0) for i, child in enumerate(below)][::-1])
    out.append("]\n")
    sink.write("".join(out).encode("ascii"))


_DEEPER_FRAME = FrameText("python", DEEPER, "", 0, 0)


def _node(text: FrameText, metrics: dict[str, int]) -> str:
    """A node with its list of children still open."""
    frame: dict[str, str | int] = {"name": text.label, "type": text.kind}
    if text.file:
        frame["file"] = text.file
    if text.line:
        frame["line"] = text.line
    return f'{{"frame":{json.dumps(frame)},"metrics":{json.dumps(metrics)},"children":['


def _metrics(columns: list[tuple[str, Weights]], row: int) -> dict[str, int]:
    made: dict[str, int] = {}
    for name, weights in columns:
        made[name] = weights.own[row]
        made[f"{name} (inc)"] = weights.whole[row]
    return made


def _folded(columns: list[tuple[str, Weights]], row: int) -> dict[str, int]:
    """Metrics of the frame that stands for everything below `row`."""
    made: dict[str, int] = {}
    for name, weights in columns:
        made[name] = made[f"{name} (inc)"] = weights.whole[row] - weights.own[row]
    return made
