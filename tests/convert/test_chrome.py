"""The trace window as Chrome's trace events: what a reader of that format finds in it."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest
from samples import TRACKS_OF_TWO_MACHINES, TREE, two_machines

from leadline.convert.request import NothingThereError
from leadline.profiles.build import build


def test_threads_streams_lines_and_arrows(exported: Any) -> None:
    events = json.loads(exported("chrome", two_machines()))["traceEvents"]
    named = {(one["name"], one["pid"], one["tid"]): one["args"]["name"] for one in events if one["ph"] == "M"}
    found = defaultdict(list)
    ends = {}
    for one in events:
        track = (named["process_name", one["pid"], 0], named.get(("thread_name", one["pid"], one["tid"])))
        if one["ph"] == "X":
            span = (
                one["name"],
                round(one["ts"] * 1000),
                round((one["ts"] + one["dur"]) * 1000),
                one["args"].get("at", ""),
            )
            found[" / ".join(map(str, track))].append(span)
            ends[one["pid"], one["tid"], one["ts"]] = one["name"]
    assert found == TRACKS_OF_TWO_MACHINES
    arrows = {one["ph"]: ends[one["pid"], one["tid"], one["ts"]] for one in events if one["ph"] in "sf"}
    assert arrows == {"s": "cudaLaunchKernel", "f": "gemm"}
    assert len({one["id"] for one in events if one["ph"] in "sf"}) == 1


def test_a_profile_without_a_window_says_how_to_record_one(exported: Any) -> None:
    with pytest.raises(NothingThereError, match="--trace steps=3"):
        exported("chrome", build(TREE))
