"""Collapsed stacks: one line per call path, `frame;frame;frame VALUE`, as flamegraph.pl and its relatives read them.

A line has no escapes, so what separates becomes something else: `;` in a name becomes `,`, white space `_`, and
control characters their escapes. Paths that then read the same are added up.
"""

from __future__ import annotations

from leadline.convert.request import Request
from leadline.convert.sinks import Sink
from leadline.convert.stacks import Weights, check_size_of_paths, chosen_metrics, frame_texts, main_metric
from leadline.profiles import Profile

_LARGEST_TEXT = 1 << 29
"""Characters. A tree of a million nodes, 30 levels deep, stays below; the file is made in memory."""
_SEPARATORS = str.maketrans({";": ",", " ": "_"})


def export(profile: Profile, request: Request, sink: Sink) -> None:
    """See `ExporterModule.export`; without `metric` device time where there is some, else time."""
    tree = profile.tree
    info = main_metric(chosen_metrics(tree, request.metric))
    if info is None:
        return
    labels = [_label(text.label, text.file, text.line) for text in frame_texts(tree)]
    parent, frame_of = tree.parent.tolist(), tree.frame_of.tolist()
    own = Weights(tree, info).own
    check_size_of_paths(tree, (value > 0 for value in own), [len(label) + 1 for label in labels], _LARGEST_TEXT)
    sums: dict[str, int] = {}
    for row, value in enumerate(own):
        if value > 0:
            path = []
            at = row
            while at > 0:
                path.append(labels[frame_of[at]])
                at = parent[at]
            line = ";".join(reversed(path)) or labels[frame_of[0]]
            sums[line] = sums.get(line, 0) + value
    sink.write("".join(f"{line} {value}\n" for line, value in sums.items()).encode())


def _label(label: str, file: str, line: int) -> str:
    where = f"{file.rsplit('/', 1)[-1]}:{line}" if file and line else ""
    text = f"{label} ({where})" if where else label
    return _one_word(text)


def _one_word(text: str) -> str:
    words = text.translate(_SEPARATORS)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)
