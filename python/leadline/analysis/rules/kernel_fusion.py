"""`kernel_fusion`: small kernels, chains of elementwise operators (DeepContext, analysis 2), attention in parts."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import Rows, at_rows, group_sums
from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.chains import chains
from leadline.analysis.rules.pairs_reduced import pairs_reduced
from leadline.analysis.rules.vendor import device_graph
from leadline.schema import FrameKind
from leadline.units import duration, percent, size, times

_SOFTMAX = ("aten::softmax", "aten::_softmax", "aten::_safe_softmax", "aten::masked_softmax")
_PRODUCTS = ("aten::bmm", "aten::baddbmm")
_OF_ATTENTION = (*_SOFTMAX, *_PRODUCTS, "aten::dropout", "aten::mean", "aten::masked_fill", "aten::masked_fill_")


def _fuse(case: Case) -> str:
    """What to do about many small kernels on one line, in the words of the framework that launched them."""
    available = case.profile.meta.get("available") or {}
    runs = {name: (available.get(name) or {}).get("ok") for name in ("jax", "torch")}
    if runs["jax"] and not runs["torch"]:
        return "Do the line's work in fewer operations, or in your own kernel; XLA has fused what it could."
    return f"Let torch.compile fuse them, or capture the step in a {device_graph(case.profile.devices)}."


class KernelFusion(Rule):
    name = "kernel_fusion"
    asks = "Are there many small kernels, or chains of elementwise operators, that could be one?"
    options = (
        Option("kernel", 10_000, "ns", "launching takes about as long as a kernel of this length runs"),
        Option("kernels", 20, "1", "of one line and step; a few small ones are normal"),
        Option("chain", 5, "1", "elementwise operators in a row; each reads and writes the whole tensor"),
        Option("share", 20, "%", "models that compute GELU from single operators stay below this on the CPU"),
        Option(
            "attention", 20, "%", "in attention of separate operators; the fused operator computes the products, too"
        ),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        found = (
            self._small_kernels(case, values)
            if case.has_device
            else chains(case, self.name, self.learn_more, values["share"], int(values["chain"]))
        )
        pairs = pairs_reduced(case, self.name, self.learn_more, values["share"])
        return pairs + _elsewhere(found, pairs) + self._attention(case, values)

    def _attention(self, case: Case, values: Values) -> list[Finding]:
        """Modules that multiply, take a softmax and multiply again, outside of the operator that does all three."""
        scopes, number = case.analysis.scopes, len(case.tree)
        module = scopes.module
        fused = case.below(case.matching(FrameKind.OPERATOR, "scaled_dot_product")) | case.in_phase("backward")
        here = (module >= 0) & ~fused & ~case.in_phase("compile")
        owner = np.where(here, module, -1)
        softmax = group_sums(owner, np.where(case.operators("aten::_softmax"), case.calls, 0), number)
        products = group_sums(owner, np.where(case.operators(*_PRODUCTS), case.calls, 0), number)
        attends = (softmax > 0) & (products >= 2 * softmax)
        parts = case.first_of(case.operators(*_OF_ATTENTION) & here & (at_rows(attends, module, 0) > 0))
        made = []
        for group in case.by_line(parts, case.cost_with_all_below):
            share = group.value / max(case.cost_of_all, 1)
            if share < values["attention"]:
                break
            sizes = case.tree.exclusive("alloc_bytes")
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"Attention is computed in parts, {percent(share)} of {case.cost_name}",
                    case.gain_of(
                        group.rows, group.value, (0, 0.4, 0.9), "estimate: one operator that keeps no weights"
                    ),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (
                        f"{times(case.per_step(int(softmax[np.unique(module[group.rows])].sum())))} times a step two "
                        "products with a softmax between them write the weights of all pairs of tokens to memory",
                        *_most_allocated(case, group.rows, sizes.max),
                    ),
                    "Use F.scaled_dot_product_attention, which computes the same without writing the weights: "
                    "nn.MultiheadAttention takes it where it is called with need_weights=False, transformers with "
                    "attn_implementation='sdpa'.",
                    self.learn_more,
                    share,
                )
            )
        return made[:1]

    def _small_kernels(self, case: Case, values: Values) -> list[Finding]:
        measures = case.tree.exclusive("gpu_time")
        kernels = (case.tree.kinds == int(FrameKind.KERNEL)) & case.loop.inside & ~case.in_phase("optimizer")
        number = np.where(kernels, measures.count, 0)
        idle = case.tree.exclusive("gpu_idle_time").sum
        made = []
        for group in case.by_line(kernels, number):
            each = case.per_step(group.value)
            if each < values["kernels"]:
                break
            ns = int(case.gpu_time[group.rows].sum())
            share = ns / max(case.cost_of_all, 1)
            if ns / group.value >= values["kernel"] or share < 0.05:
                continue
            line = case.user_line[group.row]
            waiting = int(idle[(case.user_line == line) & case.loop.inside].sum())
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"{times(each)} kernels a step of {duration(ns / group.value)} each, {percent(share)} of the "
                    "device time",
                    case.gain(ns + waiting, (0, 0.4, 0.9), "bound: these kernels and the idle time between them"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (f"the device idles {duration(case.per_step(waiting))} a step on this line",),
                    _fuse(case),
                    self.learn_more,
                    share,
                    "fuse_elementwise",
                )
            )
        return made[:2]


def _elsewhere(found: list[Finding], others: list[Finding]) -> list[Finding]:
    """Those whose first line no other has."""
    lines = {(one.lines[0].file, one.lines[0].line) for one in others if one.lines}
    return [one for one in found if not one.lines or (one.lines[0].file, one.lines[0].line) not in lines]


def _most_allocated(case: Case, rows: Rows, largest: Rows) -> tuple[str, ...]:
    allocating = case.mask(rows) & (case.tree.exclusive("alloc_bytes").count > 0)
    most = int(largest[allocating].max(initial=0))
    return (f"the largest result is {size(most)}",) if most else ()
