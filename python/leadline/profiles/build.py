r"""A profile drawn as text, for tests: `build(text)` makes it, `draw.draw(profile)` prints one the same way.

One line per node, two spaces per level, the root left out. A line is

    KIND NAME [CLASS] @ FILE:LINE #LABEL | MEASUREMENTS

of which everything after the name is optional: `[CLASS]` is the `module` column, `#LABEL` names the node for events.
Measurements are

    time=5,7          two measurements
    time=12/2         two equal measurements with the sum 12
    gpu_time@0:7=100      on row 0 of devices, stream 7 (devices are made as needed)

and, as facts, columns of the line's own table: `pid=1 rank=0` of a process, `tid=1 wall_ns=9` of a thread,
`first_line=3`, `address=16` or `detail={"a":1}` (no spaces) of any other frame. Without a process or thread line at the
top, `process program` and `thread MainThread` are put there. Lines that say the same frame under the same parent are
one node.

    p = build('''
    process train.py
      thread MainThread
        python main @ train.py:3
          operator aten::linear #linear | time=5,7 call_time=9,9
    ''', events='''
    start_ns duration_ns kind     node     thread
    0        10          operator linear   0
    ''')
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from leadline._dataclass import dataclass, field
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.profile import Profile
from leadline.schema import FrameKind, MetricKind

_LINE = re.compile(
    r"^(?P<kind>[a-z]+) (?P<name>.*?)"
    r"(?: \[(?P<module>[^\[\]]*)\])?"
    r"(?: @ (?P<file>.+?)(?::(?P<line>\d+))?)?"
    r"(?: #(?P<label>\S+))?$"
)
_MEASURE = re.compile(r"^(?P<metric>\w+)(?:@(?P<device>-?\d+)(?::(?P<stream>-?\d+))?)?=(?P<value>.+)$")
_METRICS = {name.lower() for name in MetricKind.__members__}


@dataclass(frozen=True)
class _Measure:
    metric: str
    device: int
    stream: int
    values: tuple[int, ...]


@dataclass(frozen=True)
class _Line:
    depth: int
    kind: str
    name: str
    file: str
    line: int
    module: str
    label: str
    measures: list[_Measure] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)


def build(text: str, *, losses: Iterable[tuple[str, int, str]] = (), events: str = "") -> Profile:
    """The profile drawn in `text`; `losses` are (kind, count, sentence) of the first process, `events` a text table
    whose first row names columns and whose `node` column holds labels. Raises ValueError with the line that cannot be
    read."""
    lines = [_parse(raw) for raw in textwrap.dedent(text).splitlines() if raw.strip()]
    lines = _under_a_thread(lines)
    builder = ProfileBuilder()
    labels: dict[str, int] = {}
    stack: list[int] = [0]
    process = -1
    for line in lines:
        if line.depth + 1 > len(stack):
            raise ValueError(f"The line {line.kind} {line.name!r} is indented by more than one level.")
        del stack[line.depth + 1 :]
        if line.kind == "process":
            process = builder.process(line.name, **_numbers(line))
            node = builder.node_of_process(process)
        elif line.kind == "thread":
            node = builder.node_of_thread(builder.thread(process, line.name, **_numbers(line)))
        else:
            node = builder.child(stack[-1], _frame(builder, line))
        stack.append(node)
        if line.label:
            labels[line.label] = node
        for measure in line.measures:
            _with_devices(builder, max(process, 0), measure.device)
            for value in measure.values:
                builder.add(node, measure.metric, value, measure.device, measure.stream)
    for kind, count, sentence in losses:
        builder.loss(0, kind, count, sentence)
    _add_events(builder, labels, events)
    return builder.profile()


def _parse(raw: str) -> _Line:
    indent = len(raw) - len(raw.lstrip(" "))
    head, bar, tail = raw.strip().rpartition(" | ")
    head, tail = (head, tail) if bar else (tail, "")
    found = _LINE.match(head.strip())
    if indent % 2 or not found or found["kind"].upper() not in FrameKind.__members__:
        raise ValueError(
            f"This line is not 'KIND NAME [CLASS] @ FILE:LINE #LABEL | MEASUREMENTS' at an even indent: {raw!r}."
        )
    part = {key: value or "" for key, value in found.groupdict().items()}
    line = _Line(
        indent // 2, part["kind"], part["name"], part["file"], int(part["line"] or 0), part["module"], part["label"]
    )
    for word in tail.split():
        one = _MEASURE.match(word)
        if not one:
            raise ValueError(f"{word!r} is not METRIC=VALUES or COLUMN=NUMBER in the line {raw!r}.")
        if one["metric"] in _METRICS:
            line.measures.append(
                _Measure(one["metric"], int(one["device"] or -1), int(one["stream"] or -1), _values(one["value"], raw))
            )
        else:
            line.facts[one["metric"]] = one["value"]
    return line


def _values(text: str, raw: str) -> tuple[int, ...]:
    total, slash, count = text.partition("/")
    if not slash:
        return tuple(int(value) for value in text.split(","))
    each, rest = divmod(int(total), int(count))
    if rest:
        raise ValueError(f"{text} is not a number of equal measurements in the line {raw!r}.")
    return (each,) * int(count)


def _under_a_thread(lines: list[_Line]) -> list[_Line]:
    if not lines or lines[0].kind == "process":
        return lines
    above = [_Line(0, "process", "program", "", 0, "", "")]
    if lines[0].kind != "thread":
        above.append(_Line(1, "thread", "MainThread", "", 0, "", ""))
    return above + [_Line(**{**vars(line), "depth": line.depth + len(above)}) for line in lines]


def _numbers(line: _Line) -> dict[str, int]:
    return {name: int(value) for name, value in line.facts.items()}


def _frame(builder: ProfileBuilder, line: _Line) -> int:
    if unknown := set(line.facts) - {"first_line", "address", "detail"}:
        raise ValueError(
            f"{', '.join(sorted(unknown))} is neither a metric nor a column that {line.kind} {line.name!r} can have."
        )
    return builder.frame(
        line.kind,
        line.name,
        file=line.file,
        line=line.line,
        first_line=int(line.facts.get("first_line", 0)),
        module=line.module,
        address=int(line.facts.get("address", 0)),
        detail=line.facts.get("detail", ""),
    )


def _with_devices(builder: ProfileBuilder, process: int, device: int) -> None:
    while builder.devices() <= device:
        builder.device(process, builder.devices(), f"GPU {builder.devices()}")


def _add_events(builder: ProfileBuilder, labels: dict[str, int], text: str) -> None:
    rows = [line.split() for line in text.splitlines() if line.strip()]
    for row in rows[1:]:
        cells = dict(zip(rows[0], row, strict=True))
        kind, label = cells.pop("kind"), cells.pop("node")
        if label not in labels:
            raise ValueError(f"An event names the node #{label}, which no line of the tree has.")
        facts = {name: int(value) for name, value in cells.items()}
        _with_devices(builder, 0, facts.get("device", -1))
        builder.event(kind, labels[label], facts.pop("start_ns"), facts.pop("duration_ns"), **facts)
