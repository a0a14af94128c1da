"""`layout_conversion`: tensors change memory format or type back and forth (DeepContext, sections 6.2 and 6.7)."""

from __future__ import annotations

import numpy as np

from leadline._dataclass import replace
from leadline.analysis.columns import at_rows, factorized
from leadline.analysis.measurable import PROVE
from leadline.analysis.rules.base import Case, Finding, Gain, Option, Rule, Severity, Values
from leadline.analysis.rules.words import module
from leadline.schema import FrameKind
from leadline.units import duration, percent, times

_LAYOUT, _TYPE = ("aten::contiguous",), ("aten::to", "aten::_to_copy", "aten::type_as")
_KERAS = r"(^|/)site-packages/keras/"
_KERNELS = r"nchwToNhwc|nhwcToNchw"


def _lines_of_functions(case: Case, user: np.ndarray) -> np.ndarray:
    """Nodes of all lines of the functions that these lines are in, below the same caller."""
    tree = case.tree
    names = tree.frames["name"][tree.frame_of].astype(np.int64)
    files = tree.frames["file"][tree.frame_of].astype(np.int64)
    function = factorized(names, files, tree.shape.parent.astype(np.int64))
    return np.flatnonzero(np.isin(function, function[user]))


class LayoutConversion(Rule):
    name = "layout_conversion"
    asks = "Are tensors converted in memory format, type or device and back again?"
    options = (
        Option("share", 5, "%", "healthy models convert for less than one percent"),
        Option("pair", 2, "1", "conversions there and back, per step and module; a single conversion is needed work"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        tree, scopes = case.tree, case.analysis.scopes
        asked = case.operators(*_LAYOUT, *_TYPE) & case.outer_operators
        asked &= ~case.in_phase("backward") & ~case.in_phase("optimizer")
        asked &= ~case.in_phase("data loading") & ~case.in_phase("compile")
        copies = case.operators("aten::copy_", "aten::_to_copy", "aten::clone")
        works = np.zeros(len(tree), np.bool_)
        works[scopes.outer[np.flatnonzero(copies & (case.calls > 0) & (scopes.outer >= 0))]] = True
        names = tree.frames["name"][tree.frame_of].astype(np.int64)
        files = tree.frames["file"][tree.frame_of].astype(np.int64)
        function = factorized(at_rows(files, scopes.user), at_rows(names, scopes.user))
        made = self._kernels(case, values)
        for group in case.grouped(asked & works & (scopes.user >= 0), case.cost_with_all_below, function):
            share = group.value / max(case.cost_of_all, 1)
            if share < values["share"]:
                break
            modules = len(np.unique(scopes.module[group.rows]))
            calls = case.per_step(float(case.calls[group.rows].sum()))
            if len(group.rows) < values["pair"] * modules or calls < values["pair"]:
                continue
            made.append(self._finding(case, group.row, group.rows, group.value, share, calls, modules))
        return made[:2]

    def _finding(
        self, case: Case, row: int, rows: np.ndarray, ns: int, share: float, calls: float, modules: int
    ) -> Finding:
        layout = bool(case.operators(*_LAYOUT)[rows].any())
        what = "memory format" if layout else "type"
        remedy = (
            "Convert once, before the loop: model.to(memory_format=torch.channels_last) and the same for the "
            "input; norm "
            "layers keep it."
            if layout
            else "Keep one type through the function: the fused operators (F.layer_norm, F.rms_norm, softmax "
            "with dtype=) "
            "compute in float32 inside, and torch.autocast casts each weight once."
        )
        if layout and case.in_files(_KERAS)[row]:
            remedy = (
                "Keras converts around each layer: keras.config.set_image_data_format('channels_first') before the "
                "model is built, with data of that shape, avoids it on torch."
            )
        inside = case.module(row)
        where = f" in {module(inside)}" if inside else ""
        order = rows[np.argsort(-case.cost_with_all_below[rows], kind="stable")]
        return Finding(
            self.name,
            Severity.WARNING,
            f"Tensors change their {what} {times(calls)} times a step{where}, {percent(share)} of {case.cost_name}",
            self._gain(case, rows, ns, layout),
            tuple(order[:20].tolist()),
            case.lines(order.tolist()),
            (
                f"{duration(case.per_step(ns))} a step",
                f"{len(rows)} conversions in {modules} module{'s' if modules != 1 else ''}",
                *((f"most of it in {by}",) if (by := case.made_by(row)) else ()),
            ),
            remedy,
            self.learn_more,
            share,
            measured_by="" if layout else PROVE,
        )

    def _gain(self, case: Case, rows: np.ndarray, ns: int, layout: bool) -> Gain:
        """A fused operator in the place of conversions to and fro spares also what is computed between them."""
        if layout:
            return case.gain_of(rows, ns, (0.2, 0.8, 1), "bound: the conversions with their backward passes")
        scopes = case.analysis.scopes
        function = np.isin(scopes.user, _lines_of_functions(case, scopes.user[rows]))
        beside = case.called & function
        everything = int(case.cost_with_all_below[case.first_of(beside)].sum())
        told = case.gain_of(np.flatnonzero(beside), everything, (0, 0.6, 1), "")
        mine = case.gain_of(rows, ns, (0.2, 0.8, 1), "")
        basis = (
            "bound: the conversions with their backward passes; at most their whole functions, if one operator "
            "replaced each"
        )
        return replace(told, low_ns=mine.low_ns, expected_ns=max(mine.expected_ns, told.expected_ns), basis=basis)

    def _kernels(self, case: Case, values: Values) -> list[Finding]:
        """Conversions that a library makes inside an operator show as kernels only."""
        if not case.has_device:
            return []
        flips = case.matching(FrameKind.KERNEL, _KERNELS)
        made = []
        for group in case.by_line(flips, case.gpu_time):
            share = group.value / max(case.cost_of_all, 1)
            if share < values["share"]:
                break
            calls = case.per_step(float(case.tree.exclusive("gpu_time").count[group.rows].sum()))
            made.append(self._finding_of_kernels(case, group.row, group.rows, group.value, share, calls))
        return made

    def _finding_of_kernels(
        self, case: Case, row: int, rows: np.ndarray, ns: int, share: float, calls: float
    ) -> Finding:
        return Finding(
            self.name,
            Severity.WARNING,
            f"The device turns tensors between NCHW and NHWC, {percent(share)} of its time",
            case.gain(ns, (0.5, 0.9, 1), "bound: the conversion kernels"),
            tuple(rows[:20].tolist()),
            case.lines([row]),
            (f"{times(calls)} kernels a step, {duration(case.per_step(ns))}",),
            "Keep model and input in channels_last: model.to(memory_format=torch.channels_last), norm layers included.",
            self.learn_more,
            share,
        )
