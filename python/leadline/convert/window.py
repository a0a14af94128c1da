"""What exporters of trace windows share: the traces by machine with the machine's clock, and lines of the program."""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Sequence

import numpy as np

from leadline._dataclass import dataclass
from leadline.convert.request import NothingThereError, Request
from leadline.profiles import Profile
from leadline.profiles.lineage import clock_of, machine_of, moved_ns, record_of_rows
from leadline.schema import FrameKind
from leadline.trace.profile_window import read_profile
from leadline.trace.spans import nearest
from leadline.trace.tables import Trace, TraceError


@dataclass(frozen=True)
class Machine:
    """A machine since it was started. `offset_ns`: CLOCK_REALTIME less its CLOCK_MONOTONIC, None where nothing says."""

    name: str
    boot: uuid.UUID
    offset_ns: int | None
    traces: Sequence[Trace]
    processes: frozenset[int]
    """Rows of all processes of this machine."""
    moved_ns: int
    """By how much its times in the profile were moved from its own clock."""

    def monotonic_ns(self, trace: Trace) -> int:
        """What this machine's CLOCK_MONOTONIC showed at time 0 of a trace."""
        return trace.origin_ns - int(trace.facts["clock_ns"])


def window_traces(profile: Profile, request: Request) -> list[Trace]:
    """The traces of the window; raises NothingThereError where there is none, and where a metric was asked for."""
    if request.metric is not None:
        raise NothingThereError("A timeline holds events, not metrics; leave --metric out.")
    try:
        return read_profile(profile)
    except TraceError as error:
        raise NothingThereError(f"{error}.") from error


def machines(profile: Profile, traces: Sequence[Trace]) -> list[Machine]:
    """The traces by the machine that they are of, in the order of their processes."""
    records = record_of_rows(profile)
    keys = [machine_of(record, profile.meta) for record in records]
    groups: dict[Hashable, list[Trace]] = {}
    for trace in traces:
        groups.setdefault(keys[int(trace.facts["process"])], []).append(trace)
    found = []
    for key, members in groups.items():
        record = records[int(members[0].facts["process"])]
        host = profile.meta.get("host") or {}
        name = record.get("hostname") or host.get("hostname") or "machine"
        boot = record.get("boot_id") or host.get("boot_id") or ""
        clock = clock_of(record) if clock_of(record) is not None else clock_of(profile.meta)
        offset = None if clock is None else clock + moved_ns(record)
        rows = frozenset(row for row, one in enumerate(keys) if one == key)
        found.append(Machine(str(name), _uuid(str(boot), key), offset, members, rows, moved_ns(record)))
    return found


def _uuid(boot_id: str, key: Hashable) -> uuid.UUID:
    """The kernel's boot id, which Linux writes as a UUID, or one made of what tells the machine from others."""
    try:
        return uuid.UUID(boot_id)
    except ValueError:
        return uuid.uuid5(uuid.NAMESPACE_OID, repr((boot_id, key)))


def program_lines(profile: Profile) -> list[str]:
    """Where in the program every node stands: FILE:LINE of its innermost Python frame, or empty."""
    tree = profile.tree
    at = nearest(tree.parent, tree.kinds == FrameKind.PYTHON)
    frames = tree.frame_of[np.maximum(at, 0)].tolist()
    known: dict[int, str] = {}
    found = []
    for row, frame in zip(at.tolist(), frames, strict=True):
        if row >= 0 and frame not in known:
            known[frame] = f"{tree.text('file', frame)}:{int(tree.frames['line'][frame])}"
        found.append(known[frame] if row >= 0 else "")
    return found
