"""A ConvNeXt V2 of transformers with an average of its weights (torch.optim.swa_utils), which does the inference."""

import sys

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import ConvNextV2Config, ConvNextV2ForImageClassification


def model() -> ConvNextV2ForImageClassification:
    return ConvNextV2ForImageClassification(ConvNextV2Config(hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 2, 1]))


def train() -> None:
    net = model().train()
    average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=True)
    for _ in range(12):
        loss = net(pixel_values=torch.randn(4, 3, 64, 64), labels=torch.randint(0, 2, (4,))).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        average.update_parameters(net)
    with torch.no_grad():
        average.eval()(pixel_values=torch.randn(4, 3, 64, 64))


@torch.inference_mode()
def infer() -> None:
    net = model().eval().to(memory_format=torch.channels_last)
    for _ in range(6):
        net(pixel_values=torch.randn(4, 3, 64, 64).contiguous(memory_format=torch.channels_last)).logits.argmax(-1)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
