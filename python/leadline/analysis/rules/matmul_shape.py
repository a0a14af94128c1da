"""`matmul_shape`: matrix products of sizes or types that the hardware is slow with."""

from __future__ import annotations

import math
import re

import numpy as np

from leadline.analysis.calls_in_source import lines_that_call, unique_lines
from leadline.analysis.findings import NO_SHAPES
from leadline.analysis.rules.base import CannotTell, Case, Finding, Line, Option, Rule, Severity, Values
from leadline.analysis.rules.habits import habits
from leadline.analysis.rules.hot_kernels import hot_kernels
from leadline.analysis.rules.words import kernel
from leadline.hardware.mfma import Mfma, architecture_of, best, of_kernel
from leadline.hardware.precision import FULL_PRECISION_PRODUCT, HAS_MFMA, WITHOUT_MFMA
from leadline.profiles.makers import is_amd
from leadline.schema import FrameKind
from leadline.units import abbreviated, percent

_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::linear")

_CAPABILITY = re.compile(r"\d+\.\d+")
_REMEDIES = {
    "new": "torch.set_float32_matmul_precision('high') where the result may differ in the third digit, or "
    "torch.autocast with bfloat16.",
    "old": "torch.autocast with float16 and a GradScaler: these tensor cores know no TF32 and no bfloat16, which "
    "need compute capability 8.0.",
    "unknown": "On compute capability 8.0 and later, torch.set_float32_matmul_precision('high') where the result may "
    "differ in the third digit, or torch.autocast with bfloat16; on 7.0 and 7.5 torch.autocast with float16.",
    "amd": "torch.autocast with bfloat16: matrix units (MFMA, from MI100 on) multiply 16-bit numbers several times as "
    "fast as 32-bit ones.",
}
"""By what the device can."""


def _generation(case: Case) -> str:
    """Key of _REMEDIES; "none" for a device without tensor cores."""
    if is_amd(case.profile.devices):
        return "amd"
    said = [str(one.detail.get("compute_capability", "")) for one in case.profile.devices]
    numbers = [tuple(int(part) for part in text.split(".")[:2]) for text in said if _CAPABILITY.fullmatch(text)]
    if not numbers:
        return "unknown"
    return "new" if min(numbers) >= (8, 0) else "old" if min(numbers) >= (7, 0) else "none"


class MatmulShape(Rule):
    name = "matmul_shape"
    asks = "Do matrix products have sizes or types that tensor cores cannot use, or double precision?"
    options = (
        Option("share", 10, "%", "of the device time in such products"),
        Option("fp32", 20, "%", "of the device time in 32-bit products; less gains less than a tenth"),
        Option("least", 64, "1", "other limits apply to smaller sizes"),
        Option("multiple", 8, "1", "what tensor cores need of 16-bit operands"),
        Option("double", 50, "%", "of the parameters; a few of them may be sums that need the precision"),
        Option("rows", 8, "1", "with fewer rows, reading the weights takes longer than multiplying"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        found = self._double(case, values)
        if found and not case.has_device:
            return found
        case.need_device()
        for one in (self._precision, self._without_mfma, self._slow_mfma):
            found += one(case, values)
        try:
            return found + self._shapes(case, values)
        except CannotTell:
            if not found:
                raise
            return found  # that much could be told

    def _double(self, case: Case, values: Values) -> list[Finding]:
        """Models whose parameters are of double precision, as NumPy's numbers are unless told otherwise."""
        told = max(habits(case, "updated"), key=lambda one: int(one.get("double", 0)), default={})
        of = max(int(told.get("parameters", 0)), 1)
        products = case.first_of(case.operators(*_PRODUCTS, "aten::convolution") & ~case.in_phase("optimizer"))
        ns = int(case.cost_with_all_below[products].sum())
        share = ns / max(case.cost_of_all, 1)
        if int(told.get("double", 0)) < values["double"] * of or share < values["fp32"]:
            return []
        rows = np.flatnonzero(products)
        rows = rows[np.argsort(-case.cost_with_all_below[rows], kind="stable")]
        gains = (0.5, 0.9, 1.0) if case.has_device else (0.2, 0.5, 0.7)
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"The model is of double precision: its products take {percent(share)} of {case.cost_name}",
                case.gain(ns, gains, "estimate: twice the bytes and half the lanes; GPUs also have fewer units"),
                tuple(rows[:20].tolist()),
                unique_lines([*_made_double(case), *case.lines(rows.tolist())]),
                (f"{percent(int(told['double']) / of)} of the {abbreviated(of)} updated parameters are float64",),
                "Unless the precision is needed, make the data float32 where it is read (NumPy's numbers are float64 "
                "by default: array.astype(np.float32)), and leave out model.double().",
                self.learn_more,
                share,
            )
        ]

    def _precision(self, case: Case, values: Values) -> list[Finding]:
        """Kernels that multiply 32-bit numbers without tensor cores."""
        plain = case.matching(FrameKind.KERNEL, FULL_PRECISION_PRODUCT) & case.loop.inside
        generation = _generation(case)
        if generation == "none":
            return []
        made = []
        for group in case.by_line(plain, case.gpu_time):
            share = group.value / max(case.cost_of_all, 1)
            if share < values["fp32"]:
                break
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"Matrix products in full 32-bit precision take {percent(share)} of the device time",
                    case.gain(
                        group.value, (0, 0.4, 0.9), "estimate: lower precision where the device has matrix units for it"
                    ),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (kernel(case.name(group.row)),),
                    _REMEDIES[generation],
                    self.learn_more,
                    share,
                )
            )
        return made[:1]

    def _without_mfma(self, case: Case, values: Values) -> list[Finding]:
        """Kernels of AMD's libraries that leave the matrix units alone, as where no tuned one fits size or type."""
        if not any(HAS_MFMA.search(f"{one.name} {one.detail.get('architecture', '')}") for one in case.profile.devices):
            return []
        plain = case.matching(FrameKind.KERNEL, WITHOUT_MFMA) & case.loop.inside
        made = []
        for group in case.by_line(plain, case.gpu_time):
            share = group.value / max(case.cost_of_all, 1)
            if share < values["share"]:
                break
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"Matrix products that do not use the device's matrix units (MFMA) take {percent(share)} of the "
                    "device time",
                    case.gain(group.value, (0, 0.5, 0.9), "estimate: a kernel that uses them"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (kernel(case.name(group.row)),),
                    "Use bfloat16 or float16 and sizes that are multiples of 16, or let torch try other kernels "
                    "(PYTORCH_TUNABLEOP_ENABLED=1; TORCH_BLAS_PREFER_HIPBLASLT=1).",
                    self.learn_more,
                    share,
                )
            )
        return made[:1]

    def _slow_mfma(self, case: Case, values: Values) -> list[Finding]:
        """Kernels of Tensile and MIOpen whose matrix instruction does less per cycle than another one of the device."""
        chips = {architecture_of(one.name, str(one.detail.get("architecture", ""))) for one in case.profile.devices}
        if len(chips) != 1 or not (chip := chips.pop()):
            return []
        tensile = np.flatnonzero(case.matching(FrameKind.KERNEL, "^Cijk_|^igemm_") & case.loop.inside)
        lost = np.zeros(len(case.tree))
        used: dict[int, tuple[Mfma, Mfma]] = {}
        for row in tensile.tolist():
            one = of_kernel(chip, case.name(row))
            fastest = best(chip, one.precision) if one is not None else None
            if one is not None and fastest is not None and one.flops_per_cycle < fastest.flops_per_cycle:
                lost[row] = 1 - one.flops_per_cycle / fastest.flops_per_cycle
                used[row] = one, fastest
        made = []
        for hot in hot_kernels(case, lost > 0, lost, values["share"]):
            one, fastest = used[hot.row]
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"Matrix products take {percent(hot.share)} of the device time with an instruction that reaches "
                    f"{percent(1 - lost[hot.row])} of the matrix units' rate",
                    case.gain(hot.unused_ns, (0, 0.5, 1), "bound: the same with the fastest instruction for the type"),
                    tuple(hot.group.rows[:20].tolist()),
                    case.lines([hot.group.row]),
                    (
                        kernel(case.name(hot.row)),
                        f"MFMA {one} in {one.precision}: {one.flops_per_cycle:,.0f} operations a cycle and compute "
                        f"unit; {fastest}: {fastest.flops_per_cycle:,.0f}",
                    ),
                    "Let the library choose another kernel: sizes of at least 16 rows and columns and whole multiples "
                    "of 32, PYTORCH_TUNABLEOP_ENABLED=1, TORCH_BLAS_PREFER_HIPBLASLT=1, or a ROCm that was tuned for "
                    "this device.",
                    self.learn_more,
                    hot.share * hot.unused,
                )
            )
        return made[:1]

    def _shapes(self, case: Case, values: Values) -> list[Finding]:
        products = case.first_of(case.operators(*_PRODUCTS))
        rows = np.flatnonzero(products & (case.cost_with_all_below > 0))
        rows = rows[np.argsort(-case.cost_with_all_below[rows], kind="stable")][:200]
        shapes = {row: case.tree.node(row).detail.get("shapes") for row in rows.tolist()}
        if not any(shapes.values()):
            if case.matching(FrameKind.KERNEL, f"{FULL_PRECISION_PRODUCT}|{WITHOUT_MFMA}").any():
                return []  # that much could be told
            raise CannotTell(NO_SHAPES)
        made = self._few_rows(case, shapes, values)
        for row, dims in shapes.items():
            odd = _odd(dims, int(values["least"]), max(1, int(values["multiple"])))
            ns = int(case.cost_with_all_below[row])
            share = ns / max(case.cost_of_all, 1)
            if not odd or share < values["share"]:
                continue
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"{case.name(row)} works on sizes {', '.join(map(str, odd))}, {percent(share)} of {case.cost_name}",
                    case.gain(ns, (0, 0.2, 0.6), "estimate: padded to a multiple of eight"),
                    (row,),
                    case.lines([row]),
                    (f"inputs {dims}",),
                    "Pad these sizes to a multiple of 8 (64 is better): vocabulary, hidden sizes, batch.",
                    self.learn_more,
                    share,
                )
            )
        return made[:2]

    def _few_rows(self, case: Case, shapes: dict[int, object], values: Values) -> list[Finding]:
        """Products of a large matrix with a few rows: those of a tiny batch."""
        few = {row: high for row, dims in shapes.items() if 0 < (high := _rows(dims)) <= values["rows"]}
        ns = sum(int(case.cost_with_all_below[row]) for row in few)
        share = ns / max(case.cost_of_all, 1)
        if not few or share < values["fp32"]:
            return []
        rows = sorted(few, key=lambda row: -int(case.cost_with_all_below[row]))
        return [
            Finding(
                self.name,
                Severity.INFO,
                f"Matrix products of at most {max(few.values())} rows take {percent(share)} of {case.cost_name}",
                case.gain(ns, (0, 0.3, 0.9), "estimate: per sample; a larger batch takes about as long"),
                tuple(rows[:20]),
                case.lines(rows),
                (f"inputs {shapes[rows[0]]}", f"{len(rows)} call paths"),
                "Give it more rows, at almost no cost, because the product waits for its weights to be read: a "
                "larger batch, or several requests at a time. Weights of fewer bits are read faster.",
                self.learn_more,
                share / 2,
            )
        ]


def _made_double(case: Case) -> list[Line]:
    """Where the program asks for double precision."""
    types = ("float64", "double")
    return lines_that_call(case, ("double",)) or lines_that_call(
        case, ("to", "set_default_dtype", "astype", "tensor", "as_tensor"), arguments=types
    )


_LARGE = 512
"""Of both sides of the matrix that few rows are multiplied with; smaller ones stay in caches."""


def _rows(dims: object) -> int:
    """Rows of the first operand where the second is a large matrix (`mm`, `addmm`, `linear`); 0 for anything else."""
    known = [one for one in dims if isinstance(one, list) and len(one) >= 2] if isinstance(dims, list) else []
    if len(known) < 2 or len(known[1]) != 2 or not all(isinstance(size, int) for one in known[:2] for size in one):
        return 0
    return math.prod(known[0][:-1]) if min(known[1]) >= _LARGE else 0


def _odd(dims: object, least: int, multiple: int) -> list[int]:
    """Sizes of at least `least` that are no multiples."""
    found: set[int] = set()
    for one in dims if isinstance(dims, list) else []:
        for size in one if isinstance(one, list) else []:
            if isinstance(size, int) and size >= least and size % multiple:
                found.add(size)
    return sorted(found)
