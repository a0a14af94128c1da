"""All rules, found by name; one file each. A new one is a file and a line in `RULES`.

Others bring theirs as an entry point of the group `leadline.rules` (a subclass of `Rule`), or as a file that is named.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from leadline._installed import entry_points
from leadline.analysis.rules.allocator import Allocator
from leadline.analysis.rules.bank_conflicts import BankConflicts
from leadline.analysis.rules.base import CannotTell, Option, Rule, RuleError, Values
from leadline.analysis.rules.block_shape import BlockShape
from leadline.analysis.rules.cache_preemption import CachePreemption
from leadline.analysis.rules.captured_constants import CapturedConstants
from leadline.analysis.rules.communication import Communication
from leadline.analysis.rules.compile_time import CompileTime
from leadline.analysis.rules.cpu_latency import CpuLatency
from leadline.analysis.rules.data_loading import DataLoading
from leadline.analysis.rules.debug_modes import DebugModes
from leadline.analysis.rules.deterministic_backward import DeterministicBackward
from leadline.analysis.rules.donation import Donation
from leadline.analysis.rules.double_precision import DoublePrecision
from leadline.analysis.rules.first_steps import FirstSteps
from leadline.analysis.rules.forward_backward import ForwardBackward
from leadline.analysis.rules.garbage_collection import GarbageCollection
from leadline.analysis.rules.graph_breaks import GraphBreaks
from leadline.analysis.rules.graph_padding import GraphPadding
from leadline.analysis.rules.growing_queue import GrowingQueue
from leadline.analysis.rules.grows import Grows
from leadline.analysis.rules.host_callbacks import HostCallbacks
from leadline.analysis.rules.host_copies import HostCopies
from leadline.analysis.rules.hotspot import Hotspot
from leadline.analysis.rules.imbalance import Imbalance
from leadline.analysis.rules.interpreter_lock import InterpreterLock
from leadline.analysis.rules.kept_results import KeptResults
from leadline.analysis.rules.kernel_fusion import KernelFusion
from leadline.analysis.rules.layout_conversion import LayoutConversion
from leadline.analysis.rules.logging_in_loop import LoggingInLoop
from leadline.analysis.rules.logprobs_for_all import LogprobsForAll
from leadline.analysis.rules.matmul_shape import MatmulShape
from leadline.analysis.rules.occupancy import Occupancy
from leadline.analysis.rules.one_python_thread import OnePythonThread
from leadline.analysis.rules.op_by_op import OpByOp
from leadline.analysis.rules.optimizer_loop import OptimizerLoop
from leadline.analysis.rules.padding import Padding
from leadline.analysis.rules.pageable_copies import PageableCopies
from leadline.analysis.rules.prefill_stalls import PrefillStalls
from leadline.analysis.rules.python_overhead import PythonOverhead
from leadline.analysis.rules.random_numbers import RandomNumbers
from leadline.analysis.rules.recompilation import Recompilation
from leadline.analysis.rules.redundant_work import RedundantWork
from leadline.analysis.rules.roofline import Roofline
from leadline.analysis.rules.sampler_synchronisation import SamplerSynchronisation
from leadline.analysis.rules.saving_in_loop import SavingInLoop
from leadline.analysis.rules.scheduler_gap import SchedulerGap
from leadline.analysis.rules.scratch_memory import ScratchMemory
from leadline.analysis.rules.slow_type import SlowType
from leadline.analysis.rules.small_copies import SmallCopies
from leadline.analysis.rules.small_grid import SmallGrid
from leadline.analysis.rules.stall import Stall
from leadline.analysis.rules.synchronisation import Synchronisation
from leadline.analysis.rules.thread_oversubscription import ThreadOversubscription
from leadline.analysis.rules.tokenising import Tokenising
from leadline.analysis.rules.uncoalesced import Uncoalesced
from leadline.analysis.rules.unrolled_loop import UnrolledLoop
from leadline.analysis.rules.unused_device import UnusedDevice
from leadline.analysis.rules.unused_gradients import UnusedGradients
from leadline.analysis.rules.weights_again import WeightsAgain

RULES: tuple[Rule, ...] = (
    Hotspot(),
    KernelFusion(),
    ForwardBackward(),
    Stall(),
    Uncoalesced(),
    BankConflicts(),
    Occupancy(),
    Roofline(),
    CpuLatency(),
    DataLoading(),
    Synchronisation(),
    OptimizerLoop(),
    LayoutConversion(),
    DeterministicBackward(),
    SmallCopies(),
    PageableCopies(),
    Allocator(),
    Recompilation(),
    GraphBreaks(),
    CompileTime(),
    FirstSteps(),
    PythonOverhead(),
    MatmulShape(),
    BlockShape(),
    SmallGrid(),
    ScratchMemory(),
    Communication(),
    Imbalance(),
    ThreadOversubscription(),
    RedundantWork(),
    DebugModes(),
    UnusedGradients(),
    GarbageCollection(),
    UnusedDevice(),
    LoggingInLoop(),
    SavingInLoop(),
    OpByOp(),
    HostCallbacks(),
    HostCopies(),
    UnrolledLoop(),
    DoublePrecision(),
    Donation(),
    CapturedConstants(),
    Grows(),
    WeightsAgain(),
    Padding(),
    KeptResults(),
    SlowType(),
    RandomNumbers(),
    InterpreterLock(),
    PrefillStalls(),
    CachePreemption(),
    GrowingQueue(),
    SchedulerGap(),
    LogprobsForAll(),
    OnePythonThread(),
    Tokenising(),
    SamplerSynchronisation(),
    GraphPadding(),
)
GROUP = "leadline.rules"

__all__ = ["GROUP", "RULES", "CannotTell", "Option", "Rule", "RuleError", "Values", "find", "from_file", "installed"]


def find(name: str, rules: Sequence[Rule]) -> Rule:
    """The rule of that name; raises RuleError, with the nearest name, when there is none."""
    for rule in rules:
        if rule.name == name:
            return rule
    import difflib  # on the way to an error only

    near = difflib.get_close_matches(name, [rule.name for rule in rules], n=1)
    advice = f"did you mean {near[0]}?" if near else "`leadline analyze --list` lists them."
    raise RuleError(f"There is no rule called {name!r}; {advice}")


def installed() -> tuple[list[Rule], list[tuple[str, str]]]:
    """Rules that other packages bring, and those that could not be loaded with the reason."""
    found: list[Rule] = []
    failed: list[tuple[str, str]] = []
    for point in entry_points(GROUP):
        try:
            found.append(_rule(point.load()))
        except Exception as error:  # somebody else's code
            failed.append((point.name, f"could not be loaded: {type(error).__name__}: {error}"))
    return found, failed


def from_file(path: str) -> list[Rule]:
    """The rules of a Python file: every subclass of `Rule` that it defines. Raises RuleError with the place of a
    mistake."""
    import importlib.util

    name = f"leadline_rule_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise RuleError(f"There is no rule file {path}; give a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise RuleError(f"{error.filename or path}:{error.lineno}: {error.msg}.") from None
    except Exception as error:
        raise RuleError(f"{path}:{_line_in(error, path)}: {type(error).__name__}: {error}.") from None
    classes = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == name]
    made = [_rule(one) for one in classes if issubclass(one, Rule) and one is not Rule]
    if not made:
        raise RuleError(f"{path} defines no rule; it needs a class that derives from leadline.analysis.rules.Rule.")
    return made


def _rule(one: object) -> Rule:
    made = one() if isinstance(one, type) else one
    if not isinstance(made, Rule) or not isinstance(getattr(made, "name", None), str):
        raise RuleError(f"{one!r} is not a rule with a name; derive it from leadline.analysis.rules.Rule.")
    return made


def _line_in(error: BaseException, path: str) -> int:
    """The last line of the file that the error passed through."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == Path(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
