"""A ResNet on two machines, cut behind its first convolution, or behind the pooling that follows.

Run it with `torchrun --nproc-per-node 2 partition.py before`: rank 0 has the beginning, rank 1 the rest.
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from transformers import ResNetConfig, ResNetForImageClassification

STEPS, BATCH = 8, 4


class Rest(nn.Module):
    """What stands behind the cut."""

    def __init__(self, model: nn.Module, pooled: bool) -> None:
        super().__init__()
        self.model, self.pooled = model, pooled

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        resnet = self.model.resnet
        x = x if self.pooled else resnet.embedder.pooler(x)
        x = resnet.pooler(resnet.encoder(x).last_hidden_state)
        return self.model.classifier(x)


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    pooled = sys.argv[1] == "after"
    config = ResNetConfig(embedding_size=64, hidden_sizes=[32, 64], depths=[1, 1], layer_type="basic")
    model = ResNetForImageClassification(config)
    side = 56 if pooled else 112
    cut = torch.empty(BATCH, 64, side, side)
    if dist.get_rank() == 0:
        begin = model.resnet.embedder if pooled else model.resnet.embedder.embedder
        optimizer = torch.optim.SGD(begin.parameters(), 1e-3)
        for _ in range(STEPS):
            optimizer.zero_grad()
            output = begin(torch.randn(BATCH, 3, 224, 224))
            dist.send(output.detach(), 1)
            dist.recv(cut, 1)
            output.backward(cut)
            optimizer.step()
    else:
        rest = Rest(model, pooled)
        optimizer = torch.optim.SGD(rest.parameters(), 1e-3)
        for _ in range(STEPS):
            optimizer.zero_grad()
            dist.recv(cut, 0)
            given = cut.clone().requires_grad_()
            rest(given).square().mean().backward()
            dist.send(given.grad, 0)
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
