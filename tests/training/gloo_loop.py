"""A loop of which it is known what each step does: sleep, compute, an exposed collective, a hidden one.

Its own clock readings are the truth, but for the time in which its threads stood in line for a core between a reading
and what it is read for: the kernel says how long that was.
"""

import itertools
import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

import leadline

folder = Path(sys.argv[1])
dist.init_process_group("gloo")
torch.set_num_threads(1)
profiler = leadline.build_profiler(enable=True, start_step=2, end_step=6, trace_dir=str(folder), merge=True)
matrix, vector = torch.randn(1200, 1200), torch.randn(4_000_000)
late = dist.get_rank() > 0
truth = {"compute": 0, "exposed": 0, "overlapped": 0, "idle": 0, "in_line": 0}


def in_line() -> int:
    """Nanoseconds that the threads of this process have waited for a core."""
    return sum(int(path.read_text().split()[1]) for path in Path("/proc/self/task").glob("*/schedstat"))


profiler.start(0)
for step in range(8):
    waited = in_line()
    marks = [time.monotonic_ns()]
    time.sleep(0.05)
    marks.append(time.monotonic_ns())
    matrix @ matrix
    marks.append(time.monotonic_ns())
    dist.all_reduce(vector)
    marks.append(time.monotonic_ns())
    if late:  # (the truth is rank 0's) so that the other rank's collective outlasts what it computes meanwhile
        time.sleep(0.3)
    hidden = dist.all_reduce(vector, async_op=True)
    time.sleep(0.01)  # until gloo's thread is at it
    marks.append(time.monotonic_ns())
    matrix @ matrix
    marks.append(time.monotonic_ns())
    hidden.wait()
    marks.append(time.monotonic_ns())
    profiler.step(step)
    if 2 <= step < 6:
        idle, compute, exposed, issue, both, tail = (b - a for a, b in itertools.pairwise(marks))
        truth["idle"] += idle
        truth["compute"] += compute + both
        truth["exposed"] += exposed + issue + tail
        truth["overlapped"] += both
        truth["in_line"] += in_line() - waited
profiler.stop()
if dist.get_rank() == 0:
    (folder / "truth").write_text(json.dumps(truth))
dist.barrier()
leadline.print_summary(profiler)
dist.destroy_process_group()
