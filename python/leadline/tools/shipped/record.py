"""Keeps the events themselves, for `--backend replay:FILE`."""

from __future__ import annotations

import os
from pathlib import Path

from leadline.tools.backends.recording import write_recording
from leadline.tools.batch import Batch
from leadline.tools.out import Out
from leadline.tools.tool import Tool, option


class Record(Tool):
    """Keeps every launch and what it touched in a file, on which tools can be run again without the program."""

    tool_name = "record"
    events = {"launch": ["launch", "kernel", "time", "duration", "flops", "thread", "device", "place"]}
    optional = {
        event: ["launch"] for event in ("touched", "access", "instruction", "shared_access", "barrier", "block")
    }
    to = option(str, "events.npz", "the file to write; processes that were forked add their number")
    rows = option(int, "2000000", "rows kept, in the order in which they came")

    def start(self) -> None:
        self.kept: dict[str, list[Batch]] = {}
        self.count = 0
        self.left_out = 0

    def keep(self, b: Batch) -> None:
        """Any event."""
        if self.count + len(b) > self.rows:
            self.left_out += len(b)
            return
        self.count += len(b)
        self.kept.setdefault(b.event.name, []).append(b)

    launch = touched = access = instruction = shared_access = barrier = block = keep

    def finish(self, out: Out) -> None:
        if not self.kept:
            return
        file = Path(self.to)
        if self.context.child:
            file = file.with_name(f"{file.stem}.{os.getpid()}{file.suffix}")
        write_recording(file, self.kept, self.names, self.objects, self.places)
        events = ", ".join(f"{sum(map(len, batches)):,} {event}" for event, batches in self.kept.items())
        left = f"; {self.left_out:,} rows found no room (record.rows)" if self.left_out else ""
        out.text("recording", f"{file}: {events}{left}. Read it with --backend replay:{file}.")
