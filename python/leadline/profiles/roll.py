"""Makes the file between two marks of a session: `python -m leadline.profiles.roll PART MARK`.

A program of its own, as `finish` is: NumPy never comes into the supervisor, and a failure costs one file, whose time
the next one holds. Exit code 0, 2 with one sentence as the last line on stderr, or 3 where nothing was written since.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from leadline.profiles.errors import ProfileFileError
from leadline.profiles.recover import NothingNewError, recover_part
from leadline.profiles.roll_marks import file_of, last_mark
from leadline.profiles.symbols import symbolized
from leadline.profiles.writer import write_profile


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m leadline.profiles.roll", description=__doc__)
    parser.add_argument("part", type=Path, help="the part directory")
    parser.add_argument("mark", type=Path, help="the mark that the file ends at")
    arguments = parser.parse_args(argv)
    try:
        before = last_mark(arguments.part, below=int(arguments.mark.name))
        profile = recover_part(arguments.mark, before).profile
        if profile.meta["asked"].get("native"):
            profile = symbolized(profile).profile  # while the files that ran are surely there
        write_profile(file_of(arguments.mark), profile)
    except NothingNewError:
        return 3
    except ProfileFileError as error:
        print(error, file=sys.stderr)
        return 2
    except (OSError, ValueError) as error:
        print(f"{arguments.mark} cannot be read ({error}).", file=sys.stderr)
        return 2
    except MemoryError:
        print("this machine has too little memory for it", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
