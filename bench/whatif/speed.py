"""How fast `leadline whatif` is: load and replay of a large trace, the simulator alone, every scenario, a gigabyte.

    python bench/whatif/speed.py --traces ../shared/traces [--huge FILE.json] [--growth 10_000_000]

Writes results/whatif-speed.md and .json. `--growth`: the eight recommender ranks with their step repeated up to so many
events, each size in a process of its own. `--huge` names a trace of a gigabyte or more with ProfilerStep marks
(`tests/trace/long_trace.py` writes one); without it that part is left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from large import RANKS, SOURCE, write_ranks, write_twice

from common import add_results_option, machine, markdown_table, write_results
from leadline.whatif import SCENARIOS, Graph, ScenarioError, load, predict, rank, simulate
from leadline.whatif.render import as_text

GRAPHS = ("param-resnet-2080ti/resnet_kineto.json.gz", "param-linear-2080ti/linear_kineto.json.gz")
GIVEN: Mapping[str, Mapping[str, str]] = {
    "distributed": {"world_size": "8", "gradient_bytes": "100MB"},
    "p3": {"world_size": "8", "gradient_bytes": "100MB"},
    "blueconnect": {"world_size": "16", "gradient_bytes": "100MB"},
    "vdnn": {"policy": "all", "activation_bytes": "10MB"},
    "dgc": {"world_size": "8", "gradient_bytes": "100MB"},
    "precision": {"target": "fp16"},
    "metaflow": {"spec": json.dumps({"substitutions": [{"remove": [r"aten::\w+ \(1\)"], "insert": []}]})},
}
"""What a scenario must be told that these traces do not say."""
BEFORE = {"dgc": "distributed"}


def best(call: Callable[[], Any], times: int) -> float:
    """Least seconds of a few calls: what the machine can do when nothing else runs."""
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return min(found)


def large(traces: Path) -> dict[str, Any]:
    """Load, graph and replay of a trace of more than 216,000 events, and the simulator alone, on one core."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.json.gz"
        events = write_twice(traces / SOURCE, path)
        totals = []
        for _ in range(7):
            begin = time.perf_counter()
            graph = load(path)
            simulate(graph)
            totals.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "leadline", "whatif", str(path), "--replay"], check=True, stdout=subprocess.DEVNULL
        )
        command_s = time.perf_counter() - begin
    runs = best(lambda: simulate(graph, compiled=True), 9)
    return {
        "events": events, "tasks": len(graph), "load_build_replay_s": statistics.median(totals), "worst_s": max(totals),
        "command_s": command_s, "simulate_s": runs, "tasks_per_second": len(graph) / runs,
        "python_simulate_s": best(lambda: simulate(graph, compiled=False), 1),
    }  # fmt: skip


def scenarios(graph: Graph) -> dict[str, float | None]:
    """Seconds of each prediction with its range; None where one does not apply."""
    found: dict[str, float | None] = {}
    for scenario in SCENARIOS:
        names = [BEFORE[scenario.name], scenario.name] if scenario.name in BEFORE else [scenario.name]
        try:
            found[scenario.name] = best(partial(predict, graph, names, GIVEN.get(scenario.name)), 3)
        except ScenarioError:
            found[scenario.name] = None
    return found


def ranking(graph: Graph) -> str:
    """What the command prints without options."""
    return as_text(rank(graph), ranked=True)


def huge(path: Path) -> dict[str, Any]:
    """One step out of a file of gigabytes, in a process of its own: seconds and peak memory."""
    program = (
        "import re, sys, time\n"
        "from leadline.whatif import load, replay\n"
        "def peak(): return int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "before = peak()\n"
        "begin = time.perf_counter()\n"
        "graph = load(sys.argv[1], window=(100, 100))\n"
        "error = replay(graph).replay_error\n"
        "print(time.perf_counter() - begin, before, peak(), len(graph), error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=True, capture_output=True, text=True)
    seconds, before, after, tasks, error = (float(word) for word in done.stdout.split())
    return {
        "bytes": path.stat().st_size, "seconds": seconds, "before_kib": before, "peak_kib": after, "tasks": tasks,
        "replay_error": error,
    }  # fmt: skip


def growth(traces: Path, most: int) -> list[dict[str, Any]]:
    """Eight ranks of growing length, up to `most` events: seconds (wall and CPU) of load, graph and replay, and peak
    memory, each in a process of its own. The processes that read ranks count: their time, and the pages of all at once,
    which a thread looks at again and again."""
    program = (
        "import json, os, re, sys, threading, time\n"
        "from pathlib import Path\n"
        "from leadline.whatif import load, replay\n"
        "def pages():\n"
        "    found = 0\n"
        "    for task in ('self', *Path(f'/proc/self/task/{os.getpid()}/children').read_text().split()):\n"
        "        try: found += int(re.search(r'Pss:\\s+(\\d+)', open(f'/proc/{task}/smaps_rollup').read())[1])\n"
        "        except (OSError, TypeError): pass\n"
        "    return found\n"
        "peak, done = [0], threading.Event()\n"
        "def look():\n"
        "    while not done.wait(0.05): peak[0] = max(peak[0], pages())\n"
        "watcher = threading.Thread(target=look); watcher.start()\n"
        "wall, cpu = time.perf_counter(), sum(os.times()[:4])\n"
        "graph = load(sys.argv[1])\n"
        "loaded = time.perf_counter() - wall\n"
        "error = replay(graph).replay_error\n"
        "wall, cpu = time.perf_counter() - wall, sum(os.times()[:4]) - cpu\n"
        "done.set(); watcher.join()\n"
        "print(json.dumps({'tasks': len(graph), 'wall_s': wall, 'load_s': loaded, 'peak_kib': peak[0], 'cpu_s': cpu,\n"
        "                  'replay_error': error}))\n"
    )
    rows = []
    for share in (16, 8, 4, 2, 1):
        with tempfile.TemporaryDirectory() as folder:
            events = write_ranks(traces / RANKS, Path(folder), most // share)
            done = subprocess.run([sys.executable, "-c", program, folder], check=True, capture_output=True, text=True)
        rows.append({"events": events, **json.loads(done.stdout)})
    return rows


def report(data: Mapping[str, Any]) -> str:
    fast = data["large"]
    parts = [
        f"## Load, graph, replay\n\nA trace of {fast['events']:,} events ({fast['tasks']:,} tasks): "
        f"{fast['load_build_replay_s']:.2f} s (median of seven; the slowest took {fast['worst_s']:.2f} s); as a "
        f"command, with the start of Python, {fast['command_s']:.2f} s. One simulation takes "
        f"{fast['simulate_s'] * 1e3:.1f} ms, that is {fast['tasks_per_second'] / 1e6:.1f} million tasks a second on "
        f"one core; the Python simulator takes {fast['python_simulate_s']:.2f} s for the same answer.\n",
        "\n## Scenarios\n\nSeconds for one prediction with its range on graphs of "
        + " and ".join(f"{row['tasks']:,}" for row in data["scenarios"])
        + " tasks; `-` where a scenario does not apply.\n",
    ]
    names = [scenario.name for scenario in SCENARIOS]
    rows = [
        (name, *("-" if row["seconds"][name] is None else f"{row['seconds'][name]:.2f}" for row in data["scenarios"]))
        for name in names
    ]
    rows.append(("whole ranking", *(f"{row['ranking_s']:.2f}" for row in data["scenarios"])))
    parts.append(markdown_table(("scenario", *(Path(row["trace"]).parts[0] for row in data["scenarios"])), rows))
    if data["growth"]:
        parts.append(
            "\n## Growth\n\nEight ranks together, the step of the recommender repeated on each: load, graph and "
            "replay (exact, by causes, and the ledger). Time and memory are those of all processes.\n\n"
            + markdown_table(
                ("events", "tasks", "seconds", "of that load and graph", "CPU seconds", "peak memory, MiB", "replay"),
                [
                    (f"{row['events']:,}", f"{row['tasks']:,}", f"{row['wall_s']:.1f}", f"{row['load_s']:.1f}",
                     f"{row['cpu_s']:.1f}", f"{row['peak_kib'] / 1024:,.0f}", f"{row['replay_error']:+.2%}")
                    for row in data["growth"]
                ],
            )
        )  # fmt: skip
    if data["huge"] is not None:
        big = data["huge"]
        parts.append(
            f"\n## A gigabyte\n\nOne step of a JSON file of {big['bytes'] / 1e9:.2f} GB ({big['tasks']:,.0f} tasks, "
            f"replay {big['replay_error']:+.2%}): {big['seconds']:.1f} s, peak memory {big['peak_kib'] / 1024:.0f} MiB,"
            f" of which {big['before_kib'] / 1024:.0f} MiB are the interpreter and its libraries.\n"
        )
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, required=True, help="folder of the reference traces")
    parser.add_argument("--huge", type=Path, help="a trace of a gigabyte with step marks")
    parser.add_argument("--growth", type=int, default=0, help="events of the largest job of eight ranks")
    add_results_option(parser)
    options = parser.parse_args()
    facts = machine()
    rows = []
    for name in GRAPHS:
        graph = load(options.traces / name)
        rows.append({"trace": name, "tasks": len(graph), "seconds": scenarios(graph),
                     "ranking_s": best(partial(ranking, graph), 2)})  # fmt: skip
    data = {"large": large(options.traces), "scenarios": rows, "huge": huge(options.huge) if options.huge else None,
            "growth": growth(options.traces, options.growth) if options.growth else []}  # fmt: skip
    script = "bench/whatif/speed.py"
    write_results(options.results, "whatif-speed", facts, data, report(data), title="What-if: speed", script=script)


if __name__ == "__main__":
    main()
