"""`faster`: one device becomes `factor` times faster: the GPU, the CPU, the network, or the PCIe link."""

from __future__ import annotations

from collections.abc import Mapping

from leadline.whatif.draws import Draw
from leadline.whatif.edits import WAITING, scale_transfers
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelTable, is_device_copy
from leadline.whatif.kinds import EdgeType, Selection, TaskKind
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, Values, count, require_positive
from leadline.whatif.units import Unit
from leadline.work.kernels import KernelClass


class Faster(Scenario):
    """Scales the durations of one device; waiting follows from the simulation, it is never scaled."""

    name = "faster"
    never_slower = True
    of_operations = True
    advice = "use a faster device"
    hypothetical = True
    parameters = (
        Parameter("device", Unit.TEXT, "what becomes faster", "gpu", ("gpu", "cpu", "network", "pcie")),
        Parameter("factor", Unit.FACTOR, "how many times faster", "2"),
    )

    def variants(self) -> tuple[Mapping[str, str], ...]:
        return tuple({"device": device} for device in self.parameters[0].choices)

    def title(self, values: Values) -> str:
        return f"{self.name} {values.text('device')} {values.number('factor'):g}x"

    def applicable(self, graph: Graph, values: Values) -> str | None:
        device = values.text("device")
        if _tasks(graph, device):
            return None
        missing = {"gpu": "kernel", "cpu": "CPU work", "network": "collective", "pcie": "copy between host and device"}
        return f"the trace has no {missing[device]}"

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        require_positive(self.name, values, ["factor"])
        device, factor = values.text("device"), values.number("factor")
        tasks = _tasks(graph, device)
        if device == "network":
            scale_transfers(graph, tasks, 1 / factor, draw)
        else:
            graph.scale(tasks, 1 / factor, gaps=device == "cpu")
        assumptions = [f"every task of the {device} takes 1/{factor:g} of its measured time"]
        if device == "cpu":
            # the time from the call to the start of the kernel is CPU and driver work; whether it shrinks is not known
            if not draw.cautious("launch latency"):
                graph.scale_latency(EdgeType.LAUNCH, 1 / factor)
            graph.scale_latency(EdgeType.THREAD, 1 / factor)
            assumptions.append(
                "the way from a launch to its kernel shrinks too; in the high end of the range it does not"
            )
        if device == "network":
            assumptions.append(WAITING)
        return Applied(graph, tuple(assumptions), count(tasks=len(tasks)))


def _tasks(graph: Graph, device: str) -> Selection:
    if device == "cpu":
        return graph.select(kind=(TaskKind.CPU, TaskKind.DATA))
    table = KernelTable(graph)
    if device == "network":
        return table.all(KernelClass.COLLECTIVE)
    copies = table.all(KernelClass.COPY)
    names = graph.column("name")
    on_device = Selection([task for task in copies if is_device_copy(graph.names[names[task]])])
    if device == "pcie":
        return copies - on_device
    return table.kernels | on_device
