# fmt: off
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Bytes(Dataset):
    def __init__(self):
        self.data = torch.randint(0, 256, (60000,))

    def __len__(self):
        return 1600

    def __getitem__(self, i):
        return self.data[i * 30:i * 30 + 64], self.data[i * 30 + 1:i * 30 + 65]


class Lm(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.emb = nn.Embedding(256, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, batch_first=True, dropout=0.0, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(dim, 256)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(64))

    def forward(self, x):
        return self.out(self.blocks(self.emb(x), mask=self.mask, is_causal=True))


def main():
    torch.manual_seed(0)
    net = Lm()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    for epoch in range(1):
        for x, y in DataLoader(Bytes(), batch_size=16, shuffle=True):
            loss = nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()


if __name__ == "__main__":
    main()
# ruff: noqa
