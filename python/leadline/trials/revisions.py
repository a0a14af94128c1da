"""Revisions of a repository, each in a worktree of its own that goes when the comparison has ended.

Nothing of the user's changes: not the checkout, not the index, no branch; uncommitted changes are in no revision.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from leadline.trials.model import TrialError


@contextmanager
def worktrees(revisions: Sequence[str], here: Path) -> Iterator[list[Path]]:
    """The directory in each revision that corresponds to `here`. Raises TrialError."""
    root = Path(_git(here, "rev-parse", "--show-toplevel", otherwise=f"{here} is in no git repository"))
    inside = here.resolve().relative_to(root.resolve())
    commits = [
        _git(here, "rev-parse", "--verify", "--quiet", f"{one}^{{commit}}", otherwise=f"There is no revision {one!r}")
        for one in revisions
    ]
    base = Path(tempfile.mkdtemp(prefix="leadline-revisions-"))
    made: list[Path] = []
    try:
        for number, (name, commit) in enumerate(zip(revisions, commits, strict=True)):
            folder = base / f"{number}-{commit[:12]}"
            _git(
                root,
                "worktree",
                "add",
                "--detach",
                "--quiet",
                str(folder),
                commit,
                otherwise=f"Cannot check out {name}",
            )
            made.append(folder)
            if not (folder / inside).is_dir():
                raise TrialError(f"The revision {name} has no directory {inside}.")
        yield [folder / inside for folder in made]
    finally:
        for folder in made:
            subprocess.run(
                ["git", "-C", str(root), "worktree", "remove", "--force", str(folder)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        if base.is_dir() and not any(base.iterdir()):
            base.rmdir()


def _git(folder: Path, *words: str, otherwise: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise TrialError("git is not installed, so revisions cannot be compared.") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise TrialError(f"{otherwise}{': ' + said[-1] if said else ''}.")
    return done.stdout.strip()
