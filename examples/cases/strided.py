"""ResNet's stem convolves at every second place and keeps the largest of 3 x 3; or it convolves at every fourth."""

import sys

import torch
from torch import nn
from transformers import ResNetConfig, ResNetForImageClassification

STEPS = 12


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = ResNetConfig(embedding_size=64, hidden_sizes=[32, 64], depths=[1, 1], layer_type="basic")
    model = ResNetForImageClassification(config)
    if sys.argv[1] == "after":
        stem = model.resnet.embedder
        stem.embedder.convolution = nn.Conv2d(3, 64, 7, stride=4, padding=3, bias=False)
        stem.pooler = nn.Identity()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    pixels, labels = torch.randn(4, 3, 224, 224), torch.tensor([0, 1, 0, 1])
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(pixel_values=pixels, labels=labels).loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
