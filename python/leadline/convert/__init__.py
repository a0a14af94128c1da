"""Writers of foreign formats: `EXPORTERS` lists them, one module each; a module is imported when it is used."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from leadline.profiles import Profile


@dataclass(frozen=True)
class Exporter:
    """A format: its name on the command line, its module, how its files end, and who reads them."""

    name: str
    module: str
    endings: tuple[str, ...]
    reader: str


class ExporterModule(Protocol):
    """What an exporter's file offers."""

    def export(self, profile: Profile, metric: str | None) -> bytes:
        """The file's contents. `metric`: the one to export, None for what suits the format.

        Raises ExportError with a sentence: the profile or format does not have it, or the result would be too large.
        """
        ...


EXPORTERS: tuple[Exporter, ...] = (
    Exporter("speedscope", "leadline.convert.speedscope", (".speedscope.json",), "speedscope"),
    Exporter("collapsed", "leadline.convert.collapsed", (".collapsed", ".folded"), "flamegraph.pl, inferno"),
    Exporter("pprof", "leadline.convert.pprof", (".pb.gz", ".pprof"), "pprof, Pyroscope, Parca"),
    Exporter("cpuprofile", "leadline.convert.cpuprofile", (".cpuprofile",), "VS Code, Chromium's DevTools"),
    Exporter("hatchet", "leadline.convert.hatchet", (".hatchet.json",), "hatchet"),
)


def exporter_for(output: str) -> Exporter | None:
    """The format that the file name `output` ends like, if any does."""
    lowered = output.lower()
    return next((one for one in EXPORTERS if lowered.endswith(one.endings)), None)


def export(profile: Profile, exporter: Exporter, metric: str | None = None) -> bytes:
    """`profile` in that format; raises ExportError."""
    return cast(ExporterModule, importlib.import_module(exporter.module)).export(profile, metric)
