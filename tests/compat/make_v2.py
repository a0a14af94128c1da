"""Makes the files of format version 2 in this folder: `python tests/compat/make_v2.py`.

Run it again only while version 2 has not been released.
"""

from __future__ import annotations

from tests.compat.make_v1 import save

from leadline.profiles.build import build
from leadline.schema import FORMAT_VERSION

DRAWN = """
process train.py | pid=100 rank=0 local_rank=0 start_ns=1000 end_ns=9000
  thread MainThread | tid=100 operator_ns=60 data_ns=10 wall_ns=100 cpu_ns=90
    python main @ train.py:12 | first_line=10
      phase forward | running_time=70
        module model.attn [Attention] #attn
          operator aten::mm #mm | call_time=40,30 wait_time=15
"""
EVENTS = """
start_ns duration_ns kind     node thread device stream correlation step
1990     60          module   attn 0      -1     -1     0           1
2000     40          operator mm   0      -1     -1     0           1
"""


def main() -> None:
    if FORMAT_VERSION != 2:
        raise SystemExit("The format is no longer version 2: its old files must stay as they are.")
    save("v2-drawn", build(DRAWN, events=EVENTS))


if __name__ == "__main__":
    main()
