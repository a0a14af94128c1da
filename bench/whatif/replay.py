"""Replay of the reference traces, what halving CPU or device time gives, what each kind of edge holds, layers.

    python bench/whatif/replay.py --traces ../shared/traces

Writes results/whatif-replay.md and .json; speed.py measures time and memory.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import add_results_option, machine, markdown_table, write_results
from leadline.whatif import EdgeType, Graph, GraphError, TaskKind, load, simulate
from leadline.whatif.ledger import Row, ledger
from leadline.whatif.residuals import causal
from leadline.whatif.simulator import step_completions

TRACES = (
    "param-resnet-2080ti/resnet_kineto.json.gz",
    "param-linear-2080ti/linear_kineto.json.gz",
    "triosim-vgg13-h100/profiler_vgg13-iter41.json",
    "hta/nccl_data.json.gz",
    "hta/rank0_of16_cudagraph.json.gz",
    "hta/alexnet_cuda_sync.json.gz",
    "hta/cuda_event_sync.json.gz",
    "hta/cuda_event_sync_multi_stream.json.gz",
    "tracelens/mi300_resnet_ddp_rank0of8_actckpt.json.gz",
    "param-dlrm-8rank-v100/dlrm_kineto.tar.gz",
)
PHASES = ("other", "forward", "backward", "optimizer", "zero_grad", "data loading")
DEVICE, HOST = (TaskKind.GPU, TaskKind.COMM), (TaskKind.CPU, TaskKind.DATA)


EDGES = {
    "sync": EdgeType.SYNC,
    "stream_wait": EdgeType.STREAM_WAIT,
    "guessed_wait": EdgeType.GUESSED,
    "thread": EdgeType.THREAD,
    "rendezvous": EdgeType.COMMUNICATION,
}


def edges_of(graph: Graph, edge: EdgeType) -> int:
    """How many waits of one kind the graph has."""
    if edge == EdgeType.COMMUNICATION:
        return int((graph.column("group") >= 0).sum())
    return int((graph.edges["type"] == edge).sum()) + (len(graph.waits) if edge == EdgeType.SYNC else 0)


def replay_row(name: str, graph: Graph) -> dict[str, Any]:
    result = simulate(graph)
    measured = np.array(graph.info.step_ns, dtype=np.float64)
    return {
        "trace": name,
        "ranks": len(graph.info.ranks),
        "tasks": len(graph),
        "steps": len(graph.info.steps),
        "measured_ns": graph.info.measured_ns,
        "replayed_ns": result.makespan_ns,
        "error": result.makespan_ns / graph.info.measured_ns - 1,
        "worst_step": float(np.abs(result.per_step_ns / measured - 1).max()),
        "causal_error": simulate(causal(graph)).makespan_ns / graph.info.measured_ns - 1,
        "doubtful": doubtful(ledger(graph, result)),
        "unexplained_ns": graph.info.unexplained_ns,
        "warnings": list(graph.info.warnings),
    }


def doubtful(rows: Sequence[Row]) -> str:
    """The residuals beyond the length of their equals, as shares of the step; below one percent they are left out."""
    total = sum(row.spent_ns for row in rows) or 1.0
    found = [(row.spent_ns * (1 - row.confidence) / total, row.name) for row in rows if row.sort != "work"]
    return ", ".join(f"{name} {share:.1%}" for share, name in sorted(found, reverse=True) if share > 0.01)


def halved(graph: Graph, kinds: Sequence[TaskKind]) -> float:
    """Speed-up when all tasks of these kinds take half the time (CPU: gaps and launch latencies too)."""
    faster = graph.copy()
    cpu = TaskKind.CPU in kinds
    faster.scale(faster.select(kind=kinds), 0.5, gaps=cpu)
    if cpu:
        faster.scale_latency(EdgeType.LAUNCH, 0.5)
    return simulate(graph).makespan_ns / simulate(faster).makespan_ns


def without(graph: Graph, edge: EdgeType) -> Graph:
    other = graph.copy()
    if edge == EdgeType.COMMUNICATION:
        other.tasks.write("group")[:] = -1
    else:
        other.disconnect(edge)
    return other


def frozen(graph: Graph) -> Graph:
    """Waits kept inside the calls and kernels that waited, and the edges dropped: what a simpler tool would build."""
    other = graph.copy()
    waiting = np.union1d(other.waits["task"], other.edges["dst"][other.edges["type"] == EdgeType.SYNC])
    waiting = np.union1d(waiting, other.select(kind=TaskKind.COMM).ids)
    other.set_duration(waiting, graph.column("measured_ns")[waiting])
    other.disconnect(EdgeType.SYNC)
    return without(other, EdgeType.COMMUNICATION)


def change(graph: Graph, base_ns: int) -> float | None:
    """Of the replayed time; None where threads, no longer in step, wait for work that comes only later."""
    try:
        return simulate(graph).makespan_ns / base_ns - 1
    except GraphError:
        return None


def counterfactual_row(name: str, graph: Graph) -> dict[str, Any]:
    base = simulate(graph).makespan_ns
    row: dict[str, Any] = {"trace": name, "cpu2x": halved(graph, HOST), "device2x": halved(graph, DEVICE)}
    for label, edge in EDGES.items():
        row[f"edges_{label}"] = edges_of(graph, edge)
        row[f"without_{label}"] = change(without(graph, edge), base)
    ice = frozen(graph)
    row["frozen_replay"] = simulate(ice).makespan_ns / base - 1
    row["frozen_cpu2x"], row["frozen_device2x"] = halved(ice, HOST), halved(ice, DEVICE)
    return row


def layer_row(name: str, graph: Graph) -> dict[str, Any]:
    work = graph.select(kind=DEVICE, name=r"^(?!event record|stream wait|\(unrecorded|\(waiting)").ids
    time_ns = graph.column("duration_ns")[work].astype(np.float64)
    layer, phase = graph.column("layer")[work], graph.column("phase")[work]
    total = max(time_ns.sum(), 1.0)
    shares = {label: float(time_ns[phase == value].sum() / total) for value, label in enumerate(PHASES)}
    return {
        "trace": name,
        "layers": len(np.unique(layer)),
        "on_a_layer": float(time_ns[layer > 0].sum() / total),
        **shares,
    }


def rank_rows(graph: Graph) -> list[dict[str, Any]]:
    result = simulate(graph)
    measured = graph.column("start_ns") + graph.column("measured_ns")
    rows = []
    for rank in graph.info.ranks:
        mine = np.flatnonzero(graph.rank_of_tasks() == rank)
        before, after = (
            int(step_completions(graph, mine, ends[mine], graph.info.steps)[0][-1])
            for ends in (measured, result.end_ns)
        )
        comm = mine[graph.column("kind")[mine] == TaskKind.COMM]
        rows.append({
            "rank": rank, "measured_ns": before, "replayed_ns": after, "error": after / before - 1,
            "collective_ns": int(graph.column("measured_ns")[comm].sum()),
            "transfer_ns": int(graph.column("duration_ns")[comm].sum()),
        })  # fmt: skip
    return rows


def report(data: dict[str, Any]) -> str:
    def ms(value: float) -> str:
        return f"{value / 1e6:.2f}"

    def percent(value: float | None) -> str:
        return "cannot run" if value is None else f"{value:+.2%}"

    head: Sequence[str]
    rows: list[tuple[str, ...]]
    parts = ["## Replay\n"]
    head = ("trace", "ranks", "tasks", "steps", "measured ms", "replayed ms", "error", "by causes", "what that misses")
    rows = [
        (row["trace"], str(row["ranks"]), str(row["tasks"]), str(row["steps"]), ms(row["measured_ns"]),
         ms(row["replayed_ns"]), percent(row["error"]), percent(row["causal_error"]), row["doubtful"])
        for row in data["replay"]
    ]  # fmt: skip
    parts.append(markdown_table(head, rows))
    parts.append(
        "`error` checks the program only: measured gaps are put back where they were. `by causes` puts the median of "
        "its class in the place of every gap, latency and pause, and takes fixed starts away: the error of the graph "
        "as a model. `what that misses`: parts of the critical path beyond the usual for their class, of the step.\n"
    )
    parts.append("\n## Every rank of the 8-rank DLRM job\n")
    head = ("rank", "measured ms", "replayed ms", "error", "collective kernels ms", "of that transfer ms")
    rows = [
        (str(row["rank"]), ms(row["measured_ns"]), ms(row["replayed_ns"]), percent(row["error"]),
         ms(row["collective_ns"]), ms(row["transfer_ns"]))
        for row in data["ranks"]
    ]  # fmt: skip
    parts.append(markdown_table(head, rows))
    parts.append(
        "\n## Halving CPU time, halving device time, and what each kind of edge holds\n\n"
        "`without` columns: change of the replayed time when the edges of one kind are taken out (their waiting is "
        "nowhere else, so it disappears). `frozen` columns: waits kept as durations and the edges dropped, as a tool "
        "without synchronisation edges would; its replay looks right and its predictions are not.\n\n"
        "By the paper's theory a kind of edge matters where such waits lie on the critical path: `sync` where the CPU "
        "ran ahead and waited (ResNet, DLRM), `stream waits` where streams feed one another (the 16-rank trace, "
        "MI300X, DLRM), `thread hand-over` where autograd has a thread of its own, `rendezvous` where all ranks are "
        "loaded. `none`: the trace has no such edge. `cannot run`: without them a thread waits for work that another "
        "launches only later. A positive change is the anomaly of list scheduling: threads that no longer wait "
        "for one another issue their kernels in another order.\n\n"
    )
    head = ("trace", "CPU 2x", "device 2x", "without sync", "without stream waits",
            "without guessed waits", "without thread hand-over",
            "without rendezvous", "frozen: replay", "frozen: CPU 2x", "frozen: device 2x")  # fmt: skip
    rows = [
        (row["trace"], f"{row['cpu2x']:.2f}", f"{row['device2x']:.2f}",
         *(percent(row[f"without_{edge}"]) if row[f"edges_{edge}"] else "none" for edge in EDGES),
         percent(row["frozen_replay"]),
         f"{row['frozen_cpu2x']:.2f}", f"{row['frozen_device2x']:.2f}")
        for row in data["counterfactual"]
    ]  # fmt: skip
    parts.append(markdown_table(head, rows))
    parts.append("\n## Device time by layer and phase\n")
    head = ("trace", "layers", "on a layer", "forward", "backward", "optimizer", "other")
    rows = [
        (row["trace"], str(row["layers"]), f"{row['on_a_layer']:.2%}", f"{row['forward']:.1%}",
         f"{row['backward']:.1%}", f"{row['optimizer']:.1%}",
         f"{row['other'] + row['zero_grad'] + row['data loading']:.1%}")
        for row in data["layers"]
    ]  # fmt: skip
    parts.append(markdown_table(head, rows))
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, required=True, help="folder of the reference traces")
    add_results_option(parser)
    options = parser.parse_args()
    facts = machine()
    graphs = {name: load(options.traces / name) for name in TRACES}
    data = {
        "replay": [replay_row(name, graph) for name, graph in graphs.items()],
        "ranks": rank_rows(graphs[TRACES[-1]]),
        "counterfactual": [counterfactual_row(name, graph) for name, graph in graphs.items()],
        "layers": [layer_row(name, graph) for name, graph in graphs.items()],
    }
    script = "bench/whatif/replay.py"
    write_results(options.results, "whatif-replay", facts, data, report(data), title="What-if: replay", script=script)


if __name__ == "__main__":
    main()
