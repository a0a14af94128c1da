"""The window of a job as an archive that Perfetto opens as one timeline: a trace per machine, and the manifest that
says which machine each is of and how their clocks relate (perfetto.dev/docs/reference/perfetto-manifest, version 1).

Drift and offset of the clocks are in our times already, so the manifest relates them with an offset of zero. Unlike one
file for all machines the archive has what the kernel of each did.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter

from leadline.convert.perfetto import Timeline
from leadline.convert.request import Request
from leadline.convert.sinks import Sink
from leadline.convert.window import machines, window_traces
from leadline.profiles import Profile

MANIFEST = "perfetto_manifest.json"
_CLOCK = "BOOTTIME"  # what packets without a clock of their own count in


def export(profile: Profile, request: Request, sink: Sink) -> None:
    """See `ExporterModule.export`."""
    traces = window_traces(profile, request)
    found = machines(profile, traces)
    timeline = Timeline(profile, min(trace.origin_ns for trace in traces))
    names = _names([machine.name for machine in found])
    with zipfile.ZipFile(_Stream(sink), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, json.dumps(manifest(names), indent=1))
        for name, machine in zip(names, found, strict=True):
            with archive.open(f"{name}.pftrace", "w", force_zip64=True) as file:
                timeline.write(file.write, machine.traces, machine.processes)


def manifest(names: list[str]) -> dict[str, object]:
    """The manifest for traces of machines of these names."""
    first = f"{names[0]}.pftrace"
    files: list[dict[str, object]] = []
    for name in names:
        path = f"{name}.pftrace"
        relation = {"clock": _CLOCK, "sync_to": {"file": first, "clock": _CLOCK}, "offset_ns": 0}
        files.append({"path": path, "machine": {"name": name}, **({} if path == first else {"clocks": relation})})
    return {"perfetto_manifest": {"version": 1, "trace_time": {"clock": _CLOCK, "file": first}, "files": files}}


def _names(given: list[str]) -> list[str]:
    """A name for each machine, also where several are called alike."""
    plain = ["".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name) for name in given]
    count = Counter(plain)
    return [name if count[name] == 1 else f"{name}-{number}" for number, name in enumerate(plain)]


class _Stream:
    """What `zipfile` needs of a file that only takes bytes."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, data: bytes, /) -> int:
        """Pass on."""
        self._sink.write(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """The sink is its owner's."""
