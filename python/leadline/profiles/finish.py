"""Makes the one file of a run with several processes: `python -m leadline.profiles.finish PART OUTPUT [RUNNING...]`.

A program of its own, so that NumPy is never loaded into the profiled process and a failure costs the file only. Exit
code 0, 2 with one sentence as the last line on stderr, or 3 where the files that the session has rolled hold all of it.
The part directory is left to the caller.
"""

from __future__ import annotations

import argparse
import sys

from leadline.profiles.errors import ProfileFileError
from leadline.profiles.recover import NothingNewError, write_recovered


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m leadline.profiles.finish", description=__doc__)
    parser.add_argument("part", help="the part directory")
    parser.add_argument("output", help="the file to make or replace")
    parser.add_argument("running", nargs="*", help="stems of the processes that still run")
    arguments = parser.parse_args(argv)
    try:
        write_recovered(arguments.part, arguments.output, arguments.running)
    except NothingNewError:
        return 3
    except ProfileFileError as error:
        print(error, file=sys.stderr)
        return 2
    except MemoryError:
        print(f"{arguments.part} could not be merged: this machine has too little memory for it.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
