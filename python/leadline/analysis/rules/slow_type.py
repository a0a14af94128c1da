"""`slow_type`: operators on the CPU compute in a type for which this processor, or the library, has no fast path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from leadline.analysis.calls_in_source import lines_that_call
from leadline.analysis.columns import distinct
from leadline.analysis.findings import Line
from leadline.analysis.measurable import NO_FIX, PROVE
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.habits import habits, model_is_double
from leadline.analysis.rules.promoted import promoted
from leadline.profiles.tree import json_object
from leadline.schema import FrameKind
from leadline.units import duration, percent
from leadline.work.operators import class_of_operator

_FALLBACKS = (
    "aten::_slow_conv2d_forward",
    "aten::_slow_conv2d_backward",
    "aten::slow_conv3d_forward",
    "aten::slow_conv_dilated2d",
)
"""What a convolution runs where oneDNN does not take it: 4 to 20 times slower for a half, as many for a double."""
_HALF = {"c10::Half": "float16", "c10::BFloat16": "bfloat16", "double": "float64"}
_PRODUCTS = ("convolution", "matrix product", "recurrent", "attention")
_PLAIN = {"float16": "float16", "bfloat16": "bfloat16", "float64": "float64"}


class SlowType(Rule):
    name = "slow_type"
    asks = "Do operators on the CPU compute in a type without a fast path?"
    options = (Option("share", 15, "%", "of the step in such operators; less is not worth another type"),)

    def check(self, case: Case, values: Values) -> list[Finding]:
        if case.has_device:
            raise CannotTell("the work is on a device")
        made = []
        for name, rows in self._rows(case).items():
            if name == "float64" and model_is_double(case):
                continue  # `matmul_shape` says so, with the line that makes it
            ns = int(case.time[rows].sum())
            share = case.share(ns)
            if share < values["share"]:
                continue
            order = rows[np.argsort(-case.time[rows], kind="stable")]
            what = case.name(int(order[0]))
            fallback = what in _FALLBACKS
            emulated = name == "bfloat16"
            high = 0.95 if emulated else 0.9 if fallback or name == "float16" else 0.5
            asked = lines_that_call(case, ("autocast",), most=1) if name != "float64" else []
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING if name != "float64" or fallback else Severity.INFO,
                    f"{percent(share)} of the step is {what} in {name}, for which this processor has no fast path",
                    case.gain(ns, (0.2 * high, 0.8 * high, high), "bound: what float32 saves, by class of operator"),
                    tuple(order[:20].tolist()),
                    (*asked, *case.lines(order.tolist(), 2)),
                    (
                        f"{duration(case.per_step(ns))} a step",
                        "this processor has no instructions for bfloat16: products are computed in float32, with "
                        "conversions around them"
                        if emulated
                        else f"the type is the reason: PyTorch's CPU library has no {name} convolution or product here"
                        if name != "float64"
                        else "a double takes twice the memory and half the vector width",
                    ),
                    f"Compute in float32 on this processor: leave out {_asks(name, asked)}."
                    if emulated
                    else f"Compute in float32: leave out {_asks(name, asked)}; measure bfloat16 before using it."
                    if name != "float64"
                    else "Compute in float32 where its precision will do: model.float(), and inputs of float32.",
                    self.learn_more,
                    share,
                    # autocast does not change float64, and is the cause of slow bfloat16
                    fix=NO_FIX if emulated or name == "float64" else "",
                    measured_by=PROVE if emulated else "",
                )
            )
        made += promoted(case, self.name, self.learn_more, values["share"])
        return sorted(made, key=lambda one: -one.weight)[:1]

    def _rows(self, case: Case) -> dict[str, np.ndarray]:
        """Nodes by the type in which they compute: from the types of inputs where they were kept, else convolutions
        that fell back, with the type of the program's modules."""
        tree = case.tree
        operators = (tree.kinds == int(FrameKind.OPERATOR)) & (case.time > 0)
        frames: dict[str, list[int]] = {}
        for frame in distinct(tree.frame_of[operators].astype(np.int64))[0].tolist():
            types = json_object(tree.text("detail", frame)).get("types")
            name = (
                next((_HALF[one] for one in types if isinstance(one, str) and one in _HALF), "")
                if isinstance(types, list)
                else ""
            )
            if name and class_of_operator(tree.text("name", frame)) in _PRODUCTS:
                frames.setdefault(name, []).append(frame)
        rows_of = {name: np.flatnonzero(operators & np.isin(tree.frame_of, some)) for name, some in frames.items()}
        found = dict(sorted(rows_of.items(), key=lambda one: int(one[1][0])))
        if not found and (name := self._modules_type(case)):
            products = ("aten::addmm", "aten::mm", "aten::bmm") if name == "float16" else ()
            rows = [np.flatnonzero(case.operators(*names) & (case.time > 0)) for names in (_FALLBACKS, products)]
            if any(map(len, rows)):
                found[name] = np.concatenate(rows)
        # products of bfloat16 are fast where the processor has them
        host = case.profile.meta.get("host")
        if not isinstance(host, dict) or "bfloat16" in host.get("products", ["bfloat16"]):
            found.pop("bfloat16", None)
        return found

    def _modules_type(self, case: Case) -> str:
        """What most parameters of the program's modules are of, where that is a type of half or double width."""
        counts: Counter[str] = Counter()
        for told in habits(case, "types"):
            counts.update({str(name): int(number) for name, number in told.items() if isinstance(number, int)})
        name = counts.most_common(1)[0][0] if counts else ""
        return _PLAIN.get(name, "")


def _asks(name: str, autocast: Sequence[Line]) -> str:
    """What of the program asks for the type."""
    if autocast:
        return "torch.autocast"
    return f".{'half' if name == 'float16' else name}() (or convert back with model.float())"
