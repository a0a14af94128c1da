"""A SegFormer of transformers: classes of pixels, trained with a schedule; masks in the size of the pictures."""

import sys

import torch
from transformers import SegformerConfig, SegformerForSemanticSegmentation


def model() -> SegformerForSemanticSegmentation:
    config = SegformerConfig(
        hidden_sizes=[16, 32, 40, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 4, 8], decoder_hidden_size=32,
        num_labels=5,
    )  # fmt: skip
    return SegformerForSemanticSegmentation(config)


def train() -> None:
    net = model().train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=6e-5)
    schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, 10)
    for _ in range(10):
        loss = net(pixel_values=torch.randn(2, 3, 64, 64), labels=torch.randint(0, 5, (2, 64, 64))).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


@torch.inference_mode()
def infer() -> None:
    net = model().eval()
    for _ in range(6):
        scores = net(pixel_values=torch.randn(2, 3, 64, 64)).logits
        torch.nn.functional.interpolate(scores, size=(64, 64), mode="bilinear", align_corners=False).argmax(1)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
