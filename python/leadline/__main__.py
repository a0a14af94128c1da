"""`python -m leadline SUBCOMMAND ...` is leadline SUBCOMMAND."""

from __future__ import annotations

import sys

from leadline.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
