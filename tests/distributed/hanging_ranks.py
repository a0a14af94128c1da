"""Ranks over gloo of which one never comes to the fourth all_reduce: `hanging_ranks.py FOLDER WHO`."""

import sys
import time

import torch
import torch.distributed as dist

import leadline

folder, who = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo")
profiler = leadline.build_profiler(
    enable=True, trace_dir=folder, flush_interval_s=0.3, hang_after_s=3, start_step=1000, end_step=1001
)
profiler.start(0)
for step in range(3):
    dist.all_reduce(torch.ones(10))
    profiler.step(step)
if dist.get_rank() == who:
    time.sleep(600)
dist.all_reduce(torch.ones(10))
