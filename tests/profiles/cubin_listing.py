"""What `nvdisasm -gi` says of the cubins of the tests, kept so that no test needs it.

python -m tests.profiles.cubin_listing    (needs nvdisasm, as in the package nvidia-cuda-nvdisasm)
"""

from __future__ import annotations

import json
import lzma
import re
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent / "cubins"
_LABEL = re.compile(r"^(?:\.text\.)?([^.\s]\S*):\s*$")
_PLACE = re.compile(r'\s*//## File "(.*?)", line (\d+)(?: inlined at "(.*?)", line (\d+))?')
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+[^/;]")


def chains(listing: str) -> dict[tuple[str, int], list[list[object]]]:
    """(function, offset in it) to (file, line) of the instruction and of the calls around it, the innermost first."""
    found: dict[tuple[str, int], list[list[object]]] = {}
    function, begin, above, chain = "", None, False, list[list[object]]()
    for line in listing.splitlines():
        if label := _LABEL.match(line):
            function, begin = label[1], None
        elif place := _PLACE.match(line):
            if not above:
                chain, above = [[place[1], int(place[2])]], True
            if place[3]:
                chain = [*chain, [place[3], int(place[4])]]
        elif said := _INSTRUCTION.match(line):
            above, offset = False, int(said[1], 16)
            begin = offset if begin is None else begin
            found[function, offset - begin] = chain
    return found


def main() -> None:
    kept = {}
    for path in sorted(FOLDER.glob("*.cubin")):
        done = subprocess.run(["nvdisasm", "-c", "-gi", str(path)], capture_output=True, text=True, check=True)
        kept[path.name] = [[name, offset, chain] for (name, offset), chain in chains(done.stdout).items()]
        print(path.name, len(kept[path.name]), "instructions")
    (FOLDER / "listings.json.xz").write_bytes(lzma.compress(json.dumps(kept).encode()))


if __name__ == "__main__":
    main()
