"""`leadline import`: a trace of another profiler as a profile, for every verb, view and rule there is."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from leadline.cli.errors import CommandError
from leadline.cli.files import add_output, write_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="a trace of torch.profiler (.json, .json.gz), an SQLite export of Nsight Systems, a database of "
        "rocprofv3, text of perf script, trace.dat of trace-cmd, a folder of CTF traces (LTTng), a profile of "
        "JAX or TensorFlow (.xplane.pb, or its folder of logs), TensorFlow's RunMetadata, timeline or executor's log, "
        "or those of a job's ranks: files, a folder, a .tar.gz; a recording of the Linux kernel is joined with the "
        "others, which may be profiles of Leadline",
    )
    parser.add_argument(
        "--clocks",
        metavar="FILE",
        help="align machines by the output of `leadline clock-sync --format json`, not by CLOCK_REALTIME",
    )
    add_output(parser, "the .leadline file to write", required=True)


def run(arguments: argparse.Namespace) -> int:
    from leadline.profiles import ProfileFileError
    from leadline.trace.clock_sync import read_relations
    from leadline.trace.importers import import_traces
    from leadline.trace.tables import TraceError

    try:
        text = Path(arguments.clocks).read_text(encoding="utf-8") if arguments.clocks else ""
        profile = import_traces(arguments.files, read_relations(text, arguments.clocks) if arguments.clocks else ())
    except (TraceError, ProfileFileError, ValueError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"Cannot read {error.filename}: {error.strerror or error}.") from error
    write_file(profile, arguments.output, force=arguments.force)
    events, nodes = profile.tables.rows("events"), len(profile.tree)
    ranks = len({process.rank for process in profile.processes if process.rank >= 0}) or len(profile.processes)
    known = any(process.rank >= 0 for process in profile.processes)
    one, several = ("rank", "ranks") if known else ("process", "processes of unknown rank")
    what = one if ranks == 1 else several
    print(f"Wrote {arguments.output}: {events} events on {nodes} call paths, {ranks} {what}.")
    print(f"See it with: leadline report {shlex.quote(str(arguments.output))}")
    return 0
