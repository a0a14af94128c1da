"""Profiles to export, and what a reader should find in them."""

from __future__ import annotations

from collections import Counter

from leadline.profiles import Profile
from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder

NAMES = [
    "plain",
    "with space",
    "semi;colon",
    "new\nline\r\ttab",
    "ünï ©ödé 漢字 🎉",
    "\x00\x01\x1b[31m\x7f",
    "\u2028\u2029\u202e\ufeff",
    "quotes \"'`\\",
    "</script>",
    "trailing 42",
    " ",
    "",
]


def model() -> Profile:
    """Two threads, two metrics of time, one of memory, and the same function below itself."""
    return build("""
    process train.py | pid=10 rank=3
      thread MainThread | tid=10
        python main @ /home/ada/my project/train.py:9 | first_line=5
          module model.h.0 [Block]
            operator aten::linear | time=100000,50000 call_time=1,1 alloc_bytes=4096
              phase backward
                operator aten::mm | time=2000000 call_time=1
                  kernel sgemm | gpu_time@0:7=7000000
          python main @ /home/ada/my project/train.py:9 | first_line=5
            operator aten::linear | time=3000 call_time=1
      thread worker | tid=11
        region load | time=40000
    """)


def strange() -> Profile:
    """Names that separate, end or escape in one format or another."""
    builder = ProfileBuilder()
    node = builder.node_of_thread(builder.thread(builder.process("p;q r", pid=1), "thread\none"))
    for i, name in enumerate(NAMES):
        python = builder.child(node, builder.frame("python", name, file=f"/tmp/{name}/x.py", line=i))
        operator = builder.child(python, builder.frame("operator", name))
        builder.add(operator, "time", (i + 1) * 1_000_000)
        builder.add(operator, "call_time", 1)
    return builder.profile()


def deep(levels: int = 10_000) -> Profile:
    """One path of `levels` frames with 5,000 ns at its end."""
    builder = ProfileBuilder()
    node = builder.node_of_thread(builder.thread(builder.process("p"), "t"))
    frame = builder.frame("python", "recurse", file="/a/t.py", line=1)
    for _ in range(levels):
        node = builder.child(node, frame)
    builder.add(node, "time", 5_000)
    return builder.profile()


def stacks(profile: Profile, metric: str, below: str = "root") -> Counter[tuple[str, ...]]:
    """Exclusive sums by the names from below the first frame of kind `below` to the node; modules and phases as exports label them."""
    found: Counter[tuple[str, ...]] = Counter()
    for node in profile.tree.walk():
        value = node.exclusive(metric).sum
        if value:
            path = node.path()
            start = [one.kind for one in path].index(below) + 1
            found[tuple(label(one) for one in path[start:])] += value
    return found


def label(node) -> str:
    if node.kind == "module" and node.module:
        return f"{node.name} [{node.module}]"
    if node.kind in ("phase", "region"):
        return f"{node.kind}: {node.name}"
    return node.name or "(unnamed)"


TREE = """
process train.py | pid=5 rank=0 start_ns=100
  thread main | tid=50
    phase step #step
    region outer #outer
    region other #other
    python main @ train.py:3
      operator aten::linear #linear
        api cudaLaunchKernel #launch
          kernel gemm #gemm
process train.py | pid=5 rank=1 start_ns=200
  thread main | tid=50
    operator aten::add #add
"""
EVENTS = """
start_ns duration_ns kind     node   thread device stream correlation step
1000     100         region   outer  0      -1     -1     0           0
1050     100         region   other  0      -1     -1     0           0
1060     20          operator linear 0      -1     -1     0           0
1065     5           api      launch 0      0      7      11          0
1090     40          kernel   gemm   -1     0      7      11          0
7000     10          operator add    1      -1     -1     0           0
"""


def two_machines() -> Profile:
    """Equal pids; the second machine's clock was 7,000 when the first's was 1,030."""
    profile = build(TREE, events=EVENTS)
    profile.meta["processes"] = [
        {"pid": 5, "started_at_ns": 90, "hostname": "a", "clock": {"monotonic_ns": 0, "realtime_ns": 50_000}},
        {"pid": 5, "started_at_ns": 190, "hostname": "b", "clock": {"monotonic_ns": 0, "realtime_ns": 44_030}},
    ]
    return profile


def with_allocator(profile: Profile) -> Profile:
    """With two moments of torch's allocator on the host, 90 ns apart."""
    values = {"bytes in use": [5, -3], "blocks in use": [1, 2]}
    told = {"device": -1, "name": "torch's allocator", "time_ns": [20, 110], "values": values}
    for record in profile.meta["processes"]:
        record["dataflow"] = {"allocators": [told]}
    return profile


TRACKS_OF_TWO_MACHINES = {
    "rank 0 train.py (5) / main": [
        ("outer", 0, 100, ""),
        ("aten::linear", 60, 80, "train.py:3"),
        ("cudaLaunchKernel", 65, 70, "train.py:3"),
    ],
    "rank 0 train.py (5) / main (overlapping 1)": [("other", 50, 150, "")],
    "rank 0 train.py (5) / GPU 0 stream 7": [("gemm", 90, 130, "train.py:3")],
    "rank 1 train.py (5) / main": [("aten::add", 30, 40, "")],
}
"""What a timeline of `two_machines` shows: of every track (name, begin, end, where in the program)."""
