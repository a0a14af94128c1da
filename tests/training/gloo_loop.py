"""A loop of which it is known what each step does: sleep, compute, an exposed collective, a hidden one."""

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
matrix, vector = torch.randn(600, 600), torch.randn(4_000_000)
truth = {"compute": 0, "exposed": 0, "idle": 0}
profiler.start(0)
for step in range(8):
    marks = [time.monotonic_ns()]
    time.sleep(0.05)
    marks.append(time.monotonic_ns())
    for _ in range(4):
        matrix @ matrix
    marks.append(time.monotonic_ns())
    dist.all_reduce(vector)
    marks.append(time.monotonic_ns())
    hidden = dist.all_reduce(vector, async_op=True)
    for _ in range(6):
        matrix @ matrix
    marks.append(time.monotonic_ns())
    hidden.wait()
    marks.append(time.monotonic_ns())
    profiler.step(step)
    if 2 <= step < 6:
        idle, compute, exposed, both, tail = (b - a for a, b in itertools.pairwise(marks))
        truth["idle"] += idle
        truth["compute"] += compute + both
        truth["exposed"] += exposed + tail
profiler.stop()
if dist.get_rank() == 0:
    (folder / "truth").write_text(json.dumps(truth))
dist.barrier()
leadline.print_summary(profiler)
dist.destroy_process_group()
