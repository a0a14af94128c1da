"""What the text on the GPU costs in instructions: how long each patch function is, and what it does with memory.

    python bench/device_text.py [--results FOLDER]

Lengths of the code, not of a way through it: most of leadline_global is for accesses beyond a range's end, values and
instructions that nobody asked for. Needs nvcc and nvdisasm (NVIDIA's wheels have both), no GPU.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from common import add_results_option, machine, markdown_table, write_results
from leadline.tools import device_text

ARCHITECTURES = (80, 90, 100, 120)
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(?P<name>[A-Z][A-Z0-9_.]*)")


def counts(architecture: int, nvcc: str, nvdisasm: str) -> dict[str, dict[str, int]]:
    """Of each patch function: instructions, and of them atomics, loads and warp-wide ones."""
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "patches.cu", Path(folder) / "patches.cubin"
        source.write_text(device_text.source(), encoding="utf-8")
        command = [nvcc, "-std=c++17", "-cubin", "--compile-as-tools-patch", f"-arch=sm_{architecture}"]
        subprocess.run([*command, "-o", str(cubin), str(source)], check=True)
        listed = subprocess.run([nvdisasm, "-c", str(cubin)], check=True, capture_output=True, text=True).stdout
    found: dict[str, dict[str, int]] = {}
    function = ""
    for line in listed.splitlines():
        if line.startswith(".text."):
            function = line[len(".text.") :].rstrip(":")
            found[function] = {"instructions": 0, "atomics": 0, "loads": 0, "warp": 0}
            continue
        one = _INSTRUCTION.match(line)
        if one is None or not function or one["name"] == "NOP":
            continue
        name = one["name"].split(".")[0]
        row = found[function]
        row["instructions"] += 1
        row["atomics"] += name in ("ATOM", "ATOMG", "RED", "REDG")
        row["loads"] += name in ("LD", "LDG")
        row["warp"] += name in ("MATCH", "SHFL", "VOTE", "WARPSYNC", "VOTEU")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_results_option(parser)
    options = parser.parse_args()
    nvcc, nvdisasm = device_text.program("nvcc"), device_text.program("nvdisasm")
    if not nvcc or not nvdisasm:
        print("Needs nvcc and nvdisasm: pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm.", file=sys.stderr)
        return 1
    facts = machine()
    measured = {f"sm_{each}": counts(each, nvcc, nvdisasm) for each in ARCHITECTURES}
    rows = []
    for name in device_text.PATCHES:
        row = [name]
        for of_functions in measured.values():
            one = of_functions[name]
            row.append(f"{one['instructions']} ({one['atomics']}, {one['loads']}, {one['warp']})")
        rows.append(row)
    text = (
        "Instructions of each patch function, and of them atomics, loads and warp-wide ones, by nvcc"
        f" {device_text.version(nvcc)}. That is code, not a way through it: an access to what its launch has touched"
        " before is one atomic for each range that its warp meets (native/backends/device/stage_test.cpp).\n\n"
        + markdown_table(["function", *measured], rows)
    )
    write_results(options.results, "device_text", facts, {"functions": measured}, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
