"""Items that are taken out of the midst of a deque, which is a chain of blocks: to reach one, it is walked through."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leadline.analysis.calls_in_source import name_of, text_of
from leadline.analysis.rules.place.at import At, own_nodes
from leadline.analysis.rules.place.fact import Fact

_DRAWS = frozenset(("sample", "choice", "choices"))
_INSTEAD = (
    "Keep the items in a list, or in arrays whose oldest row the next one replaces (index = count % size), and draw "
    "integers: a deque has to be walked through to reach an item in its midst."
)


def deques(at: At) -> Iterator[Fact]:
    """`random.sample(self.memory, 32)`, `self.memory[i]`, where that is `deque(...)`; nothing where the source cannot
    be read, or the time is an operator's."""
    tree = at.source.tree if at.source is not None else None
    if tree is None or at.statement is None or at.operator:
        return
    made = {
        ast.unparse(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Call)
        and name_of(node.value.func) == "deque"
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }
    for node in own_nodes(at.statement):
        drawn = node.args[0] if isinstance(node, ast.Call) and node.args and name_of(node.func) in _DRAWS else None
        taken = node.value if isinstance(node, ast.Subscript) and not _is_an_end(node.slice) else None
        for one in (drawn, taken):
            if one is not None and ast.unparse(one) in made:
                text = f"takes items out of the midst of {text_of(one)}, a deque, which is walked through for each"
                yield Fact("does", text, 0.8, _INSTEAD)
                return


def _is_an_end(index: ast.expr) -> bool:
    """`queue[0]` and `queue[-1]` are at hand."""
    try:
        return ast.literal_eval(index) in (0, -1)
    except ValueError:
        return False
