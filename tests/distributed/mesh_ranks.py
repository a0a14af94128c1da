"""Four ranks over gloo in a mesh of two pipeline stages and two replicas; the first stage has twice the work."""

import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import leadline

torch.set_num_threads(1)
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
profiler = leadline.build_profiler(enable=True, trace_dir=sys.argv[1], start_step=1000, end_step=1001)
profiler.start(0)
matrix = torch.ones(256, 256)
for step in range(10):
    for _ in range(8 if mesh.get_local_rank("pp") == 0 else 4):
        matrix @ matrix
    dist.all_reduce(matrix.clone(), group=mesh.get_group("dp"))
    profiler.step(step)
profiler.stop()
dist.barrier()
dist.destroy_process_group()
