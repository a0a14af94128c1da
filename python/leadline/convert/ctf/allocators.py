"""What allocators said of themselves, as a stream of CTF per process: `leadline:allocator` with the name of the amount,
the device and the value. Traces without such amounts have no stream class for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline.convert.ctf.layout import Batch, EventClass, Integer, Stream, StreamClass, smallest
from leadline.convert.window import Machine
from leadline.profiles import Profile
from leadline.trace.counters import Series, series
from leadline.trace.tables import Trace

EVENT = "leadline:allocator"
LABELS = "amounts"
ALLOCATORS = 2  # the stream class, after threads and queues


def amounts(profile: Profile, machine: Machine) -> list[Series]:
    """Those of a machine; what tensors hold is told by `leadline:allocate`."""
    return [one for one in series(profile) if one.process in machine.processes and ": " in one.name]


def names(found: Sequence[Series]) -> list[str]:
    """The labels of the amounts."""
    return list(dict.fromkeys(one.name for one in found))


def stream_class(found: Sequence[Series]) -> StreamClass:
    """Of the streams that `streams` makes."""
    fields = {"name": smallest(len(names(found)), LABELS), "device": Integer(32, True), "value": Integer(64, True)}
    return StreamClass("allocators", {"vpid": Integer(32, True)}, [EventClass(EVENT, fields)])


def streams(profile: Profile, machine: Machine, found: Sequence[Series], kind: StreamClass) -> list[Stream]:
    """One for each process."""
    label = {name: number for number, name in enumerate(names(found))}
    made = []
    shift = {int(trace.facts["process"]): _shift(machine, trace) for trace in machine.traces}
    for process in sorted({one.process for one in found} & set(shift)):
        mine = [one for one in found if one.process == process]
        times = np.concatenate([one.time_ns for one in mine])
        order = np.argsort(times, kind="stable")
        records = np.zeros(times.size, dtype=kind.record(kind.events[0]))
        records["timestamp"] = times[order] + shift[process]
        records["vpid"] = profile.processes[process].pid
        sizes = [one.time_ns.size for one in mine]
        records["name"] = np.repeat([label[one.name] for one in mine], sizes)[order]
        index = [profile.devices[one.device].index if one.device >= 0 else -1 for one in mine]
        records["device"] = np.repeat(index, sizes)[order]
        records["value"] = np.concatenate([one.values for one in mine])[order]
        made.append(Stream(f"allocators_{process}", ALLOCATORS, -1, [Batch(np.arange(times.size), records)]))
    return made


def _shift(machine: Machine, trace: Trace) -> int:
    """From times of the profile to the machine's clock."""
    return machine.monotonic_ns(trace) - int(trace.facts["begin_ns"])
