"""Reading paths of a profile: what stands above a node, and expectations taken at the call itself."""

from __future__ import annotations

import traceback
from pathlib import Path

HERE = str(Path(__file__).parent)


def names(node, *kinds: str) -> list[str]:
    """Names on the path of a node, root first, of some kinds only."""
    return [step.name for step in node.path() if step.kind in kinds]


def statements(node) -> list[tuple[str, str, int]]:
    """(file, function, line) of the Python frames above a node."""
    return [(step.file, step.name.rpartition(".")[2], step.line) for step in node.path() if step.kind == "python"]


def operator(profile, name: str):
    """The one node of an operator; fails when there are none or several."""
    found = [
        node
        for node in profile.tree.find(kind="operator", name=name)
        if node.exclusive("call_time").count and not (node.parent.kind == "operator" and node.parent.name == name)
    ]
    assert len(found) == 1, [str(statements(node)[-1]) for node in found]
    return found[0]


class Expected:
    """Notes the stack that Python itself reports, on the line of the operator that follows."""

    def __init__(self) -> None:
        self.stacks: dict[str, list[tuple[str, str, int]]] = {}

    def __call__(self, operator_name: str) -> None:
        stack = traceback.extract_stack()[:-1]
        self.stacks[operator_name] = [(frame.filename, frame.name, frame.lineno or 0) for frame in stack]


def without(stack: list[tuple[str, str, int]], *endings: str) -> list[tuple[str, str, int]]:
    """A stack without the frames of files with these endings."""
    return [frame for frame in stack if not frame[0].endswith(endings)]
