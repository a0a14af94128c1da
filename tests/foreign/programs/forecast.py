"""A PatchTST of transformers: the next values of several series at once."""

import sys

import torch
from transformers import PatchTSTConfig, PatchTSTForPrediction


def model() -> PatchTSTForPrediction:
    config = PatchTSTConfig(
        num_input_channels=4, context_length=64, prediction_length=16, patch_length=8, patch_stride=8, d_model=32,
        num_hidden_layers=2, num_attention_heads=4, ffn_dim=64,
    )  # fmt: skip
    return PatchTSTForPrediction(config)


def train() -> None:
    net = model().train()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, foreach=True)
    for _ in range(15):
        loss = net(past_values=torch.randn(16, 64, 4), future_values=torch.randn(16, 16, 4)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.inference_mode()
def infer() -> None:
    net = model().eval()
    for _ in range(10):
        net(past_values=torch.randn(16, 64, 4)).prediction_outputs.mean(1)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
