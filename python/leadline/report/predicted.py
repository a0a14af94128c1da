"""A predicted timeline for the page: what `leadline whatif` simulated for one scenario, as lanes to draw below the
measured ones, and which scenarios there are to choose from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from leadline.profiles import Profile
from leadline.report.changes import changes_object
from leadline.report.changes_predicted import predicted_changes, tried_changes
from leadline.report.provenance import meta
from leadline.trace.tables import TraceError
from leadline.units import duration
from leadline.whatif.advice import useful
from leadline.whatif.export.spans import Slices, simulated_slices
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import GraphError, LaneKind, TaskKind
from leadline.whatif.load import graph_of
from leadline.whatif.predict import Prediction, Report, rank
from leadline.whatif.tables import PYTHON

MOST_SLICES = 400_000
"""More are a page's worth of memory several times over, as text."""
_DEVICE = {TaskKind.GPU: "kernel", TaskKind.COMM: "collective", TaskKind.DATA: "copy"}


class Predictor:
    """Predictions of one profile; the graph is built, and all scenarios are ranked, when first asked."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._graph: Graph | None = None
        self._report: Report | None = None
        self._trouble = ""

    def answer(self, name: str) -> dict[str, Any]:
        """The scenarios, and of the one whose title is `name` (empty: the best advice) its lanes; `trouble` is a
        sentence where there is nothing to predict."""
        report = self._ranked()
        if report is None:
            return {"trouble": self._trouble, "scenarios": [], "chosen": None}
        held = [one for one in report.scenarios if one.graph is not None and one.result is not None]
        best = [one for one in useful(report) if one in held]
        chosen = next((one for one in [*best, *held] if not name or one.title == name), None)
        missing = f"There is no prediction called {name}." if name else "Nothing can be predicted."
        return {
            "trouble": missing if chosen is None else "",
            "scenarios": [{"title": one.title, "said": _said(one, report)} for one in held],
            "chosen": None if chosen is None else self._drawn(chosen, report),
        }

    def changes(self, file: str) -> dict[str, Any]:
        """What all changes would do, and what `leadline try` measured of them, as the page `report.changes` is drawn;
        `trouble` where there is neither."""
        program = meta(self._profile, file).program
        tried = self._profile.tried
        report = self._ranked()
        if report is None or self._graph is None:
            found = tried_changes(program, tried) if tried else None
            return {"trouble": self._trouble} if found is None else changes_object(found)
        return changes_object(predicted_changes(self._graph, report, program, file, tried=tried))

    def _ranked(self) -> Report | None:
        if self._report is None and not self._trouble:
            try:
                self._graph = graph_of(self._profile)
                self._report = rank(self._graph)
            except (TraceError, GraphError) as error:
                self._trouble = f"Nothing can be predicted: {error}."
        return self._report

    def _drawn(self, chosen: Prediction, report: Report) -> dict[str, Any]:
        graph, result = chosen.graph, chosen.result
        assert graph is not None and result is not None
        about = {"title": chosen.title, "said": _said(chosen, report), "assumptions": list(chosen.assumptions)}
        found = list(simulated_slices(graph, result))
        if sum(len(one.ids) for one in found) > MOST_SLICES:
            steps = "give fewer steps: leadline whatif FILE --steps A-B --export perfetto -o OUT"
            return {**about, "trouble": f"The predicted timeline is too long for the page; {steps}.", "lanes": []}
        begin = graph.info.facts.get("begin_ns")
        origin = begin if isinstance(begin, int) else int(self._profile.events["start_ns"][0])
        texts: dict[tuple[str, str], int] = {}
        return {
            **about,
            "trouble": "",
            "begin_ns": origin + graph.info.window_ns[0],
            "lanes": [self._lane(graph, one, texts) for one in found],
            "texts": [{"name": name, "kind": kind} for name, kind in texts],
        }

    def _lane(self, graph: Graph, slices: Slices, texts: dict[tuple[str, str], int]) -> dict[str, Any]:
        lane = graph.lanes[slices.lane]
        process, row = self._place(graph, slices.lane)
        return {
            "title": lane.name,
            "process": process,
            "of": row,
            "stream": lane.number if lane.kind == LaneKind.STREAM else -1,
            "start_ns": slices.start_ns.tolist(),
            "end_ns": slices.end_ns.tolist(),
            "text": [texts.setdefault(one, len(texts)) for one in _texts(graph, slices, lane.kind)],
        }

    def _place(self, graph: Graph, number: int) -> tuple[int, int]:
        """Row of the lane's process, and of its thread or device; -1 where it was not measured."""
        lane, profile = graph.lanes[number], self._profile
        ranks = [process.rank for process in profile.processes]
        mine = {row for row, of in enumerate(ranks) if of == lane.rank} or set(range(len(ranks)))
        if lane.kind == LaneKind.THREAD:
            threads = [one for one in profile.threads if one.tid == lane.number]
            found = next((one for one in threads if one.process in mine), threads[0] if threads else None)
            return (found.process, found.row) if found else (min(mine), -1)
        devices = [one for one in profile.devices if one.process in mine and one.index == lane.device]
        if lane.kind == LaneKind.STREAM and devices:
            return devices[0].process, devices[0].row
        return min(mine), -1


def _texts(graph: Graph, slices: Slices, kind: LaneKind) -> Iterator[tuple[str, str]]:
    names = graph.column("name")[slices.ids].astype(np.int64).tolist()
    kinds = graph.column("kind")[slices.ids].tolist()
    for name, of in zip(names, kinds, strict=True):
        text = graph.names[name]
        on_thread = "python" if text == PYTHON else "operator"
        yield text, on_thread if kind == LaneKind.THREAD else _DEVICE.get(TaskKind(of), "kernel")


def _said(prediction: Prediction, report: Report) -> str:
    """`likely 1.30x, 22 ms -> 17 ms a step`."""
    step = f"{duration(report.replayed_ns)} -> {duration(prediction.predicted_ns)} a step"
    return f"{prediction.verdict}, {prediction.speedup:.2f}x, {step}"
