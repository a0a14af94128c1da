"""A ViT of transformers with checkpointed activations and accumulated gradients; inference through `pipeline`-like batches."""

import sys

import torch
from transformers import ViTConfig, ViTForImageClassification


def model() -> ViTForImageClassification:
    config = ViTConfig(
        hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96, image_size=32, patch_size=8
    )
    return ViTForImageClassification(config)


def train() -> None:
    net = model().train()
    net.gradient_checkpointing_enable()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(12):
        image, label = torch.randn(4, 3, 32, 32), torch.randint(0, 2, (4,))
        (net(pixel_values=image, labels=label).loss / 2).backward()
        if step % 2:
            optimizer.step()
            optimizer.zero_grad()


@torch.inference_mode()
def infer() -> None:
    net = model().eval()
    for _ in range(5):
        torch.softmax(net(pixel_values=torch.randn(4, 3, 32, 32)).logits, -1).max().item()


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
