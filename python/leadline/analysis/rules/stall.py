"""`stall`: warps of a hot kernel stand still, and why (DeepContext, section 4.3, analysis 4)."""

from __future__ import annotations

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.instruction_samples import SampledKernel, SampledKernels, in_words
from leadline.schema import stall_group
from leadline.units import duration, percent

_MEMORY = (
    "Let neighbouring threads read neighbouring elements (contiguous inputs), keep what is read twice in shared "
    "memory, use a smaller type for what lies in device memory, or fuse it with the operator that wrote its input."
)
_FOR_REASON = {
    "imc_miss": "It waits for constants, as short kernels on few elements do: give each launch more work, or let "
    "torch.compile fuse it with its neighbours.",
    "short_scoreboard": "It waits for shared memory or special functions: avoid bank conflicts and needless exactness.",
    "mio_throttle": "It waits for shared memory or special functions: avoid bank conflicts and needless exactness.",
    "lg_throttle": "It asks for memory in too many pieces: let neighbouring threads read neighbouring elements, and "
    "load several at once (float4).",
    "branch_resolving": "Branches take its time: let all threads of a warp take the same branch, or let the compiler "
    "unroll.",
    "drain": "It ends before its stores are done: give each thread more to do, and store several elements at once.",
}
_FOR_GROUP = {
    "memory": _MEMORY,
    "fetch": "It waits for instructions to be fetched, as short kernels on few elements do: give each launch more "
    "work, or let torch.compile fuse it with its neighbours.",
    "synchronisation": "Threads of a block wait for each other: give them equal work, use smaller blocks, or "
    "synchronise less often.",
    "dependency": "Its instructions wait for each other: give each thread independent elements (vectorised loads), and "
    "more warps to each multiprocessor.",
    "pipe": "The units that execute it are busy: avoid conversions between types, use tensor cores or a smaller type.",
    "asleep": "Its threads sleep while they wait for others (a spin lock, a grid barrier): wait less often.",
}
_OTHERWISE = "Inspect these instructions in the kernel's source; another kernel for the operator may not wait."
_OF_OTHER_TOOLS = (
    (("long_sb", "memory_dependency"), "memory"),
    (("constant", "imc", "no_instruction", "instruction_fetch"), "fetch"),
    (("barrier", "membar", "sync"), "synchronisation"),
    (("short_sb", "mio", "shared"), "memory"),
    (("wait", "exec_dependency"), "dependency"),
    (("math", "dispatch", "pipe"), "pipe"),
)
"""Words in reasons of profiles that others recorded, with their spelling."""


class Stall(Rule):
    name = "stall"
    asks = "Are the warps of a kernel that takes much of the device's time stalled, and why?"
    options = (
        Option("share", 5, "%", "of the device time that the kernel takes; stalls elsewhere cost nothing"),
        Option("stalled", 50, "%", "of the kernel's samples; every kernel waits for memory now and then, and a wait "
               "during which another warp was issued is none"),
        Option("samples", 100, "1", "of one kernel; fewer are too few to separate its stall reasons"),
        Option("most", 3, "1", "kernels; the paper examines the top ones"),
    )  # fmt: skip

    def check(self, case: Case, values: Values) -> list[Finding]:
        kernels = SampledKernels(case)
        made: list[Finding] = []
        for kernel in kernels.hot(values["share"], values["samples"]):
            part = kernel.stalled / kernel.seen
            if len(made) < values["most"] and part >= values["stalled"]:
                made.append(self._finding(case, kernels, kernel, part))
        return made

    def _finding(self, case: Case, kernels: SampledKernels, kernel: SampledKernel, part: float) -> Finding:
        group, ranked = kernel.group, kernel.ranked
        reason, most = ranked[0]
        hottest = kernels.hottest(kernels.waiting(group))
        lines = kernels.lines(kernels.waiting(group, reason))
        where = f" at {lines[0][0]} ({percent(lines[0][1] / kernel.seen)})" if lines else ""
        evidence = [
            f"{duration(case.per_step(group.value))} a step, {percent(kernel.share)} of the device time",
            "reasons: " + ", ".join(f"{name} {percent(count / kernel.seen)}" for name, count in ranked[:3]),
            "instructions: " + "; ".join(place for place, _ in hottest),
        ]
        if kernel.has_latency:
            evidence.append("only samples in which no other warp was issued are counted")
        return Finding(
            self.name,
            Severity.WARNING,
            f"{case.name(group.row)} is stalled in {percent(part)} of its samples: in "
            f"{percent(most / kernel.seen)} it {in_words(reason)}{where}",
            case.gain(group.value, (0, 0.3 * part, part), "bound: the kernel without its stalls"),
            tuple(group.rows[:20].tolist()),
            case.lines([group.row]),
            tuple(evidence),
            _advice(reason),
            self.learn_more,
            kernel.share * part,
        )


def _advice(reason: str) -> str:
    if reason in _FOR_REASON:
        return _FOR_REASON[reason]
    group = stall_group(reason)
    if group == "other":
        word = reason.lower().replace(" ", "_")
        group = next((found for keys, found in _OF_OTHER_TOOLS if any(key in word for key in keys)), group)
    return _FOR_GROUP.get(group, _OTHERWISE)
