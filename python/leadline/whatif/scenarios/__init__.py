"""All scenarios, found by name; one file each. A new one is a file and a line in `SCENARIOS`."""

from __future__ import annotations

import difflib

from leadline.whatif.scenarios.activation_checkpointing import ActivationCheckpointing
from leadline.whatif.scenarios.amp import Amp
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, ScenarioError, Values
from leadline.whatif.scenarios.batch_size import BatchSize
from leadline.whatif.scenarios.batchnorm_restructuring import BatchnormRestructuring
from leadline.whatif.scenarios.blueconnect import BlueConnect
from leadline.whatif.scenarios.cpu_threads import CpuThreads
from leadline.whatif.scenarios.data_loading import DataLoading
from leadline.whatif.scenarios.dgc import Dgc
from leadline.whatif.scenarios.distributed import Distributed
from leadline.whatif.scenarios.faster import Faster
from leadline.whatif.scenarios.fuse_elementwise import FuseElementwise
from leadline.whatif.scenarios.fused_optimizer import FusedOptimizer
from leadline.whatif.scenarios.gist import Gist
from leadline.whatif.scenarios.kernel_speedup import KernelSpeedup
from leadline.whatif.scenarios.launch_free import LaunchFree
from leadline.whatif.scenarios.metaflow import MetaFlow
from leadline.whatif.scenarios.no_straggler import NoStraggler
from leadline.whatif.scenarios.p3 import P3
from leadline.whatif.scenarios.precision import Precision
from leadline.whatif.scenarios.remove_sync import RemoveSync
from leadline.whatif.scenarios.vdnn import VDnn

SCENARIOS: tuple[Scenario, ...] = (
    Amp(),
    FusedOptimizer(),
    BatchnormRestructuring(),
    Distributed(),
    P3(),
    BlueConnect(),
    MetaFlow(),
    VDnn(),
    Gist(),
    Dgc(),
    LaunchFree(),
    FuseElementwise(),
    Precision(),
    BatchSize(),
    DataLoading(),
    CpuThreads(),
    RemoveSync(),
    Faster(),
    KernelSpeedup(),
    NoStraggler(),
    ActivationCheckpointing(),
)


def find(name: str) -> Scenario:
    """The scenario of that name. Raises ScenarioError, with the nearest name, when there is none."""
    for scenario in SCENARIOS:
        if scenario.name == name:
            return scenario
    near = difflib.get_close_matches(name, [scenario.name for scenario in SCENARIOS], n=1)
    hint = f"did you mean {near[0]}" if near else "see --list"
    raise ScenarioError(f"There is no scenario called {name}; {hint}.")


__all__ = ["SCENARIOS", "Applied", "Parameter", "Scenario", "ScenarioError", "Values", "find"]
