"""A folder of CTF traces: `ust/` and, where the kernel was recorded, `kernel/`; of several machines in one folder each.
Beside them lies what Trace Compass needs to draw `ust/`.

The two join in a viewer by the uuid of their clock, which is the machine's boot id."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leadline.convert.ctf import tracecompass
from leadline.convert.ctf.kernel import kernel_trace
from leadline.convert.ctf.layout import Layout, Stream
from leadline.convert.ctf.packets import packets
from leadline.convert.ctf.user import user_trace
from leadline.convert.request import Request
from leadline.convert.sinks import Sink
from leadline.convert.window import machines, program_lines, window_traces
from leadline.profiles import Profile


def write_folder(profile: Profile, request: Request, sink: Sink, metadata: Callable[[Layout], bytes]) -> None:
    """All traces of a profile; raises NothingThereError where it has no window."""
    found = machines(profile, window_traces(profile, request))
    lines = program_lines(profile)
    for number, machine in enumerate(found):
        folder = f"machine{number}/" if len(found) > 1 else ""
        layout, streams = user_trace(profile, machine, lines)
        _write(sink, f"{folder}ust", layout, streams, metadata)
        with sink.member(f"{folder}{tracecompass.FILE}") as file:
            file.write(tracecompass.analyses(layout))
        if (kernel := kernel_trace(profile, machine)) is not None:
            _write(sink, f"{folder}kernel", *kernel, metadata)


def _write(
    sink: Sink, folder: str, layout: Layout, streams: Sequence[Stream], metadata: Callable[[Layout], bytes]
) -> None:
    with sink.member(f"{folder}/metadata") as file:
        file.write(metadata(layout))
    for number, stream in enumerate(streams):
        with sink.member(f"{folder}/{stream.name}") as file:
            for packet in packets(layout, stream, number):
                file.write(packet)
