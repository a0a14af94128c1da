"""`block_shape`: blocks that fill only a part of their warps (of 32 threads at NVIDIA, of 32 or 64 at AMD)."""

from __future__ import annotations

from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.hot_kernels import hot_kernels, recorded_kernels
from leadline.analysis.rules.vendor import NVIDIA_WARP, lanes
from leadline.analysis.rules.words import kernel
from leadline.profiles.makers import is_amd
from leadline.units import percent


class BlockShape(Rule):
    name = "block_shape"
    asks = "Do kernels that take much of the device's time leave lanes of their warps (AMD: wavefronts) empty?"
    options = (
        Option("share", 5, "%", "of the device time that the kernels of one line take; smaller ones gain little"),
        Option("empty", 20, "%", "of the lanes; a partly filled last warp is normal"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        threads = case.tree.exclusive("block_threads")
        kernels = recorded_kernels(case, threads.count, "the shapes of kernels' blocks")
        widths = {lanes(one) for one in case.profile.devices}
        if len(widths) != 1 or 0 in widths:
            raise CannotTell("the warp size of the devices is unknown or differs")
        width = widths.pop()
        largest = threads.max  # a kernel counts by its fullest launch
        empty = 1 - largest / ((largest + width - 1) // width * width).clip(width)
        wrong = kernels & (empty >= values["empty"])
        word = "wavefront" if is_amd(case.profile.devices) else "warp"
        made = []
        for hot in hot_kernels(case, wrong, empty, values["share"]):
            group, row = hot.group, hot.row
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"Blocks of {int(largest[row])} threads leave {percent(hot.unused)} of the {word}s' lanes empty in "
                    f"kernels of {percent(hot.share)} of the device time",
                    case.gain(hot.unused_ns, (0, 0.5, 1), "bound: the share of lanes that hold no thread"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (kernel(case.name(row)), f"a {word} of this device has {width} threads"),
                    f"Make the block a multiple of {width} threads: in Triton num_warps and the block's size, in "
                    "HIP and CUDA the size at the launch"
                    + ("; block sizes chosen for warps of 32 have this problem." if width > NVIDIA_WARP else "."),
                    self.learn_more,
                    hot.share * hot.unused,
                )
            )
        return made[:2]
