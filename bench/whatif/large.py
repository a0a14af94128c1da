"""Writes large traces out of the reference set's: the ResNet trace and its steps again, which are more than 216,000
events, and the step of the eight recommender ranks as often as makes millions."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

SOURCE = "param-resnet-2080ti/resnet_kineto.json.gz"
RANKS = "param-dlrm-8rank-v100/dlrm_kineto.tar.gz"
_STEP = "ProfilerStep#"
_UPDATE = "Optimizer.step#"


def write_twice(source: Path, target: Path) -> int:
    """Write `source` followed by all but its first step, a millisecond later and with fresh correlation ids; returns
    the number of events. The loader's workers start before the first step and the profiler ends after the last one,
    more than a second each in which nothing is recorded: in the middle of a trace such a hole would end the run."""
    with gzip.open(source, "rt", encoding="utf-8") as stream:
        trace = json.load(stream)
    over = max(event["ts"] + event["dur"] for event in trace["traceEvents"] if event.get("cat") == "kernel")
    events = [event for event in trace["traceEvents"] if event.get("cat") != "Trace" and event.get("ts", over) <= over]
    begin = min(event["ts"] + event.get("dur", 0) for event in events if event["name"].startswith(_UPDATE))
    again = [event for event in events if event.get("ts", 0) >= begin]
    shift_us = over - begin + 1000
    highest = max((event.get("args") or {}).get("correlation", 0) for event in events)
    trace["traceEvents"] = [*events, *(_later(event, shift_us, highest) for event in again)]
    with gzip.open(target, "wt", encoding="utf-8") as stream:
        json.dump(trace, stream)
    return len(trace["traceEvents"])


def write_ranks(source: Path, folder: Path, events: int) -> int:
    """Write the traces of all ranks with their step repeated until there are about `events` in all, the same number of
    steps on every rank, and a second between the steps' beginnings; returns how many events were written."""
    with tarfile.open(source) as archive:
        files = [archive.extractfile(member) for member in archive if member.isfile()]
        ranks = [json.load(file) for file in files if file is not None]
    turns = max(1, round(events / sum(len(rank["traceEvents"]) for rank in ranks)))
    highest = max((event.get("args") or {}).get("correlation", 0) for rank in ranks for event in rank["traceEvents"])
    for rank in ranks:
        step = rank.pop("traceEvents")
        name = f"rank{rank['distributedInfo']['rank']}.json"
        with (folder / name).open("w", encoding="utf-8") as stream:
            stream.write(json.dumps(rank)[:-1] + ', "traceEvents": [')
            for turn in range(turns):
                stream.write("," if turn else "")
                stream.write(
                    json.dumps([_later(event, turn * 1_000_000, turn * highest, turn) for event in step])[1:-1]
                )
            stream.write("]}")
        rank["traceEvents"] = step
    return turns * sum(len(rank["traceEvents"]) for rank in ranks)


def _later(event: dict[str, Any], shift_us: float, highest: int, steps: int = 0) -> dict[str, Any]:
    moved = dict(event)
    if "ts" in moved:
        moved["ts"] += shift_us
    if moved.get("cat") == "ac2g":
        moved["id"] += highest
    if steps and moved["name"].startswith(_STEP):
        moved["name"] = f"{_STEP}{int(moved['name'].removeprefix(_STEP)) + steps}"
    arguments = moved.get("args")
    if arguments and arguments.get("correlation"):  # 0 stands for none
        moved["args"] = {**arguments, "correlation": arguments["correlation"] + highest}
    return moved
