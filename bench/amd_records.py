"""Whether memory stays bounded over ten million records of an AMD GPU: resident memory of a program that launches that
many kernels, profiled less unprofiled. No GPU: the vendor's libraries are our fakes.

    python bench/amd_records.py [--launches 10000000] [--results FOLDER]

Kernels are launched from Python, on four streams, with a hundred names and a wait after each thousand; what the fakes
hold themselves is in both runs. Needs g++. The profile must have every kernel and no loss.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.amd import fake_gpu

from common import add_results_option, machine, markdown_table, megabytes, write_results

LOOKS = (0.01, 0.1, 0.5, 1.0)
"""Shares of the launches after which memory is looked at."""
NAMES, STREAMS, BETWEEN_WAITS = 100, 4, 1000


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def program(launches: int, output: Path) -> None:
    """What is measured."""
    hip = fake_gpu.hip()
    kernels = [fake_gpu.Kernel(f"kernel_{at}".encode(), 2000, 32, 0, False, 0, 16, 0) for at in range(NAMES)]
    addresses = [ctypes.addressof(kernel) for kernel in kernels]
    streams = []
    for _ in range(STREAMS):
        stream = ctypes.c_void_p()
        hip.hipStreamCreate(ctypes.byref(stream))
        streams.append(stream.value)
    grid, block = fake_gpu.Dim3(304, 1, 1), fake_gpu.Dim3(256, 1, 1)
    launch = hip.hipLaunchKernel
    looks = [int(share * launches) for share in LOOKS]
    seen = []
    begin = time.process_time()
    for at in range(launches):
        launch(addresses[at % NAMES], grid, block, None, 0, streams[at % STREAMS])
        if (at + 1) % BETWEEN_WAITS == 0:
            hip.hipDeviceSynchronize()
        if at + 1 in looks:
            time.sleep(1.5)  # what was launched is folded once a second
            seen.append(resident_bytes())
    output.write_text(json.dumps({"resident": seen, "cpu_s": time.process_time() - begin}))


def run(fakes: Path, folder: Path, launches: int, profiled: bool) -> dict[str, Any]:
    result, profile = folder / "result.json", folder / "out.leadline"
    command = [sys.executable, *(["-m", "leadline", "run", "-q", "-o", str(profile)] if profiled else [])]
    command += [str(Path(__file__)), "--program", str(launches), str(result)]
    environment = {**os.environ, "FAKES": str(fakes), "LD_LIBRARY_PATH": str(fakes), "FAKE_SDK": "10000"}
    subprocess.run(command, env=environment, check=True)
    found: dict[str, Any] = json.loads(result.read_text())
    if profiled:
        import leadline

        opened = leadline.open(profile)
        found["kernels"] = sum(node.exclusive("gpu_time").count for node in opened.tree.find(kind="kernel"))
        found["losses"] = {str(one.kind): one.count for one in opened.losses if one.count > 0}
        found["file_bytes"] = profile.stat().st_size
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Memory over ten million records of an AMD GPU, without one.")
    parser.add_argument("--launches", type=int, default=10_000_000)
    parser.add_argument("--program", nargs=2, help=argparse.SUPPRESS)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    if arguments.program:
        program(int(arguments.program[0]), Path(arguments.program[1]))
        return 0
    compiler = shutil.which("g++")
    if compiler is None:
        print("The fake vendor libraries need g++, and none was found.", file=sys.stderr)
        return 1
    facts = machine()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (fakes := folder / "fakes").mkdir()
        fake_gpu.build(fakes, compiler, "-O2")
        plain = run(fakes, folder, arguments.launches, profiled=False)
        measured = run(fakes, folder, arguments.launches, profiled=True)
    if measured["kernels"] != arguments.launches or measured["losses"]:
        print(f"{measured['kernels']} kernels, losses {measured['losses']}: not the whole run.", file=sys.stderr)
        return 1
    rows = [
        [f"{int(share * arguments.launches):,}", *map(megabytes, (alone, with_us, with_us - alone))]
        for share, alone, with_us in zip(LOOKS, plain["resident"], measured["resident"], strict=True)
    ]
    table = markdown_table(["kernels", "resident, alone", "profiled", "added"], rows)
    each = (measured["cpu_s"] - plain["cpu_s"]) / arguments.launches * 1e9
    table += (
        f"\n\nAll {arguments.launches:,} kernels are in the profile of {megabytes(measured['file_bytes'])}, without a "
        f"loss. Of CPU time {each:,.0f} ns were added for each, its own thread's included.\n"
    )
    data = {"launches": arguments.launches, "alone": plain, "profiled": measured}
    write_results(arguments.results, "amd_records", facts, data, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
