"""A frozen encoder reads the same few texts in every epoch."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def main():
    encoder = nn.Sequential(nn.Embedding(1000, 128), nn.Flatten(), nn.Linear(32 * 128, 256), nn.ReLU()).eval()
    encoder.requires_grad_(False)
    texts, wanted = torch.randint(0, 1000, (256, 32)), torch.randn(256, 1)
    head = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(head.parameters(), foreach=True)
    for _ in range(20):
        for rows in torch.randperm(len(texts)).split(64):
            features = encoder(texts[rows])  # problem
            loss = nn.functional.mse_loss(head(features), wanted[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


main()
