"""The source of one file with what its lines cost; and why there is none where there is none."""

from __future__ import annotations

from rich.text import Text
from textual.message import Message

from leadline.analysis import Analysis
from leadline.analysis.case import case_of
from leadline.report.source import visible
from leadline.schema import MetricKind, metric_info
from leadline.terminal.lines import Lines
from leadline.terminal.places import LineCost, line_costs
from leadline.units import in_unit

_NARROW = 60
_HEAT = ((0.5, "bold red"), (0.1, "yellow"), (0.0, "dim"))  # from this share of the file's most expensive line on


class SourceView(Lines):
    """One file of the profile at a time."""

    class Entered(Message):
        """A line was chosen whose cost stands at `node` of the tree."""

        def __init__(self, node: int) -> None:
            super().__init__()
            self.node = node

    def __init__(self, analysis: Analysis, *, id: str) -> None:
        super().__init__(id=id)
        self.file = ""
        self.note = "Choose a frame with a line, then press s."
        self._analysis = analysis
        self._sources = case_of(analysis.profile).sources
        self._texts: list[tuple[int, str]] = []
        self._costs: dict[int, LineCost] = {}
        self._unit = "1"
        self._most = 1

    def show(self, file: str, line: int, metric: str) -> None:
        """Stands on a line of a file; `metric` is what the columns show."""
        self.file = file
        source = self._sources.of(file)
        self._costs = dict(line_costs(self._analysis, file, metric))
        self._unit = metric_info(MetricKind.of(metric)).unit
        self._most = max((cost.total for cost in self._costs.values()), default=1) or 1
        if source is not None:
            self._texts = list(enumerate(source.lines, 1))
            self.note = ""
        else:
            changed = file in self._sources.changed
            why = "has changed since it ran" if changed else "cannot be read here"
            self.note = f"The file {why}, so only the lines that were measured are listed."
            self._texts = [(number, "") for number in sorted(self._costs)]
        self.arranged()
        self.move_to(next((i for i, (number, _) in enumerate(self._texts) if number >= line), 0))

    def count(self) -> int:
        return len(self._texts)

    def entered(self) -> None:
        cost = self._costs.get(self._texts[self.cursor][0])
        if cost is not None:
            self.post_message(self.Entered(cost.node))

    def line(self, place: int, width: int) -> Text:
        number, text = self._texts[place]
        cost = self._costs.get(number)
        line = Text(no_wrap=True, end="")
        heat = "dim"
        if cost is not None:
            heat = next(style for least, style in _HEAT if cost.total >= least * self._most)
        if width >= _NARROW:
            line.append(f"{in_unit(cost.booked, self._unit) if cost and cost.booked else '':>10} ", heat)
        line.append(f"{in_unit(cost.total, self._unit) if cost else '':>10} ", heat)
        line.append(f"{number:>5} ", "dim")
        line.append(visible(text.expandtabs(4)))
        return line
