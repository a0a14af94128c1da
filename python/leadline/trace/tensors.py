"""Tensors that one device or process of TensorFlow sent and another received: matched by step and name, not by order.

Waiting is told apart from transfer: until the sender begins to send, the receiver waits for it; then for the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline._dataclass import dataclass
from leadline.profiles.lineage import moved_ns, record_of_rows
from leadline.profiles.profile import Profile
from leadline.trace.xspace_tensors import HAS


@dataclass(frozen=True)
class Tensor:
    """`source`, `target`: rows of the profile's events; times on their clock. `sender`, `receiver`: processes."""

    name: str
    sender: int
    receiver: int
    source: int
    target: int
    sent_ns: int
    asked_ns: int
    received_ns: int

    @property
    def waited_for_sender_ns(self) -> int:
        """How long the receiver had asked before the sender began to send."""
        return max(min(self.sent_ns, self.received_ns) - self.asked_ns, 0)

    @property
    def on_the_way_ns(self) -> int:
        """From when it was both sent and asked for until it was there; clocks of two machines may make it 0."""
        return max(self.received_ns - max(self.sent_ns, self.asked_ns), 0)


def tensors(profile: Profile) -> tuple[list[Tensor], int]:
    """Every tensor of which both ends are in the window, in the order they arrived, and how many have one end there."""
    sent: dict[tuple[int, str, int], tuple[int, int, int]] = {}
    received: list[tuple[tuple[int, str, int], tuple[int, int, int]]] = []
    for process, record in enumerate(record_of_rows(profile)):
        shift = moved_ns(record)
        for step, node, sends, begin, end in _told(record):
            name, _, number = node.rpartition("/_")
            if not number.isdigit():
                continue
            if sends:
                sent[step, name, int(number) + 1] = (process, begin + shift, end + shift)
            else:
                received.append(((step, name, int(number)), (process, begin + shift, end + shift)))
    if not sent and not received:
        return [], 0
    rows = _rows(profile)
    found = []
    for key, (receiver, asked, there) in received:
        sender, begin, _ = sent.get(key, (-1, 0, 0))
        source, target = rows.get((sender, "_Send", begin), -1), rows.get((receiver, HAS, there), -1)
        if source >= 0 and target >= 0:
            found.append(Tensor(key[1], sender, receiver, source, target, begin, asked, there))
    found.sort(key=lambda one: one.received_ns)
    return found, len(sent) + len(received) - 2 * len(found)


def _told(record: Mapping[str, Any]) -> list[tuple[int, str, int, int, int]]:
    dataflow = record.get("dataflow")
    listed = dataflow.get("tensors") if isinstance(dataflow, Mapping) else None
    rows = [row for row in listed if isinstance(row, list) and len(row) >= 5] if isinstance(listed, list) else []
    return [(int(row[0]), str(row[1]), int(row[2]), int(row[3]), int(row[4])) for row in rows]


def _rows(profile: Profile) -> dict[tuple[int, str, int], int]:
    """The event by process, name and begin, of sends and of what has come: in profiles of TensorFlow's an event of its
    own, in windows of ours the end of a `_Recv`."""
    tree, events = profile.tree, profile.events
    names = np.array([tree.text("name", row) for row in range(len(tree.frames["kind"]))], dtype=object)
    wanted = np.isin(names.astype(str), ("_Send", "_HostSend", "_Recv", "_HostRecv", HAS))[tree.frame_of]
    found: dict[tuple[int, str, int], int] = {}
    for row in np.flatnonzero(wanted[events["node"]] & (events["thread"] >= 0)).tolist():
        name = str(names[tree.frame_of[events["node"][row]]]).replace("_HostSend", "_Send")
        process = profile.threads[int(events["thread"][row])].process
        begin = int(events["start_ns"][row])
        if name in ("_Recv", "_HostRecv"):
            name, begin = HAS, begin + int(events["duration_ns"][row])
        found.setdefault((process, name, begin), row)
    return found
