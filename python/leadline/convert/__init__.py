"""Writers of foreign formats: `EXPORTERS` lists them, one module each; a module is imported when it is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol, cast

from leadline._dataclass import dataclass
from leadline.convert.request import ExportError, Request, What
from leadline.convert.sinks import MemorySink, Sink

if TYPE_CHECKING:
    from leadline.profiles import Profile

__all__ = ["EXPORTERS", "ExportError", "Exporter", "Request", "What", "export", "exporter_for", "write"]


@dataclass(frozen=True)
class Exporter:
    """A format: its name on the command line, its module, how its files end, and who reads them."""

    name: str
    module: str
    endings: tuple[str, ...]
    reader: str
    holds: What = What.TREE
    """Which side of a profile the format shows."""
    folder: bool = False
    """Whether it is a folder of files rather than one file."""
    options: tuple[str, ...] = ()
    """Names that `Request.options` may have."""


class ExporterModule(Protocol):
    """What an exporter's file offers."""

    def export(self, profile: Profile, request: Request, sink: Sink) -> None:
        """Write what is asked for to `sink`: pieces of one file with `write`, or files of a folder with `member`.

        Raises ExportError with a sentence: the profile or format does not have it, or the result would be too large.
        """
        ...


EXPORTERS: tuple[Exporter, ...] = (
    Exporter("speedscope", "leadline.convert.speedscope", (".speedscope.json",), "speedscope"),
    Exporter("collapsed", "leadline.convert.collapsed", (".collapsed", ".folded"), "flamegraph.pl, inferno"),
    Exporter("pprof", "leadline.convert.pprof", (".pb.gz", ".pprof"), "pprof, Pyroscope, Parca"),
    Exporter("otlp", "leadline.convert.otlp", (".otlp",), "OpenTelemetry collectors"),
    Exporter("cpuprofile", "leadline.convert.cpuprofile", (".cpuprofile",), "VS Code, Chromium's DevTools"),
    Exporter("hatchet", "leadline.convert.hatchet", (".hatchet.json",), "hatchet"),
    Exporter("perfetto", "leadline.convert.perfetto", (".pftrace", ".perfetto-trace"), "Perfetto", What.WINDOW),
    Exporter("chrome", "leadline.convert.chrome", (".chrome.json",), "chrome://tracing, Perfetto", What.WINDOW),
    Exporter(
        "perfetto-archive",
        "leadline.convert.perfetto_archive",
        (".perfetto.zip",),
        "Perfetto 58: a trace a machine",
        What.WINDOW,
    ),
    Exporter(
        "ctf", "leadline.convert.ctf.version_1", (".ctf",), "babeltrace2, Trace Compass", What.WINDOW, folder=True
    ),
    Exporter("ctf2", "leadline.convert.ctf.version_2", (".ctf2",), "babeltrace2 2.1", What.WINDOW, folder=True),
)


def exporter_for(output: str) -> Exporter | None:
    """The format that the file name `output` ends like, if any does."""
    lowered = output.lower()
    return next((one for one in EXPORTERS if lowered.endswith(one.endings)), None)


def write(profile: Profile, exporter: Exporter, request: Request, sink: Sink) -> None:
    """`profile` in that format to `sink`; raises ExportError, and OSError of the sink."""
    if request.what is not exporter.holds:
        others = ", ".join(one.name for one in EXPORTERS if one.holds is request.what) or "none"
        raise ExportError(f"{exporter.name} cannot hold the {request.what.value} of a profile; these can: {others}.")
    if unknown := sorted(set(request.options) - set(exporter.options)):
        known = ", ".join(exporter.options) or "none"
        raise ExportError(f"{exporter.name} has no option {unknown[0]}; its options are: {known}.")
    cast(ExporterModule, importlib.import_module(exporter.module)).export(profile, request, sink)


def export(profile: Profile, exporter: Exporter, metric: str | None = None) -> bytes:
    """`profile` in that format of one file, in memory; raises ExportError, also for a format that is a folder."""
    if exporter.folder:
        raise ExportError(f"{exporter.name} is a folder of files; give it a name with -o FOLDER.")
    sink = MemorySink()
    with sink:
        write(profile, exporter, Request(exporter.holds, metric), sink)
    return sink.data
