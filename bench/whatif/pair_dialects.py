"""The CPU pairs' traces of torch.profiler, rewritten as recorders of other years would have: the same predictions?

    python bench/whatif/pair_dialects.py --traces /tmp/pairs [--only "loader" --only "batch"]

`--traces` is what cpu_pairs.py --keep left. Prints the error of each pair in every dialect; ends with 1 where one is
off from that of today by more than a percent.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cpu_pairs import Pair, pairs, trace_of
from cpu_report import Row, read_rows

from common import add_results_option
from leadline.whatif.load import load

Trace = dict[str, Any]
APART = 0.01


def as_2021(trace: Trace) -> Trace:
    """torch 1.8: every range is an operator, ids are text, no flows, no modules, times since 1970."""
    events = []
    for event in trace["traceEvents"]:
        if event.get("ph") in ("s", "f") or event.get("cat") == "python_function":
            continue
        changed = {**event, "tid": str(event.get("tid", 0))}
        if event.get("cat") in ("cpu_op", "user_annotation"):
            changed["cat"] = "Operator"
        if "ts" in event:
            changed["ts"] = float(event["ts"]) + 1.6e15
        arguments = dict(event.get("args") or {})
        if "Input Dims" in arguments:
            arguments["Input dims"] = arguments.pop("Input Dims")
        events.append({**changed, "args": arguments})
    return {"traceEvents": events}


def unmarked(trace: Trace) -> Trace:
    """Without the profiler's marks around steps."""
    kept = [event for event in trace["traceEvents"] if not str(event.get("name", "")).startswith("ProfilerStep")]
    return {**trace, "traceEvents": kept}


def unnumbered(trace: Trace) -> Trace:
    """Without autograd's numbers."""
    for event in trace["traceEvents"]:
        (event.get("args") or {}).pop("Sequence number", None)
    return trace


def bare_list(trace: Trace) -> Trace:
    """Only the events, without a header."""
    return trace["traceEvents"]  # type: ignore[no-any-return]


DIALECTS: Mapping[str, Callable[[Trace], Any]] = {
    "today": lambda trace: trace, "2021": as_2021, "no step marks": unmarked, "no numbers": unnumbered,
    "bare list": bare_list,
}  # fmt: skip


def errors(pair: Pair, row: Row, traces: Path, folder: Path) -> dict[str, float]:
    """The error of the prediction by dialect."""
    found = {}
    for name, rewritten in DIALECTS.items():
        path = folder / "trace.json"
        path.write_text(json.dumps(rewritten(json.loads(trace_of(traces, pair, "kineto").read_text()))))
        expected, _, _ = pair.ratio(load(path))
        found[name] = row.unrecorded_s["kineto"] * expected / row.after_s - 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Predictions of the CPU pairs in other dialects.")
    parser.add_argument("--traces", type=Path, required=True, help="folder that cpu_pairs.py --keep left")
    parser.add_argument("--only", action="append", default=[], help="only pairs whose name contains this; repeatable")
    add_results_option(parser)
    arguments = parser.parse_args()
    rows = read_rows(arguments.results)
    apart = 0
    with tempfile.TemporaryDirectory() as folder:
        for pair in pairs():
            wanted = not arguments.only or any(part in pair.name for part in arguments.only)
            if not wanted or pair.name not in rows or not trace_of(arguments.traces, pair, "kineto").exists():
                continue
            found = errors(pair, rows[pair.name], arguments.traces, Path(folder))
            apart += any(abs(value - found["today"]) > APART for value in found.values())
            print(pair.name, *(f"{name} {value:+.1%}" for name, value in found.items()), sep="  ", flush=True)
    return 1 if apart else 0


if __name__ == "__main__":
    raise SystemExit(main())
