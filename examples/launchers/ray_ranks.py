"""Ray Train starts the ranks, and each makes a profile of its own. `python ray_ranks.py FOLDER`"""

import sys
from pathlib import Path

import torch
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer

import leadline


def train(config: dict) -> None:
    from ray import train as ray_train

    torch.manual_seed(0)
    model = ray_train.torch.prepare_model(torch.nn.Linear(64, 64))
    optimizer = torch.optim.AdamW(model.parameters())
    prof = leadline.build_profiler(
        enable=True, trace_dir=config["folder"], rank=ray_train.get_context().get_world_rank()
    )
    prof.start(0)
    for step in range(12):
        model(torch.randn(32, 64)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        prof.step(step)
    prof.stop()


folder = str(Path(sys.argv[1]).resolve())  # workers have working directories of their own
TorchTrainer(train, train_loop_config={"folder": folder}, scaling_config=ScalingConfig(num_workers=2)).fit()
