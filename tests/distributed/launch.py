"""Commands that start ranks."""

import sys
from pathlib import Path


def torchrun(ranks: int, *words: object) -> list[str]:
    return [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(ranks),
        *map(str, words),
    ]


def forked(ranks: int, *words: object, module: str = "torch") -> list[str]:
    """The same job where what starts it is not the point: one import of torch in place of one for each process."""
    return [sys.executable, str(Path(__file__).with_name("forked_ranks.py")), str(ranks), module, *map(str, words)]
