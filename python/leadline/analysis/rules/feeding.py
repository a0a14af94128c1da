"""Part of `interpreter_lock`: which line of the program hands its work to a thread that a library runs."""

from __future__ import annotations

import re

import numpy as np

from leadline.analysis.case import Case
from leadline.analysis.columns import Mask
from leadline.analysis.origin import Origin, origin, package_path
from leadline.analysis.rules.place.at import cost_of
from leadline.analysis.scopes import in_called
from leadline.schema import FrameKind


def library_of(case: Case, row: int) -> str:
    """`tensorboard`: the package whose code a node's line is; empty for the program's own code."""
    node = case.tree.node(row)
    if origin(node.file) == Origin.USER:
        return ""
    return package_path(node.file).partition("/")[0].removesuffix(".py") or "a library"


def fed_at(case: Case, row: int, mine: Mask) -> int:
    """The node of the program's line, of those in `mine`, that calls most of the file that runs the thread of `row`,
    else of its folder: a library keeps both ends of its queue together. -1 where none does."""
    tree, user = case.tree, case.analysis.scopes.user
    files = [
        tree.node(at).file
        for at in tree.path_rows(row)
        if tree.kinds[at] == int(FrameKind.PYTHON) and origin(tree.node(at).file) != Origin.RUNTIME
    ]
    if not files:
        return -1
    cost = cost_of(case)
    for path in (files[0], files[0].rpartition("/")[0] + "/"):
        feeds = mine & (user >= 0) & in_called(tree, case.analysis.scopes, f"^{re.escape(path)}")
        found = [group.row for group in case.by_line(feeds, cost) if not library_of(case, int(user[group.row]))]
        if found:  # of several the line that takes most itself, which is also the one that other rules name
            lines = {int(case.user_line[row]): row for row in reversed(found)}
            whole = np.where(mine & np.isin(case.user_line, list(lines)), cost, 0)
            return int(user[lines[int(case.user_line[case.by_line(whole > 0, whole)[0].row])]])
    return -1
