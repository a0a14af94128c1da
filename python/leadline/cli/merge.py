"""`leadline merge`: the files of a job's ranks as one, with statistics over ranks."""

from __future__ import annotations

import argparse
import glob
import shlex
import sys
from pathlib import Path

from leadline.cli.errors import CommandError
from leadline.cli.files import add_output, open_profile, write_file

_MOST_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="profiles of ranks, a folder of them, a pattern in quotes, or files that were merged before",
    )
    add_output(parser, "the file to write", required=True)
    parser.add_argument(
        "--by",
        choices=("role", "node", "rank"),
        default="role",
        help="what to keep apart: pipeline stages and experts (role, the default), machines, or every rank",
    )
    parser.add_argument(
        "--scheduler",
        default="",
        metavar="WHERE",
        help="merge in processes:N of this machine, on dask:N, or on a Dask scheduler tls://HOST:PORT",
    )
    parser.add_argument("--trust-scheduler", action="store_true", help="allow tcp:// to another machine")
    parser.add_argument(
        "--all-paths",
        action="store_true",
        help="keep small paths of few ranks apart (in jobs of 64 ranks and more)",
    )
    parser.add_argument("--job", metavar="NAME", help="merge this job, if the files are of several")


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0 when a file was made, also where files were left out: each is named."""
    from leadline.analysis.ranks import ranges
    from leadline.analysis.stragglers import late_ranks
    from leadline.distributed.engines import SchedulerError, engine_for
    from leadline.distributed.merge import merge_files
    from leadline.profiles import ProfileFileError
    from leadline.profiles.archive import printable

    _check_not_a_rank(arguments.output, arguments.files)
    try:
        engine = engine_for(arguments.scheduler, trusted=arguments.trust_scheduler)
        merged = merge_files(
            arguments.files,
            by=arguments.by,
            job=arguments.job,
            output=arguments.output,
            engine=engine,
            all_paths=arguments.all_paths,
            late=late_ranks,
        )
    except (ProfileFileError, SchedulerError) as error:
        raise CommandError(str(error)) from error
    except (LookupError, StopIteration, ArithmeticError, TypeError, ValueError) as error:
        # each file is whole by itself; what they say of their ranks, processes and frames makes no sense together
        said = error.args[0] if error.args and isinstance(error.args[0], str) else ""
        what = printable(f"{type(error).__name__}: {said}" if said else type(error).__name__, 100)
        raise CommandError(
            f"The files cannot be merged: their processes, threads or frames contradict each other "
            f"({what}); merge them one by one to find the wrong one, and leave it out."
        ) from error
    write_file(merged.profile, arguments.output, force=arguments.force)
    for sentences, what in ((merged.left_out, "left out"), (merged.passed_over, "passed over")):
        for sentence in sentences[:_MOST_SHOWN]:
            print(f"leadline: {what}: {sentence}", file=sys.stderr)
        if len(sentences) > _MOST_SHOWN:
            print(f"leadline: {what}: {len(sentences) - _MOST_SHOWN} more files.", file=sys.stderr)
    world = merged.plan.world_size
    ranks = f"{merged.ranks} of {world} ranks" if world > merged.ranks else _counted(merged.ranks, "rank")
    gap = f"; missing: {ranges(merged.missing)}" if merged.missing else ""
    print(f"Wrote {arguments.output}: {ranks}{gap}.")
    print(f"See it with: leadline report {shlex.quote(str(arguments.output))}")
    return 0


def _check_not_a_rank(output: str, asked: list[str]) -> None:
    """A file that a folder or a pattern names is passed over where it is to be made again, unless it is a rank's."""
    from leadline._output import is_package, is_same
    from leadline.analysis.ranks import is_folded_profile

    made = Path(output)
    if not made.is_file() or not is_package(made):
        return
    here, place = made.stat(), made.resolve()
    for one in asked:
        names = [output] if Path(one).resolve() in place.parents else glob.glob(one, recursive=True)  # noqa: PTH207
        if any(is_same(here, name) for name in names) and not is_folded_profile(open_profile(output)):
            raise CommandError(f"Will not write {output}: it is one of the files that are read; choose another file.")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
