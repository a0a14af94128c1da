"""The trace window in CTF 2: babeltrace2 2.1 and later."""

from __future__ import annotations

from leadline.convert.ctf.folder import write_folder
from leadline.convert.ctf.fragments import metadata
from leadline.convert.request import Request
from leadline.convert.sinks import Sink
from leadline.profiles import Profile


def export(profile: Profile, request: Request, sink: Sink) -> None:
    """See `ExporterModule.export`; a window has no metrics to choose from."""
    write_folder(profile, request, sink, metadata)
