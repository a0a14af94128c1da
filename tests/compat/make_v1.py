"""Makes the files of format version 1 in this folder: `python tests/compat/make_v1.py` (needs torch and the native
module).

Run it again only while version 1 has not been released.
"""

from __future__ import annotations

import site
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

from leadline.profiles import Profile, open_profile, write_profile
from leadline.profiles.build import build
from leadline.profiles.draw import draw
from leadline.profiles.tables import StringBuilder, Tables
from leadline.schema import FORMAT_VERSION

FOLDER = Path(__file__).parent
WORKLOAD = FOLDER / "workload.py"

DRAWN = """
process train.py | pid=100 rank=0 local_rank=0 start_ns=1000 end_ns=9000
  thread MainThread | tid=100 operator_ns=60 data_ns=10 wall_ns=100 cpu_ns=90
    python main @ train.py:12 | first_line=10
      phase forward
        module model.attn [Attention]
          operator aten::mm #mm | time=30,20 call_time=40,30 alloc_bytes=4096 peak_live_bytes=4096
            api cudaLaunchKernel #api | time=5,5 call_time=5,5
              kernel ampere_sgemm_128x64 @ gemm.cu:12 #k | gpu_time@0:7=100,110 occupancy@0:7=500000 registers@0:7=122
                instruction FFMA | address=4096 detail={"opcode":"FFMA"}
          operator aten::copy_
            copy HtoD | gpu_time@0:7=20 copy_bytes@0:7=65536
      collective all_reduce | gpu_time@1:20=500
      phase data loading
        native decode @ libjpeg.so | time=77 address=8192
"""
EVENTS = """
start_ns duration_ns kind     node thread device stream correlation step
2000     40          operator mm   0      -1     -1     0           1
2010     5           api      api  0      -1     -1     9           1
2100     100         kernel   k    -1     0      7      9           1
"""


def captured() -> Profile:
    """The workload, measured in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / WORKLOAD.name
        script.write_bytes(WORKLOAD.read_bytes())
        subprocess.run([sys.executable, str(script)], cwd=folder, check=True)
        profile = open_profile(Path(folder) / "out.leadline")
        return without_machine(profile, folder)


def without_machine(profile: Profile, folder: str) -> Profile:
    """The profile with the folders and names of this machine replaced, so that only the program shows."""
    packages = [*site.getsitepackages(), str(Path(open_profile.__code__.co_filename).parents[2])]
    known = {folder: "work", sysconfig.get_path("stdlib"): "lib/python", sys.prefix: "prefix", sys.base_prefix: "base"}
    places = {**dict.fromkeys(packages, "site-packages"), **known}
    text = profile.tables.strings

    def cleaned(value: str) -> str:
        for place in sorted(places, key=len, reverse=True):
            value = value.replace(place, places[place])
        return value

    strings = StringBuilder()
    ids = np.array([strings.add(cleaned(text[row])) for row in range(len(text))], np.int64)
    columns = {name: dict(profile.table(name)) for name in profile.tables.columns}
    for table, column in STRING_COLUMNS:
        columns[table][column] = ids[columns[table][column]].astype("<u4")
    columns["strings"] = strings.columns()
    meta = {**profile.meta, "host": {"hostname": "example", "system": "Linux", "machine": "x86_64", "cpus": 2}}
    program = {"argv": ["workload.py"], "python": profile.meta["program"]["python"]}
    records = [{**record, "program": program} for record in profile.meta["processes"]]
    return Profile(Tables(columns), {**meta, "program": program, "processes": records})


STRING_COLUMNS = (
    ("frames", "name"),
    ("frames", "file"),
    ("frames", "module"),
    ("frames", "detail"),
    ("processes", "name"),
    ("threads", "name"),
    ("devices", "name"),
    ("devices", "uuid"),
    ("devices", "detail"),
    ("losses", "detail"),
)


def shown(profile: Profile) -> str:
    """What the text beside a file holds: the tree and how often each path was taken."""
    counts = profile.tree.exclusive("call_time").count
    lines = draw(profile).splitlines()
    nodes = [node for node in profile.tree.walk() if node.row]
    return "".join(f"{line} x{counts[node.row]}\n" for line, node in zip(lines, nodes, strict=True))


def save(name: str, profile: Profile) -> None:
    write_profile(FOLDER / f"{name}.leadline", profile)
    (FOLDER / f"{name}.txt").write_text(shown(open_profile(FOLDER / f"{name}.leadline")), encoding="utf-8")


def main() -> None:
    if FORMAT_VERSION != 1:
        raise SystemExit(
            "The format is no longer version 1: its old files must stay as they are; write make_v2.py beside this one."
        )
    drawn = build(DRAWN, events=EVENTS, losses=[("gpu_records_dropped", 12, "The buffer was full.")])
    save("v1-drawn", drawn)
    save("v1-torch", captured())


if __name__ == "__main__":
    main()
