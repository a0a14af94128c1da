"""One step of each of four training programs on an H200 (bench/gpu/gpu_models.py), as torch.profiler recorded it.

`h200/*.json.gz` hold, in columns, what a prediction reads of such a trace: times in tenths of a microsecond, each from
the event before; shapes and types; the numbers of launches. Work that was given to the device before the step is there
without its launch. `written` makes a trace of them again.
"""

from __future__ import annotations

import gzip
import json
from itertools import accumulate
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "h200"
MODELS = ("resnet50", "encoder", "decoder", "recommender")


def written(model: str, folder: Path) -> Path:
    """The trace as torch.profiler writes it."""
    data = json.loads(gzip.decompress((HERE / f"{model}.json.gz").read_bytes()))
    path = folder / f"{model}.json"
    header = {"schemaVersion": 1, "record_shapes": 1, "deviceProperties": [data["device"]]}
    path.write_text(json.dumps({**header, "traceEvents": list(_events(data))}), encoding="utf-8")
    return path


def _events(data: dict[str, Any]) -> Any:
    columns = [list(accumulate(data[name])) for name in ("ts", "corr", "seq")]
    rest = [data[name] for name in ("cat", "name", "track", "dur", "detail", "stream", "bytes")]
    for start, correlation, sequence, category, name, track, length, detail, stream, size in zip(
        *columns, *rest, strict=True
    ):
        process, thread = data["tracks"][track]
        args = dict(data["details"][detail]) if detail >= 0 else {}
        args |= {"correlation": correlation} if correlation else {}
        args |= {"Sequence number": sequence} if sequence >= 0 else {}
        args |= {"stream": stream, "device": 0} if stream >= 0 else {}
        args |= {"bytes": size} if size >= 0 else {}
        yield {
            "ph": "X", "cat": data["categories"][category], "name": data["names"][name], "pid": process, "tid": thread,
            "ts": start / 10, "dur": length / 10, "args": args,
        }  # fmt: skip
