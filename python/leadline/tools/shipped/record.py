"""Keeps the events themselves, for `--backend replay:FILE`."""

from __future__ import annotations

import os
from pathlib import Path

from leadline.tools.backends.recording import write_recording
from leadline.tools.batch import Batch
from leadline.tools.out import Out
from leadline.tools.tool import Tool, option

_OF_LAUNCHES = ("touched", "access", "instruction", "shared_access", "barrier", "block")
_OF_THE_PROGRAM = ("region", "step", "copy", "set", "synchronize", "device_memory")


class Record(Tool):
    """Keeps every launch, what it touched and tensor memory in a file, on which tools can be run again without the
    program."""

    tool_name = "record"
    events = {
        "launch": ["launch", "kernel", "time", "duration", "flops", "thread", "device", "place"],
        "memory": ["time", "address", "bytes", "total", "device", "device_type", "thread", "place"],
    }
    optional = {
        **{event: ["launch"] for event in _OF_LAUNCHES},
        **{event: ["time"] for event in _OF_THE_PROGRAM},
    }
    most_bytes = 1 << 62  # rows are what bounds it
    to = option(str, "events.npz", "the file to write; processes that were forked add their number")
    rows = option(int, "2000000", "rows kept, in the order in which they came")

    def start(self) -> None:
        self.kept: dict[str, list[Batch]] = {}
        self.count = 0
        self.left_out = 0

    def recorded(self) -> frozenset[str]:
        """Events that are in the file, if any came."""
        return frozenset(self.events) | self.taken

    def keep(self, b: Batch) -> None:
        """Any event."""
        if self.count + len(b) > self.rows:
            self.left_out += len(b)
            return
        self.count += len(b)
        self.kept.setdefault(b.event.name, []).append(b)

    launch = touched = access = instruction = shared_access = barrier = block = keep
    memory = region = step = copy = set = synchronize = device_memory = keep

    def finish(self, out: Out) -> None:
        if not self.kept:
            return
        file = Path(self.to)
        if self.context.child:
            file = file.with_name(f"{file.stem}.{os.getpid()}{file.suffix}")
        write_recording(file, self.kept, self.names, self.objects, self.places, self.recorded())
        events = ", ".join(f"{sum(map(len, batches)):,} {event}" for event, batches in self.kept.items())
        left = f"; {self.left_out:,} rows found no room (record.rows)" if self.left_out else ""
        out.text("recording", f"{file}: {events}{left}. Read it with --backend replay:{file}.")


class RecordValues(Record):
    """As `record`, and which values were not finite and which inputs equal: this looks at every tensor, so the program
    takes several times as long."""

    tool_name = "record_values"
    events = {
        **Record.events,
        "launch": [*Record.events["launch"], "inputs"],
        "value": ["launch", "object", "nan", "inf", "elements", "clean", "time", "place"],
    }
    value = Record.keep
