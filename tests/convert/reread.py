"""Reading again what speedscope exported."""

from __future__ import annotations

from collections import Counter


def speedscope_stacks(document, index=0):
    """Weights by stack of one profile of a speedscope document, evented or sampled."""
    profile = document["profiles"][index]
    names = [frame["name"] for frame in document["shared"]["frames"]]
    found = Counter()
    if profile["type"] == "sampled":
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            found[tuple(names[frame] for frame in stack)] += weight
    else:
        open_frames, now = [], profile["startValue"]
        for event in profile["events"]:
            if event["at"] > now:
                found[tuple(names[frame] for frame in open_frames)] += event["at"] - now
                now = event["at"]
            if event["type"] == "O":
                open_frames.append(event["frame"])
            else:
                assert open_frames.pop() == event["frame"]
        assert not open_frames
        assert now == profile["endValue"]
    return Counter({stack: weight for stack, weight in found.items() if weight})
