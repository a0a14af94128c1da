"""How long a large profile of XLA (`.xplane.pb`) takes to become a profile, and how much memory.

    python bench/xspace.py [--events 2800000] [--repeat 3] [--file run.xplane.pb] [--results FOLDER]

The file is recorded by JAX's own profiler around one of the models of `workloads/twins`, or given. Every reading is a
process of its own; CPU time counts, so other programs on the machine matter less. Exit code 1 when a median misses its
goal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import Spread, add_results_option, machine, markdown_table, megabytes, write_results

_MUST_S = 5.0
_MUST_BYTES = 512 * 2**20
_STEPS = {
    "import_s": "import leadline",
    "tables_s": "bytes into tables",
    "profile_s": "tables into a profile",
    "whole_s": "all together (must: under 5)",
}

_RECORD = """
import sys
sys.path.insert(0, sys.argv[1])
import jax
from workloads.twins import transformer
step = transformer.in_jax()
step()
options = jax.profiler.ProfileOptions()
options.python_tracer_level = 0
jax.profiler.start_trace(sys.argv[2], profiler_options=options)
for number in range(int(sys.argv[3])):
    with jax.profiler.StepTraceAnnotation("train", step_num=number):
        step()
jax.profiler.stop_trace()
"""

_MEASURE = """
import json, resource, sys, time
began = time.process_time()
import leadline
from leadline.trace.importers import xspace_tree
from leadline.trace.source import sources
from leadline.trace.xspace import read_xspace
imported = time.process_time()
space = read_xspace(sources(sys.argv[1])[0])
read = time.process_time()
profile = xspace_tree.profile_of(space, "")
made = time.process_time()
print(json.dumps({
    "import_s": imported - began, "tables_s": read - imported, "profile_s": made - read, "whole_s": made - began,
    "events": len(space.trace), "nodes": len(profile.tree.parent),
    "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""


def recorded(folder: Path, steps: int) -> Path:
    """A profile of that many steps."""
    here = str(Path(__file__).resolve().parent)
    subprocess.run([sys.executable, "-c", _RECORD, here, str(folder), str(steps)], check=True)
    return next(folder.glob("**/*.xplane.pb"))


def measured(file: Path) -> dict[str, float]:
    """One reading."""
    done = subprocess.run([sys.executable, "-c", _MEASURE, str(file)], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def large(folder: Path, events: int) -> Path:
    """A profile of about so many events: how many a step has is found out first."""
    few = 20
    short = measured(recorded(folder / "short", few))["events"]
    return recorded(folder / "long", round(events * few / short))


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print and write the results."""
    parser = argparse.ArgumentParser(description="How long a large profile of XLA takes to open.")
    parser.add_argument("--events", type=int, default=2_800_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--file", type=Path)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    facts = machine()
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.file or large(Path(folder), arguments.events)
        size = file.stat().st_size
        runs = [measured(file) for _ in range(arguments.repeat)]
    spreads = {name: Spread.of([run[name] for run in runs]) for name in _STEPS}
    peak = Spread.of([run["peak_bytes"] for run in runs])
    rows = [[f"{text}, s", f"{spreads[name].median:.2f}"] for name, text in _STEPS.items()]
    rows.append([f"peak memory (must: under {megabytes(_MUST_BYTES)})", megabytes(round(peak.median))])
    print(f"{megabytes(size)}, {runs[0]['events']:,} events")
    table = f"{megabytes(size)}, {runs[0]['events']:,} events.\n\n{markdown_table(['CPU time', 'median'], rows)}"
    data = {"bytes": size, "runs": runs}
    write_results(arguments.results, "xspace", facts, data, table, arguments=f"--repeat {arguments.repeat}")
    return int(spreads["whole_s"].median > _MUST_S or peak.median > _MUST_BYTES)


if __name__ == "__main__":
    raise SystemExit(main())
