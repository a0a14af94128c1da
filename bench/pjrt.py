"""What following a plug-in of PJRT costs for each of its calls, over the plug-in without a device.

    python bench/pjrt.py [--rounds 9] [--calls 20000]

One process on one core, calls from C in a loop: without measuring and inside `leadline.profile`, in turns. The plug-in
does next to nothing, so the difference is ours: with the table followed, the monitor, the collector and, for a run,
asking for its end, which is there at once.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import Spread, add_results_option, machine, markdown_table, write_results

SOURCE = Path(__file__).resolve().parents[1] / "native/testing/pjrt/fake_plugin.c"
AWAIT, EXECUTE, TRANSFER = 8, 55, 102


def build(folder: Path) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("bench/pjrt.py needs a C compiler.")
    library = folder / "fake_plugin.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", str(SOURCE), "-o", str(library)], check=True)
    return library


def words(*values: int) -> Any:
    """A structure of arguments: its size, no extensions, the rest."""
    return (ctypes.c_size_t * (2 + len(values)))(8 * (2 + len(values)), 0, *values)


def measure(library: ctypes.CDLL, calls: int, rounds: int, folder: Path) -> dict[str, dict[str, list[float]]]:
    import leadline

    library.fake_loop.restype = ctypes.c_double
    host = (ctypes.c_float * 16)()
    events = (ctypes.c_size_t * 1)(1)
    asked = {
        "wait (PJRT_Event_Await)": (AWAIT, words(1)),
        "transfer (TransferData)": (TRANSFER, words(1, 0, ctypes.addressof(host), 0, 64, 1, 0)),
        "run, with an event of the caller's": (EXECUTE, words(1, 0, 0, 1, 0, 0, ctypes.addressof(events), 0)),
    }
    runs: dict[str, dict[str, list[float]]] = {name: {"alone": [], "followed": []} for name in asked}
    for _ in range(rounds):
        for name, (slot, arguments) in asked.items():
            runs[name]["alone"].append(library.fake_loop(slot, arguments, calls))
        with leadline.profile(folder / "out.leadline", quiet=True):
            for name, (slot, arguments) in asked.items():
                runs[name]["followed"].append(library.fake_loop(slot, arguments, calls))
    return runs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=20_000)
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory() as name:
        path = build(Path(name))
        os.environ |= {"PJRT_NAMES_AND_LIBRARY_PATHS": f"fake:{path}", "JAX_PLATFORMS": "cpu"}
        import jax

        jax.devices()
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        library = ctypes.CDLL(str(path))
        library.GetPjrtApi()
        runs = measure(library, arguments.calls, arguments.rounds, Path(name))
    rows = []
    for call, ways in runs.items():
        alone, followed = Spread.of(ways["alone"]), Spread.of(ways["followed"])
        cost = Spread.of(b - a for a, b in zip(ways["alone"], ways["followed"], strict=True))
        rows.append([call, alone.text(0), followed.text(0), cost.text(0)])
    report = (
        f"jax {jax.__version__}, {arguments.rounds} rounds of {arguments.calls:,} calls; medians and ranges.\n\n"
        + markdown_table(["call", "alone, ns", "followed, ns", "cost, ns"], rows)
    )
    write_results(arguments.results, "pjrt", {**facts, "jax": jax.__version__}, {"runs": runs}, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
